// How many maps a spec has, counted and not listed, so that one with too many is known before any work.

const MOST_MAPS = 50000;
const MOST_SLOTS = 500;
const MOST_COUNTED_SLOTS = 300;
const MOST_PRINTED = 10n ** 15n;
const MOST_STATES = 512;
const MOST_STATES_APART = 2048;
const MOST_CHARACTERS = 80;

const sumOf = (numbers) => numbers.reduce((total, one) => total + one, 0n);
const productOf = (numbers) => numbers.reduce((total, one) => total * one, 1n);
const upTo = (number) => Array.from({ length: number + 1 }, (_, n) => n);

function bell(elements) {
  let row = [1n];
  for (let n = 0; n < elements; n++) {
    const next = [row[row.length - 1]];
    for (const entry of row) next.push(next[next.length - 1] + entry);
    row = next;
  }
  return row[0];
}

// The ways to split so many elements into 0, 1, 2, ... blocks.
function stirlingRow(elements) {
  let row = [1n];
  for (let n = 0; n < elements; n++) {
    row = [...row, 0n].map((more, blocks) => BigInt(blocks) * more + (blocks ? row[blocks - 1] : 0n));
  }
  return row;
}

// The ways to write 0, 1, 2, ..., number as a sum of positive numbers, whatever their order.
function partitionsOfNumbers(number) {
  const ways = [1n, ...Array(number).fill(0n)];
  for (let part = 1; part <= number; part++) {
    for (let total = part; total <= number; total++) ways[total] += ways[total - part];
  }
  return ways;
}

const permuted = (n, k) => productOf(upTo(k).slice(1).map((one) => BigInt(n - one + 1)));
const factorial = (n) => permuted(n, n);
const chosen = (n, k) => permuted(n, k) / factorial(k);

function countMaps(spec, declared) {
  const pairs = spec.sources.flatMap((_, source) => spec.targets.map((_, target) => [source, target]));
  return sumOf(
    pairs.map(([source, target]) => {
      const pair = pairOfSpec(spec, source, target);
      if (spec.unordered.length) return countOrbits(declaredOf(pair, declared));
      const number = (shape, name) => shape.filter((other) => other === name).length;
      return productOf(
        nodeSetsOf(pair).map((name) => countOf(number(pair.sources[0], name), number(pair.targets[0], name), declared)),
      );
    }),
  );
}

// The number of maps between this many slots of one node set.
function countOf(slots, written, { symmetric, hollow }) {
  const target = Math.min(written, MOST_COUNTED_SLOTS);
  const source = hollow ? slots : Math.min(slots, MOST_COUNTED_SLOTS);
  if (!symmetric && !hollow) return bell(source + target);
  const parts = hollow ? [] : partitionsOfNumbers(source);
  const ways = (blocks) => {
    if (hollow) {
      const joined = upTo(Math.min(source, blocks));
      return sumOf(joined.map((n) => chosen(blocks, n) * (symmetric ? 1n : permuted(source, n))));
    }
    return sumOf(upTo(source).map((n) => (n ? chosen(blocks + n - 1, n) : 1n) * parts[source - n]));
  };
  return sumOf(stirlingRow(target).map((row, blocks) => (row ? row * ways(blocks) : 0n)));
}

// The number of orbits of diagrams: for each node set the ways to write the sizes of its groups as sums of parts.
function countOrbits({ kinds, groups, apart }) {
  return productOf(
    [...new Set(kinds)].map((kind) => {
      const slots = [...kinds.keys()].filter((slot) => kinds[slot] === kind);
      const names = [...new Set(slots.map((slot) => groups[slot]))];
      const sizes = names.map((group) => slots.filter((slot) => groups[slot] === group).length);
      const alone = names.map((group) => apart.has(group));
      const most = alone.some(Boolean) ? MOST_STATES_APART : MOST_STATES;
      const fewer = [...sizes];
      while (fewer.reduce((total, size) => total * (size + 1), 1) > most) {
        fewer[fewer.indexOf(Math.max(...fewer))] -= 1;
      }
      const found = vectorPartitions(fewer, alone);
      if (String(fewer) === String(sizes) || alone.some(Boolean)) return found;
      const bound = bell(Math.min(slots.length, MOST_COUNTED_SLOTS)) / productOf(sizes.map(factorial));
      return found > bound ? found : bound;
    }),
  );
}

