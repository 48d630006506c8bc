// Descriptions of a map: its steps (`Diagram.describe` in Python) and its result (`Diagram.words`).

const unique = (blocks) => [...new Set(blocks)];

// The steps; unique among the maps of a spec.
function describeSteps({ sourceLabels, targetLabels, crossing }) {
  const steps = [];
  const crosses = (block) => crossing.includes(block);
  const diagonals = listDiagonals(sourceLabels);
  if (diagonals) steps.push(`take the ${diagonals}`);
  const summed = unique(sourceLabels).filter((block) => !crosses(block));
  if (summed.length) steps.push(`sum over ${letters(summed)}`);
  const [sourceOrder, targetOrder] = [sourceLabels, targetLabels].map((side) => unique(side).filter(crosses));
  const reordered = String(sourceOrder) !== String(targetOrder);
  if (reordered) steps.push("permute the axes");
  const repeated = unique(targetLabels).filter((block) => !crosses(block));
  if (repeated.length) steps.push(`repeat along ${letters(repeated)}`);
  const targetDiagonals = listDiagonals(targetLabels);
  if (targetDiagonals) steps.push(`place on the ${targetDiagonals}`);
  else if ((sourceOrder.length && repeated.length) || (reordered && sourceOrder.length > 2)) {
    steps[steps.length - 1] += ` as ${letters(targetLabels)}`; // the letters say which axis is which
  }
  return steps.join(", ") || "copy";
}

// The letters that occur more than once on a side; with more than two slots, also the slots they belong to.
function listDiagonals(side) {
  const shared = unique(side).filter((block) => side.indexOf(block) !== side.lastIndexOf(block));
  if (!shared.length) return "";
  const of = side.length > 2 ? ` of ${letters(side)}` : "";
  return `diagonal${shared.length > 1 ? "s" : ""} ${shared.map((block) => letters([block])).join(", ")}${of}`;
}

// The result: which part of the input is used, and where it appears in the output.
function describeMap({ sourceLabels, targetLabels, crossing }, { means = true } = {}) {
  const plain = (side) => unique(side).length === side.length;
  if (plain(sourceLabels) && String(sourceLabels) === String(targetLabels)) return "the input, unchanged";
  if (String(sourceLabels) === "0,1" && String(targetLabels) === "1,0") return "the transpose";
  const where = describeTarget(sourceLabels, targetLabels, crossing);
  return describeSource(sourceLabels, crossing, means ? "mean" : "sum") + (where && `, ${where}`);
}

function describeBias({ targetLabels }) {
  const where = describeTarget([], targetLabels, []);
  return "one value" + (where && `, ${where}`);
}

// The part of the input that is used.
function describeSource(side, crossing, mean) {
  if (!side.length) return "one value";
  const blocks = unique(side);
  const dropped = blocks.filter((block) => !crossing.includes(block));
  const diagonal = describeDiagonal(side);
  if (!dropped.length) return diagonal || (side.length > 1 ? "the entries" : "the values");
  if (dropped.length === blocks.length) {
    const of = diagonal || (side.length > 1 ? "all entries" : "");
    return `the ${mean}${of && ` of ${of}`}`;
  }
  if (side.length === 2) return `${dropped[0] === side[1] ? "row" : "column"} ${mean}s`;
  return `${mean}s over ${letters(dropped)}${diagonal && ` of ${diagonal}`}`;
}

// Where the values appear in the output.
function describeTarget(sourceLabels, targetLabels, crossing) {
  const diagonal = describeDiagonal(targetLabels);
  if (diagonal) return `on ${diagonal}`;
  const kept = unique(sourceLabels).filter((block) => crossing.includes(block));
  if (String(kept) === String(targetLabels)) return "";
  if (kept.length === targetLabels.length) return targetLabels.length === 2 ? "transposed" : `as ${letters(targetLabels)}`;
  if (!kept.length) return targetLabels.length > 1 ? "everywhere" : "at every node";
  if (targetLabels.length === 2) return `along the ${kept[0] === targetLabels[0] ? "rows" : "columns"}`;
  return `repeated as ${letters(targetLabels)}`;
}

// The diagonal that a side is restricted to, with letters if it has several blocks; "" if it is not restricted.
function describeDiagonal(side) {
  const nBlocks = unique(side).length;
  return nBlocks === side.length ? "" : `the diagonal${nBlocks > 1 ? ` ${letters(side)}` : ""}`;
}
