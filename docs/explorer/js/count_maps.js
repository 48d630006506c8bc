// The number of maps of a spec, computed without enumerating them, so that a spec with too many is rejected early.

const MAX_MAPS = 50000;
const MAX_SLOTS = 500;
const MAX_COUNTED_SLOTS = 300;
const MAX_PRINTED_COUNT = 10n ** 15n;
const MAX_STATES = 512;
const MAX_STATES_SEPARATE = 2048;
const MAX_CHARACTERS = 80;

const sumOf = (numbers) => numbers.reduce((total, one) => total + one, 0n);
const productOf = (numbers) => numbers.reduce((total, one) => total * one, 1n);
const rangeTo = (number) => Array.from({ length: number + 1 }, (_, n) => n);

function bell(elements) {
  let row = [1n];
  for (let n = 0; n < elements; n++) {
    const next = [row[row.length - 1]];
    for (const entry of row) next.push(next[next.length - 1] + entry);
    row = next;
  }
  return row[0];
}

// Stirling numbers of the second kind: the ways to split the elements into 0, 1, 2, ... blocks.
function stirlingRow(elements) {
  let row = [1n];
  for (let n = 0; n < elements; n++) {
    row = [...row, 0n].map((more, blocks) => BigInt(blocks) * more + (blocks ? row[blocks - 1] : 0n));
  }
  return row;
}

// The integer partitions of 0, 1, 2, ..., number, counted.
function countIntegerPartitions(number) {
  const ways = [1n, ...Array(number).fill(0n)];
  for (let part = 1; part <= number; part++) {
    for (let total = part; total <= number; total++) ways[total] += ways[total - part];
  }
  return ways;
}

const fallingFactorial = (n, k) => productOf(rangeTo(k).slice(1).map((one) => BigInt(n - one + 1)));
const factorial = (n) => fallingFactorial(n, n);
const binomial = (n, k) => fallingFactorial(n, k) / factorial(k);

function countMaps(spec, declared) {
  const pairs = spec.sources.flatMap((_, source) => spec.targets.map((_, target) => [source, target]));
  return sumOf(
    pairs.map(([source, target]) => {
      const pair = specOfPair(spec, source, target);
      if (spec.unordered.length) return countOrbits(slotConstraints(pair, declared));
      const number = (shape, name) => shape.filter((other) => other === name).length;
      return productOf(
        nodeSetsOf(pair).map((name) => countForSet(number(pair.sources[0], name), number(pair.targets[0], name), declared)),
      );
    }),
  );
}

// The number of maps between this many source and target slots of one node set.
function countForSet(slots, targetSlots, { symmetric, hollow }) {
  const target = Math.min(targetSlots, MAX_COUNTED_SLOTS);
  const source = hollow ? slots : Math.min(slots, MAX_COUNTED_SLOTS);
  if (!symmetric && !hollow) return bell(source + target);
  const parts = hollow ? [] : countIntegerPartitions(source);
  const ways = (blocks) => {
    if (hollow) {
      const joined = rangeTo(Math.min(source, blocks));
      return sumOf(joined.map((n) => binomial(blocks, n) * (symmetric ? 1n : fallingFactorial(source, n))));
    }
    return sumOf(rangeTo(source).map((n) => (n ? binomial(blocks + n - 1, n) : 1n) * parts[source - n]));
  };
  return sumOf(stirlingRow(target).map((row, blocks) => (row ? row * ways(blocks) : 0n)));
}

// The number of orbits of diagrams: for each node set the vector partitions of the sizes of its groups.
function countOrbits({ setIds, groups, separate }) {
  return productOf(
    [...new Set(setIds)].map((setId) => {
      const slots = [...setIds.keys()].filter((slot) => setIds[slot] === setId);
      const names = [...new Set(slots.map((slot) => groups[slot]))];
      const sizes = names.map((group) => slots.filter((slot) => groups[slot] === group).length);
      const isSeparate = names.map((group) => separate.has(group));
      const maxStates = isSeparate.some(Boolean) ? MAX_STATES_SEPARATE : MAX_STATES;
      const fewer = [...sizes];
      while (fewer.reduce((total, size) => total * (size + 1), 1) > maxStates) {
        fewer[fewer.indexOf(Math.max(...fewer))] -= 1;
      }
      const found = countVectorPartitions(fewer, isSeparate);
      if (String(fewer) === String(sizes) || isSeparate.some(Boolean)) return found;
      const bound = bell(Math.min(slots.length, MAX_COUNTED_SLOTS)) / productOf(sizes.map(factorial));
      return found > bound ? found : bound;
    }),
  );
}

