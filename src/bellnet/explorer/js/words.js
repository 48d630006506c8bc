// What a map does, in words: step by step, and what comes out.

const distinct = (blocks) => [...new Set(blocks)];

// The steps, in words that no other map of the spec has.
function stepsOf({ above, below, crossing }) {
  const steps = [];
  const crosses = (block) => crossing.includes(block);
  const read = diagonalsOf(above);
  if (read) steps.push(`take the ${read}`);
  const summed = distinct(above).filter((block) => !crosses(block));
  if (summed.length) steps.push(`sum over ${letters(summed)}`);
  const [carried, written] = [above, below].map((side) => distinct(side).filter(crosses));
  const reordered = String(carried) !== String(written);
  if (reordered) steps.push(carried.length === 2 ? "swap the axes" : "reorder the axes");
  const repeated = distinct(below).filter((block) => !crosses(block));
  if (repeated.length) steps.push(`repeat along ${letters(repeated)}`);
  const onto = diagonalsOf(below);
  if (onto) steps.push(`write on the ${onto}`);
  else if ((carried.length && repeated.length) || (reordered && carried.length > 2)) {
    steps[steps.length - 1] += ` as ${letters(below)}`; // which axis is whose
  }
  return steps.join(", ") || "copy";
}

// The letters that several slots of a side have; with more than two slots, also which slots those are.
function diagonalsOf(side) {
  const shared = distinct(side).filter((block) => side.indexOf(block) !== side.lastIndexOf(block));
  if (!shared.length) return "";
  const of = side.length > 2 ? ` of ${letters(side)}` : "";
  return `diagonal${shared.length > 1 ? "s" : ""} ${shared.map((block) => letters([block])).join(", ")}${of}`;
}

// What comes out: what is read of the input, and where it is written.
function wordsOf({ above, below, crossing }, { means = true } = {}) {
  const plain = (side) => distinct(side).length === side.length;
  if (plain(above) && String(above) === String(below)) return "the input, unchanged";
  if (String(above) === "0,1" && String(below) === "1,0") return "the transpose";
  const where = writtenWhere(above, below, crossing);
  return readOf(above, crossing, means ? "mean" : "sum") + (where && `, ${where}`);
}

// A bias is a map from nothing.
function wordsOfBias({ below }) {
  const where = writtenWhere([], below, []);
  return "one value" + (where && `, ${where}`);
}

// What is read of the slots of one side.
function readOf(side, crossing, mean) {
  if (!side.length) return "one value";
  const blocks = distinct(side);
  const dropped = blocks.filter((block) => !crossing.includes(block));
  const diagonal = diagonalOf(side);
  if (!dropped.length) return diagonal || (side.length > 1 ? "the entries" : "the values");
  if (dropped.length === blocks.length) {
    const of = diagonal || (side.length > 1 ? "all entries" : "");
    return `the ${mean}${of && ` of ${of}`}`;
  }
  if (side.length === 2) return `${dropped[0] === side[1] ? "row" : "column"} ${mean}s`;
  return `${mean}s over ${letters(dropped)}${diagonal && ` of ${diagonal}`}`;
}

function writtenWhere(above, below, crossing) {
  const diagonal = diagonalOf(below);
  if (diagonal) return `on ${diagonal}`;
  const carried = distinct(above).filter((block) => crossing.includes(block));
  if (String(carried) === String(below)) return "";
  if (carried.length === below.length) return below.length === 2 ? "transposed" : `as ${letters(below)}`;
  if (!carried.length) return below.length > 1 ? "everywhere" : "at every node";
  if (below.length === 2) return `along the ${carried[0] === below[0] ? "rows" : "columns"}`;
  return `repeated as ${letters(below)}`;
}

// The diagonal on which a side is, with its letters where there are several; "" for all entries.
function diagonalOf(side) {
  const nBlocks = distinct(side).length;
  return nBlocks === side.length ? "" : `the diagonal${nBlocks > 1 ? ` ${letters(side)}` : ""}`;
}
