// The maps on actual nodes: their matrices of ones and zeros, and what comes out of an input.

// All tuples of whole numbers below the given ones, the last number fastest.
function indicesBelow(lengths) {
  return lengths.reduce(
    (tuples, length) => tuples.flatMap((tuple) => Array.from({ length }, (_, n) => [...tuple, n])),
    [[]],
  );
}

const sizeOf = (lengths) => lengths.reduce((size, length) => size * length, 1);
const placeOf = (indices, lengths) => indices.reduce((place, index, axis) => place * lengths[axis] + index, 0);
const lengthsOf = (shape, sizes) => shape.map((name) => sizes[name]);

// The matrix of a map: its rows are output indices and its columns input indices, the last slot fastest.
//
// In the diagram basis it is one where the indices agree as the letters say; in the orbit basis different letters are
// different nodes besides. Results over unordered slots are averaged over exchanges. With `means` every sum is divided
// by the number of its terms.
function matrixOf(spec, diagram, sizes, { basis = "diagram", means = false } = {}) {
  const source = diagram.source === null ? [] : lengthsOf(spec.sources[diagram.source], sizes);
  const target = lengthsOf(spec.targets[diagram.target], sizes);
  const setOfBlock = new Map();
  const sets = [...diagram.sourceSets, ...diagram.targetSets];
  diagram.partition.forEach((block, slot) => setOfBlock.set(block, sets[slot]));
  const lengthOfSet = new Map(sets.map((set, slot) => [set, [...source, ...target][slot]]));
  const blocks = [...setOfBlock.keys()].sort((one, other) => one - other);
  const [rows, columns] = [sizeOf(target), sizeOf(source)];
  const values = new Float64Array(rows * columns);
  for (const nodes of indicesBelow(blocks.map((block) => lengthOfSet.get(setOfBlock.get(block))))) {
    if (basis === "orbit" && !areApart(nodes, blocks, setOfBlock)) continue;
    const row = placeOf(diagram.below.map((block) => nodes[block]), target);
    const column = placeOf(diagram.above.map((block) => nodes[block]), source);
    values[row * columns + column] = 1;
  }
  if (means) {
    const terms = diagram.read.droppedSets.reduce((product, set) => product * lengthOfSet.get(set), 1);
    values.forEach((value, place) => (values[place] = value / terms));
  }
  const groups = constantsOfSpec(spec, diagram.target).unordered;
  return { rows, columns, values: averaged(values, target, columns, groups), source, target };
}

const areApart = (nodes, blocks, setOfBlock) =>
  blocks.every((block) =>
    blocks.every((other) => other >= block || nodes[other] !== nodes[block] || setOfBlock.get(other) !== setOfBlock.get(block)),
  );

// The average over all exchanges of the target slots of each group.
function averaged(values, target, columns, groups) {
  const indices = groups.length ? indicesBelow(target) : [];
  for (const group of groups) {
    for (let last = 1; last < group.length; last++) {
      const total = values.slice();
      for (const slot of group.slice(0, last)) {
        indices.forEach((tuple, row) => {
          const other = placeOf(exchanged(tuple, slot, group[last]), target);
          for (let column = 0; column < columns; column++) {
            total[row * columns + column] += values[other * columns + column];
          }
        });
      }
      values = total.map((value) => value / (last + 1));
    }
  }
  return values;
}

function exchanged(tuple, one, other) {
  const result = [...tuple];
  [result[one], result[other]] = [tuple[other], tuple[one]];
  return result;
}

// The output of a map, whose matrix it is, for the entries of an input.
function applyMatrix({ rows, columns, values }, entries) {
  return Array.from({ length: rows }, (_, row) =>
    entries.reduce((sum, entry, column) => sum + values[row * columns + column] * entry, 0),
  );
}

// The places of the entries that must be equal, since slots may be exchanged: those of one entry.
function sameEntries(place, lengths, groups) {
  const all = indicesBelow(lengths);
  const found = new Set([place]);
  for (const one of found) {
    groups.forEach((group, slot) =>
      groups.forEach((other, last) => {
        if (last > slot && group === other) found.add(placeOf(exchanged(all[one], slot, last), lengths));
      }),
    );
  }
  return [...found].sort((one, other) => one - other);
}

// Whether two slots of one node set hold the same node.
const isOnDiagonal = (indices, sets) =>
  indices.some((node, slot) => indices.some((other, last) => last > slot && node === other && sets[slot] === sets[last]));
