// Values of the input under its declared properties: symmetric entries are equal, diagonals of a hollow input are zero.

// The constraints on one source: axis lengths, exchange groups and node sets of its slots, and whether it is hollow.
function inputConstraints(plan, source, sizes) {
  const shape = plan.spec.sources[source];
  const { groups } = slotConstraints(specOfPair(plan.spec, source, 0), plan);
  return { lengths: axisLengths(shape, sizes), groups: groups.slice(0, shape.length), sets: shape, hollow: plan.hollow };
}

// The positions of all entries that must equal this one; none if it must be zero.
function linkedEntries(position, { lengths, groups, sets, hollow }) {
  if (hollow && isOnDiagonal(allIndices(lengths)[position], sets)) return [];
  return exchangeableEntries(position, lengths, groups);
}

// An input filled with `valueOf(position)`; linked entries take the value of the first.
function fillValues(constraints, valueOf) {
  const entries = Array(numel(constraints.lengths)).fill(0);
  const done = new Set();
  entries.forEach((_, position) => {
    if (done.has(position)) return;
    const value = valueOf(position);
    for (const same of linkedEntries(position, constraints)) {
      entries[same] = value;
      done.add(same);
    }
  });
  return entries;
}

const FILL_VALUES = {
  clear: () => 0,
  random: () => Math.floor(Math.random() * 4) * (Math.random() < 0.6 ? 1 : 0),
  numbers: (position) => position + 1,
  // A fixed pattern of ones in about a third of the entries; rows of five have different sums.
  example: (position) => ((3 * position * position + 5 * position + 1) % 13 < 4 ? 1 : 0),
};
