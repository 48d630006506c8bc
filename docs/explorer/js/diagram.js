// Diagrams: set partitions of source slots and target slots, each a contraction, a permutation and a broadcast.

const LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";

// Blocks as letters: 0 is a, 1 is b; beyond Z numbers in brackets.
const letters = (blocks) => blocks.map((block) => LETTERS[block] ?? `[${block}]`).join("");

// `source` and `target` are the indices of the tensors; the source of a bias is null.
function makeDiagram(partition, sourceSets, targetSets, source = 0, target = 0) {
  const order = sourceSets.length;
  const [sourceLabels, targetLabels] = [partition.slice(0, order), partition.slice(order)];
  const isCrossing = (block) => targetLabels.includes(block);
  const crossing = [...new Set(sourceLabels)].filter(isCrossing).sort((one, other) => one - other);
  const contraction = makeContraction(sourceLabels, sourceSets, crossing, source);
  const broadcast = makeContraction(targetLabels, targetSets, crossing, target);
  return {
    partition,
    sourceSets,
    targetSets,
    source,
    target,
    sourceLabels,
    targetLabels,
    crossing,
    name: `${letters(sourceLabels)}->${letters(targetLabels)}`,
    contraction,
    broadcast,
    permutation: broadcast.keptInDiagram.map((block) => contraction.keptInDiagram.indexOf(block)),
  };
}

// The slots of one side as blocks, of which the crossing ones are kept: sorted by node set, then by first appearance.
// `keptInDiagram` has the labels of the kept blocks in the whole diagram. A broadcast is a transposed contraction.
function makeContraction(labels, sets, crossing, tensor) {
  const blocks = canonicalLabels(labels);
  const setOf = new Map(blocks.map((block, slot) => [block, sets[slot]]));
  const kept = [...new Set(blocks.filter((_, slot) => crossing.includes(labels[slot])))];
  kept.sort((one, other) => setOf.get(one) - setOf.get(other) || one - other);
  return {
    tensor,
    blocks,
    kept,
    axisSets: kept.map((block) => setOf.get(block)),
    droppedSets: [...setOf.keys()].filter((block) => !kept.includes(block)).map((block) => setOf.get(block)),
    keptInDiagram: kept.map((block) => labels[blocks.indexOf(block)]),
    contractionName: `${letters(blocks)}->${letters(kept)}`,
    broadcastName: `${letters(kept)}->${letters(blocks)}`,
    key: `${tensor}|${blocks}|${kept}`,
  };
}

const compareContractions = (one, other) =>
  one.tensor - other.tensor || compareTuples(one.blocks, other.blocks) || compareTuples(one.kept, other.kept);
