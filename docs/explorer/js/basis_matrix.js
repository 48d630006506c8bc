// Basis maps as matrices for given numbers of nodes, and their application to an input.

// All index tuples of a tensor with these axis lengths, the last axis fastest.
function allIndices(lengths) {
  return lengths.reduce(
    (tuples, length) => tuples.flatMap((tuple) => Array.from({ length }, (_, n) => [...tuple, n])),
    [[]],
  );
}

const numel = (lengths) => lengths.reduce((size, length) => size * length, 1);
const flatIndex = (indices, lengths) => indices.reduce((position, index, axis) => position * lengths[axis] + index, 0);
const axisLengths = (shape, sizes) => shape.map((name) => sizes[name]);

// The matrix of a map: its rows are output indices and its columns input indices, the last slot fastest.
//
// In the diagram basis an entry is one where the indices agree as the letters require; in the orbit basis different
// letters must also be different nodes. Outputs are averaged over exchanges of unordered slots. With `means` every sum is
// divided by the number of its terms.
function basisMatrix(spec, diagram, sizes, { basis = "diagram", means = false } = {}) {
  const source = diagram.source === null ? [] : axisLengths(spec.sources[diagram.source], sizes);
  const target = axisLengths(spec.targets[diagram.target], sizes);
  const setOfBlock = new Map();
  const sets = [...diagram.sourceSets, ...diagram.targetSets];
  diagram.partition.forEach((block, slot) => setOfBlock.set(block, sets[slot]));
  const lengthOfSet = new Map(sets.map((set, slot) => [set, [...source, ...target][slot]]));
  const blocks = [...setOfBlock.keys()].sort((one, other) => one - other);
  const [rows, columns] = [numel(target), numel(source)];
  const values = new Float64Array(rows * columns);
  for (const nodes of allIndices(blocks.map((block) => lengthOfSet.get(setOfBlock.get(block))))) {
    if (basis === "orbit" && !areDistinct(nodes, blocks, setOfBlock)) continue;
    const row = flatIndex(diagram.targetLabels.map((block) => nodes[block]), target);
    const column = flatIndex(diagram.sourceLabels.map((block) => nodes[block]), source);
    values[row * columns + column] = 1;
  }
  if (means) {
    const terms = diagram.contraction.droppedSets.reduce((product, set) => product * lengthOfSet.get(set), 1);
    values.forEach((value, position) => (values[position] = value / terms));
  }
  const groups = specOfBias(spec, diagram.target).unordered;
  return { rows, columns, values: symmetrize(values, target, columns, groups), source, target };
}

const areDistinct = (nodes, blocks, setOfBlock) =>
  blocks.every((block) =>
    blocks.every((other) => other >= block || nodes[other] !== nodes[block] || setOfBlock.get(other) !== setOfBlock.get(block)),
  );

// The average over all exchanges of the target slots of each group.
function symmetrize(values, target, columns, groups) {
  const indices = groups.length ? allIndices(target) : [];
  for (const group of groups) {
    for (let last = 1; last < group.length; last++) {
      const total = values.slice();
      for (const slot of group.slice(0, last)) {
        indices.forEach((tuple, row) => {
          const other = flatIndex(exchangeSlots(tuple, slot, group[last]), target);
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

function exchangeSlots(tuple, one, other) {
  const result = [...tuple];
  [result[one], result[other]] = [tuple[other], tuple[one]];
  return result;
}

// The matrix-vector product.
function applyMatrix({ rows, columns, values }, entries) {
  return Array.from({ length: rows }, (_, row) =>
    entries.reduce((sum, entry, column) => sum + values[row * columns + column] * entry, 0),
  );
}

// The positions of all entries that equal the entry at `position`, because slots of a group may be exchanged.
function exchangeableEntries(position, lengths, groups) {
  const all = allIndices(lengths);
  const found = new Set([position]);
  for (const one of found) {
    groups.forEach((group, slot) =>
      groups.forEach((other, last) => {
        if (last > slot && group === other) found.add(flatIndex(exchangeSlots(all[one], slot, last), lengths));
      }),
    );
  }
  return [...found].sort((one, other) => one - other);
}

// Whether two slots of one node set have the same index.
const isOnDiagonal = (indices, sets) =>
  indices.some((node, slot) => indices.some((other, last) => last > slot && node === other && sets[slot] === sets[last]));
