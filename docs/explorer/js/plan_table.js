// The table of a plan, and the text that `print(plan)` shows in Python.

const MAX_NAMES = 8;
const COLUMNS = ["rank", "contract", "permute", "broadcast", "maps"];

// One row for each rank, highest first; cells with the names of contractions or broadcasts are lists.
function tableRows(plan) {
  const several = nodeSetsOf(plan.spec).length > 1;
  return [...plan.levels].reverse().map((level) => ({
    rank: several ? level.rank.join(" ") : String(level.rank.reduce((sum, one) => sum + one, 0)),
    contract: contractionNames(level.contractions, "contractionName", plan.spec.sources.length),
    permute: String(level.nPermutations),
    broadcast: contractionNames(level.broadcasts, "broadcastName", plan.spec.targets.length),
    maps: String(level.diagrams.length),
  }));
}

// The names; if there are several tensors, the first name of each tensor starts with its index.
function contractionNames(contractions, name, nTensors) {
  const names = contractions.map((contraction, number) => {
    const isFirst = nTensors > 1 && (!number || contractions[number - 1].tensor !== contraction.tensor);
    return isFirst ? `[${contraction.tensor}] ${contraction[name]}` : contraction[name];
  });
  return names.length <= MAX_NAMES ? names : [...names.slice(0, MAX_NAMES - 1), `... ${names.length} in all`];
}

const countNoun = (number, singular, plural) => `${groupDigits(number)} ${number === 1 ? singular : plural}`;

// "15 maps, 2 biases" and the other facts in the caption of the table.
function planSummary(plan) {
  const facts = [`${countNoun(plan.diagrams.length, "map", "maps")}, ${countNoun(plan.biases.length, "bias", "biases")}`];
  const sets = nodeSetsOf(plan.spec);
  if (sets.length > 1) facts.push(`ranks: ${sets.join(" ")}`);
  const declared = ["symmetric", "hollow"].filter((name) => plan[name]);
  if (declared.length) facts.push(`on ${declared.join(" and ")} inputs`);
  return facts;
}

// The savings by unordered slots; "" if there are none.
function unorderedSummary(plan) {
  if (!plan.spec.unordered.length) return "";
  const ordered = orderedSpec(plan.spec);
  const nProducts = plan.levels.reduce((sum, level) => sum + level.nPermutations, 0);
  const [nMaps, nOrdered] = [groupDigits(plan.diagrams.length), formatLargeCount(countMaps(ordered, plan))];
  return `unordered slots: ${nMaps} of ${nOrdered} maps, ${nProducts} of ${groupDigits(countMatrixProducts(ordered, plan))} products`;
}

function formatPlan(plan) {
  const rows = tableRows(plan).map((row) =>
    COLUMNS.map((head) => (Array.isArray(row[head]) ? row[head].join("  ") : row[head])),
  );
  const table = [COLUMNS, ...rows];
  const widths = COLUMNS.map((_, column) => Math.max(...table.map((row) => row[column].length)));
  const lines = table.map((row) => {
    const cells = row.map((cell, column) =>
      column === 1 || column === 3 ? cell.padEnd(widths[column]) : cell.padStart(widths[column]),
    );
    return `  ${cells.join("  ")}`;
  });
  const savings = unorderedSummary(plan);
  return [[formatSpec(plan.spec), ...planSummary(plan)].join("    "), ...lines, ...(savings ? [`  ${savings}`] : [])].join("\n");
}
