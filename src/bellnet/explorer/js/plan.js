// The plan of a spec: all its diagrams in canonical order, and grouped by rank.

// `declared` is { symmetric, hollow }, what is known of the input. With several tensors, those of the first source to
// the first target come first, then those of the first source to the second target.
function makePlan(spec, declared) {
  const diagrams = diagramsOf(spec, declared);
  return {
    spec,
    ...declared,
    diagrams,
    biases: biasesOf(spec),
    levels: levelsOf(diagrams, nodeSetsOf(spec).length),
  };
}

// Of every pair of a source and a target the diagrams, altogether no more than `most`.
function diagramsOf(spec, declared, most = Infinity) {
  const sets = nodeSetsOf(spec);
  const numbered = (shape) => shape.map((name) => sets.indexOf(name));
  const found = [];
  spec.sources.forEach((source, from) =>
    spec.targets.forEach((target, to) => {
      const { kinds, groups, apart } = declaredOf(pairOfSpec(spec, from, to), declared);
      for (const partition of partitions(kinds, groups, apart, most - found.length)) {
        const diagram = makeDiagram(partition, numbered(source), numbered(target), from, to);
        found.push({ ...diagram, number: found.length });
      }
    }),
  );
  return found;
}

// The equality patterns of every target, each of which has a bias, as diagrams without a source.
function biasesOf(spec) {
  const sets = nodeSetsOf(spec);
  const patterns = spec.targets.flatMap((shape, target) => {
    const { kinds, groups, apart } = declaredOf(constantsOfSpec(spec, target), { symmetric: false, hollow: false });
    const own = shape.map((name) => sets.indexOf(name));
    return partitions(kinds, groups, apart).map((pattern) => makeDiagram(pattern, [], own, null, target));
  });
  return patterns.map((bias, number) => ({ ...bias, number }));
}

// The diagrams of one rank each, in order of ascending rank; the rank has an entry for every node set.
function levelsOf(diagrams, nSets) {
  const byRank = new Map();
  for (const diagram of diagrams) {
    const rank = Array(nSets).fill(0);
    for (const set of diagram.read.axisSets) rank[set] += 1;
    const key = String(rank);
    if (!byRank.has(key)) byRank.set(key, { rank, reads: new Map(), writes: new Map(), swaps: new Set(), diagrams: [] });
    const level = byRank.get(key);
    level.reads.set(diagram.read.key, diagram.read);
    level.writes.set(diagram.write.key, diagram.write);
    level.swaps.add(String(diagram.swap));
    level.diagrams.push(diagram);
  }
  const total = (rank) => rank.reduce((sum, one) => sum + one, 0);
  return [...byRank.values()]
    .sort((one, other) => total(one.rank) - total(other.rank) || compareTuples(one.rank, other.rank))
    .map(({ rank, reads, writes, swaps, diagrams: own }) => ({
      rank,
      reads: [...reads.values()].sort(compareFolds),
      writes: [...writes.values()].sort(compareFolds),
      nSwaps: swaps.size,
      diagrams: own,
    }));
}
