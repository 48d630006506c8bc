// The entries of the input, kept to what is declared of it: equal where slots may be exchanged, zero where it is hollow.

// What is known of one source: lengths of its slots, their groups, and whether diagonals are empty.
function knownOfSource(plan, source, sizes) {
  const shape = plan.spec.sources[source];
  const { groups } = declaredOf(pairOfSpec(plan.spec, source, 0), plan);
  return { lengths: lengthsOf(shape, sizes), groups: groups.slice(0, shape.length), sets: shape, hollow: plan.hollow };
}

// All entries that are the same as one, or none where it must stay zero.
function placesToSet(place, { lengths, groups, sets, hollow }) {
  if (hollow && isOnDiagonal(indicesBelow(lengths)[place], sets)) return [];
  return sameEntries(place, lengths, groups);
}

// An input with values by their places, of which the first of those that must be equal decides.
function filledInput(known, valueOf) {
  const entries = Array(sizeOf(known.lengths)).fill(0);
  const done = new Set();
  entries.forEach((_, place) => {
    if (done.has(place)) return;
    const value = valueOf(place);
    for (const same of placesToSet(place, known)) {
      entries[same] = value;
      done.add(same);
    }
  });
  return entries;
}

const FILLS = {
  clear: () => 0,
  random: () => Math.floor(Math.random() * 4) * (Math.random() < 0.6 ? 1 : 0),
  numbers: (place) => place + 1,
  // About a third of the entries, scattered but always the same; rows of five have different sums.
  example: (place) => ((3 * place * place + 5 * place + 1) % 13 < 4 ? 1 : 0),
};
