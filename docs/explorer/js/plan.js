// The plan of a spec: its diagrams in canonical order, and grouped by rank.

// `declared` is { symmetric, hollow }, the declared properties of the input. With several tensors the diagrams are sorted
// by source tensor, then by target tensor.
function makePlan(spec, declared) {
  const diagrams = makeDiagrams(spec, declared);
  return {
    spec,
    ...declared,
    diagrams,
    biases: makeBiases(spec),
    levels: groupByRank(diagrams, nodeSetsOf(spec).length),
  };
}

// The diagrams of all pairs of a source and a target, at most `limit` in total.
function makeDiagrams(spec, declared, limit = Infinity) {
  const sets = nodeSetsOf(spec);
  const setIndices = (shape) => shape.map((name) => sets.indexOf(name));
  const found = [];
  spec.sources.forEach((source, from) =>
    spec.targets.forEach((target, to) => {
      const { setIds, groups, separate } = slotConstraints(specOfPair(spec, from, to), declared);
      for (const partition of setPartitions(setIds, groups, separate, limit - found.length)) {
        const diagram = makeDiagram(partition, setIndices(source), setIndices(target), from, to);
        found.push({ ...diagram, number: found.length });
      }
    }),
  );
  return found;
}

// The biases: one for each equality pattern of a target, as a diagram without a source.
function makeBiases(spec) {
  const sets = nodeSetsOf(spec);
  const patterns = spec.targets.flatMap((shape, target) => {
    const { setIds, groups, separate } = slotConstraints(specOfBias(spec, target), { symmetric: false, hollow: false });
    const own = shape.map((name) => sets.indexOf(name));
    return setPartitions(setIds, groups, separate).map((pattern) => makeDiagram(pattern, [], own, null, target));
  });
  return patterns.map((bias, number) => ({ ...bias, number }));
}

// The levels: diagrams grouped by rank, in ascending order. A rank has one entry for each node set.
function groupByRank(diagrams, nSets) {
  const byRank = new Map();
  for (const diagram of diagrams) {
    const rank = Array(nSets).fill(0);
    for (const set of diagram.contraction.axisSets) rank[set] += 1;
    const key = String(rank);
    if (!byRank.has(key)) {
      const empty = { contractions: new Map(), broadcasts: new Map(), permutations: new Set(), diagrams: [] };
      byRank.set(key, { rank, ...empty });
    }
    const level = byRank.get(key);
    level.contractions.set(diagram.contraction.key, diagram.contraction);
    level.broadcasts.set(diagram.broadcast.key, diagram.broadcast);
    level.permutations.add(String(diagram.permutation));
    level.diagrams.push(diagram);
  }
  const total = (rank) => rank.reduce((sum, one) => sum + one, 0);
  return [...byRank.values()]
    .sort((one, other) => total(one.rank) - total(other.rank) || compareTuples(one.rank, other.rank))
    .map(({ rank, contractions, broadcasts, permutations, diagrams: own }) => ({
      rank,
      contractions: [...contractions.values()].sort(compareContractions),
      broadcasts: [...broadcasts.values()].sort(compareContractions),
      nPermutations: permutations.size,
      diagrams: own,
    }));
}