// The multisets of non-zero vectors that add up to `sizes`; a vector has at most one slot of all separate groups.
function countVectorPartitions(sizes, isSeparate) {
  const sums = allIndices(sizes.map((size) => size + 1));
  const ways = new Map(sums.map((sum, number) => [String(sum), number ? 0n : 1n]));
  for (const part of sums.slice(1)) {
    if (part.reduce((total, number, position) => total + (isSeparate[position] ? number : 0), 0) > 1) continue;
    for (const sum of sums) {
      // ascending, so that a part may be used more than once
      const after = String(sum.map((number, position) => number + part[position]));
      if (ways.has(after)) ways.set(after, ways.get(after) + ways.get(String(sum)));
    }
  }
  return ways.get(String(sizes));
}

// The number of matrix products of a spec without unordered slots: one for each permutation of the axes of a level. On
// symmetric inputs a permutation with major index m occurs if the source has at least m slots more than the rank.
function countMatrixProducts(spec, { symmetric, hollow }) {
  const sets = nodeSetsOf(spec);
  const number = (shape, name) => shape.filter((other) => other === name).length;
  const indicesOf = (rank, slots) => {
    if (!symmetric) return [null]; // all permutations
    return rangeTo(hollow ? 0 : Math.min((rank * (rank - 1)) / 2, slots - rank));
  };
  const found = new Map(); // tuples with the rank and the major index in each node set
  for (const source of spec.sources) {
    for (const target of spec.targets) {
      const ofSet = sets.map((name) =>
        rangeTo(Math.min(number(source, name), number(target, name))).flatMap((rank) =>
          indicesOf(rank, number(source, name)).map((index) => [rank, index]),
        ),
      );
      const tuples = allIndices(ofSet.map((some) => some.length)).map((tuple) => tuple.map((at, set) => ofSet[set][at]));
      for (const one of tuples) found.set(one.join(" "), one);
    }
  }
  const permutationsOf = ([rank, index]) => (index === null ? factorial(rank) : permutationsByMajorIndex(rank)[index]);
  return sumOf([...found.values()].map((one) => productOf(one.map(permutationsOf))));
}

// The number of permutations of the axes with major index 0, 1, 2, ...
function permutationsByMajorIndex(axes) {
  let numbers = [1n];
  for (let more = 1; more < axes; more++) {
    numbers = rangeTo(numbers.length - 1 + more).map((index) => sumOf(numbers.slice(Math.max(0, index - more), index + 1)));
  }
  return numbers;
}

// The error message for a spec with too many maps or slots; null for other specs.
function sizeLimitError(spec, nMaps) {
  const subject = `The spec "${abbreviateSpec(spec)}"`;
  if (nMaps > MAX_MAPS) {
    return (
      `${subject} has ${formatLargeCount(nMaps)} maps; plans are built for up to ${groupDigits(MAX_MAPS)} (max_maps).\n` +
      "Lower the order, give some of the slots node sets of their own, or declare the input symmetric or hollow " +
      "if it is.\nIf it is to be built all the same, raise max_maps: time and memory grow with the maps."
    );
  }
  const nSlots = slotsOf(spec).length;
  if (nSlots <= MAX_SLOTS) return null;
  return (
    `${subject} has ${groupDigits(nSlots)} slots; plans are built for up to ${MAX_SLOTS}.\n` +
    "A slot is one axis of a tensor; entries along an axis need no slots of their own."
  );
}

const formatLargeCount = (nMaps) =>
  nMaps < MAX_PRINTED_COUNT ? groupDigits(nMaps) : `at least 10^${String(nMaps).length - 1}`;

// A spec in a message: its first slots, if there are very many.
function abbreviateSpec(spec) {
  const text = formatSpec(spec);
  if (codePoints(text).length <= MAX_CHARACTERS) return text;
  const limit = MAX_CHARACTERS / 2 - " ...".length;
  let beginning = "";
  for (const word of text.split(" ")) {
    const longer = beginning ? `${beginning} ${word}` : word;
    if (codePoints(longer).length > limit) break;
    beginning = longer;
  }
  const [source, target] = [spec.sources, spec.targets].map((shapes) => {
    const number = shapes.flat().length;
    return `(${groupDigits(number)} slot${number === 1 ? "" : "s"})`;
  });
  return `${beginning ? `${beginning} ` : ""}... ${source} -> ${target}`;
}
