// Diagrams: the maps themselves, each a partition of source slots and target slots; a read, a swap and a write.

const LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";

// Blocks as letters: 0 is a, 1 is b; beyond Z as numbers in brackets.
const letters = (blocks) => blocks.map((block) => LETTERS[block] ?? `[${block}]`).join("");

// The numbers of the tensors, where there are several, are `source` and `target`.
function makeDiagram(partition, sourceSets, targetSets, source = 0, target = 0) {
  const order = sourceSets.length;
  const [above, below] = [partition.slice(0, order), partition.slice(order)];
  const crossing = [...new Set(above)].filter((block) => below.includes(block)).sort((one, other) => one - other);
  const read = makeFold(above, sourceSets, crossing, source);
  const write = makeFold(below, targetSets, crossing, target);
  return {
    partition,
    sourceSets,
    targetSets,
    source,
    target,
    above,
    below,
    crossing,
    name: `${letters(above)}->${letters(below)}`,
    read,
    write,
    swap: write.carried.map((block) => read.carried.indexOf(block)),
  };
}

// The slots of one side as blocks, of which those that cross are kept: grouped by node set, then in order.
// `carried` are the kept blocks as the whole diagram numbers them.
function makeFold(labels, sets, crossing, tensor) {
  const blocks = canonical(labels);
  const setOf = new Map(blocks.map((block, slot) => [block, sets[slot]]));
  const kept = [...new Set(blocks.filter((_, slot) => crossing.includes(labels[slot])))];
  kept.sort((one, other) => setOf.get(one) - setOf.get(other) || one - other);
  return {
    tensor,
    blocks,
    kept,
    axisSets: kept.map((block) => setOf.get(block)),
    droppedSets: [...setOf.keys()].filter((block) => !kept.includes(block)).map((block) => setOf.get(block)),
    carried: kept.map((block) => labels[blocks.indexOf(block)]),
    readName: `${letters(blocks)}->${letters(kept)}`,
    writeName: `${letters(kept)}->${letters(blocks)}`,
    key: `${tensor}|${blocks}|${kept}`,
  };
}

const compareFolds = (one, other) =>
  one.tensor - other.tensor || compareTuples(one.blocks, other.blocks) || compareTuples(one.kept, other.kept);
