// The plan as a table, and as the text that Python prints.

const MOST_SHOWN = 8;
const HEADS = ["rank", "reads", "swaps", "writes", "maps"];

// One row for each rank, highest first; cells of several folds are lists.
function rowsOf(plan) {
  const several = nodeSetsOf(plan.spec).length > 1;
  return [...plan.levels].reverse().map((level) => ({
    rank: several ? level.rank.join(" ") : String(level.rank.reduce((sum, one) => sum + one, 0)),
    reads: someNames(level.reads, "readName", plan.spec.sources.length),
    swaps: String(level.nSwaps),
    writes: someNames(level.writes, "writeName", plan.spec.targets.length),
    maps: String(level.diagrams.length),
  }));
}

// The names; of several tensors each begins with its number, as in a tuple.
function someNames(folds, name, nTensors) {
  const names = folds.map((fold, number) => {
    const begins = nTensors > 1 && (!number || folds[number - 1].tensor !== fold.tensor);
    return begins ? `[${fold.tensor}] ${fold[name]}` : fold[name];
  });
  return names.length <= MOST_SHOWN ? names : [...names.slice(0, MOST_SHOWN - 1), `... ${names.length} in all`];
}

const counted = (number, singular, plural) => `${withCommas(number)} ${number === 1 ? singular : plural}`;

// "15 maps, 2 biases", and what else stands over the table.
function factsOf(plan) {
  const facts = [`${counted(plan.diagrams.length, "map", "maps")}, ${counted(plan.biases.length, "bias", "biases")}`];
  const sets = nodeSetsOf(plan.spec);
  if (sets.length > 1) facts.push(`ranks: ${sets.join(" ")}`);
  const declared = ["symmetric", "hollow"].filter((name) => plan[name]);
  if (declared.length) facts.push(`on ${declared.join(" and ")} inputs`);
  return facts;
}

// What unordered slots save; "" where there are none.
function savedWords(plan) {
  if (!plan.spec.unordered.length) return "";
  const ordered = orderedSpec(plan.spec);
  const here = plan.levels.reduce((sum, level) => sum + level.nSwaps, 0);
  const [ours, theirs] = [withCommas(plan.diagrams.length), shortCount(countMaps(ordered, plan))];
  return `unordered slots: ${ours} of ${theirs} maps, ${here} of ${withCommas(countProducts(ordered, plan))} products`;
}

function textOfPlan(plan) {
  const rows = rowsOf(plan).map((row) =>
    HEADS.map((head) => (Array.isArray(row[head]) ? row[head].join("  ") : row[head])),
  );
  const table = [HEADS, ...rows];
  const widths = HEADS.map((_, column) => Math.max(...table.map((row) => row[column].length)));
  const lines = table.map((row) => {
    const cells = row.map((cell, column) =>
      column === 1 || column === 3 ? cell.padEnd(widths[column]) : cell.padStart(widths[column]),
    );
    return `  ${cells.join("  ")}`;
  });
  const saved = savedWords(plan);
  return [[textOfSpec(plan.spec), ...factsOf(plan)].join("    "), ...lines, ...(saved ? [`  ${saved}`] : [])].join("\n");
}