// The multisets of non-zero vectors that add up to sizes; of what is apart a part has at most one.
function vectorPartitions(sizes, alone) {
  const sums = indicesBelow(sizes.map((size) => size + 1));
  const ways = new Map(sums.map((sum, number) => [String(sum), number ? 0n : 1n]));
  for (const part of sums.slice(1)) {
    if (part.reduce((total, number, place) => total + (alone[place] ? number : 0), 0) > 1) continue;
    for (const sum of sums) {
      // ascending, so that a part may be taken again
      const after = String(sum.map((number, place) => number + part[place]));
      if (ways.has(after)) ways.set(after, ways.get(after) + ways.get(String(sum)));
    }
  }
  return ways.get(String(sizes));
}

// The number of matrix products without unordered slots: at every rank one for each order of its axes that occurs. On
// symmetric inputs an order needs as many slots more than its axes as its major index says.
function countProducts(spec, { symmetric, hollow }) {
  const sets = nodeSetsOf(spec);
  const number = (shape, name) => shape.filter((other) => other === name).length;
  const indicesOf = (rank, slots) => {
    if (!symmetric) return [null]; // every order
    return upTo(hollow ? 0 : Math.min((rank * (rank - 1)) / 2, slots - rank));
  };
  const found = new Map(); // of every node set the rank, and the index of some orders
  for (const source of spec.sources) {
    for (const target of spec.targets) {
      const ofSet = sets.map((name) =>
        upTo(Math.min(number(source, name), number(target, name))).flatMap((rank) =>
          indicesOf(rank, number(source, name)).map((index) => [rank, index]),
        ),
      );
      const tuples = indicesBelow(ofSet.map((some) => some.length)).map((tuple) => tuple.map((at, set) => ofSet[set][at]));
      for (const one of tuples) found.set(one.join(" "), one);
    }
  }
  const ordersOf = ([rank, index]) => (index === null ? factorial(rank) : ordersByIndex(rank)[index]);
  return sumOf([...found.values()].map((one) => productOf(one.map(ordersOf))));
}

// How many orders of so many axes have the major index 0, 1, 2, ...
function ordersByIndex(axes) {
  let numbers = [1n];
  for (let more = 1; more < axes; more++) {
    numbers = upTo(numbers.length - 1 + more).map((index) => sumOf(numbers.slice(Math.max(0, index - more), index + 1)));
  }
  return numbers;
}

// What is said of a spec with more maps than a plan is built for, or with slots beyond all use; null of others.
function giantWords(spec, nMaps) {
  const shown = `The spec "${shortSpec(spec)}"`;
  if (nMaps > MOST_MAPS) {
    return (
      `${shown} has ${shortCount(nMaps)} maps; plans are built for up to ${withCommas(MOST_MAPS)} (max_maps).\n` +
      "Lower the order, give some of the slots node sets of their own, or declare the input symmetric or hollow " +
      "if it is.\nIf it is to be built all the same, raise max_maps: time and memory grow with the maps."
    );
  }
  const nSlots = slotsOf(spec).length;
  if (nSlots <= MOST_SLOTS) return null;
  return (
    `${shown} has ${withCommas(nSlots)} slots; plans are built for up to ${MOST_SLOTS}.\n` +
    "A slot is one axis of a tensor; entries along an axis need no slots of their own."
  );
}

const shortCount = (nMaps) =>
  nMaps < MOST_PRINTED ? withCommas(nMaps) : `at least 10^${String(nMaps).length - 1}`;

// A spec as messages show it: the beginning, where there are very many slots.
function shortSpec(spec) {
  const text = textOfSpec(spec);
  if (characters(text).length <= MOST_CHARACTERS) return text;
  const room = MOST_CHARACTERS / 2 - " ...".length;
  let beginning = "";
  for (const word of text.split(" ")) {
    const longer = beginning ? `${beginning} ${word}` : word;
    if (characters(longer).length > room) break;
    beginning = longer;
  }
  const [source, target] = [spec.sources, spec.targets].map((shapes) => {
    const number = shapes.flat().length;
    return `(${withCommas(number)} slot${number === 1 ? "" : "s"})`;
  });
  return `${beginning ? `${beginning} ` : ""}... ${source} -> ${target}`;
}
