// The chosen map: its picture and words, its matrix, and what it makes of an input.

function choose(state, kind, diagram) {
  state.chosen = { kind, diagram };
  showChosen(state);
}

const isBias = (diagram) => diagram.source === null;

function extentOf({ plan, sizes }, diagram) {
  const source = isBias(diagram) ? [] : lengthsOf(plan.spec.sources[diagram.source], sizes);
  const target = lengthsOf(plan.spec.targets[diagram.target], sizes);
  return { rows: sizeOf(target), columns: sizeOf(source), source, target };
}

const matrixOfMap = (state, diagram) =>
  matrixOf(state.plan.spec, diagram, state.sizes, { basis: state.basis, means: areMeans(state) });

// The matrix as it is drawn; that of a bias has its first slot in the rows and the others in the columns.
function matrixShown(state, diagram) {
  const matrix = matrixOfMap(state, diagram);
  if (!isBias(diagram)) return matrix;
  const rows = matrix.target.length ? matrix.target[0] : 1;
  return { ...matrix, rows, columns: matrix.rows / rows, target: [rows], source: matrix.target.slice(1) };
}

function showChosen(state) {
  const { diagram } = state.chosen;
  const between = betweenOf(state, diagram);
  const kind = isBias(diagram) ? "bias" : "map";
  byId("chosen-title").replaceChildren(
    make("span", { class: "name" }, diagram.name),
    make("span", { class: "soft" }, ` ${kind} ${diagram.number}${between ? `, ${between}` : ""}`),
  );
  byId("words").textContent = isBias(diagram) ? wordsOfBias(diagram) : wordsOf(diagram, { means: areMeans(state) });
  byId("steps").textContent = stepsHere(state, diagram);
  byId("picture").replaceChildren(drawStrands(diagram, { large: true }));
  byId("normalize").disabled = state.basis === "orbit";
  showTrial(state);
  showMatrix(state);
}

const areMeans = (state) => state.basis === "diagram" && state.normalize === "mean";

function stepsHere(state, diagram) {
  const steps = [isBias(diagram) ? "a constant, whatever goes in" : stepsOf(diagram)];
  if (state.basis === "orbit" && new Set(diagram.partition).size > 1) steps.push("different letters are different nodes");
  if (constantsOfSpec(state.plan.spec, diagram.target).unordered.length) {
    steps.push("then the average over exchanges of the slots in braces");
  }
  return steps.join("; ");
}

function showTrial(state) {
  const { diagram } = state.chosen;
  const { source, target, rows, columns } = extentOf(state, diagram);
  byId("in-side").hidden = isBias(diagram);
  const pair = pairOfSpec(state.plan.spec, diagram.source, diagram.target);
  const { sources, targets } = state.plan.spec;
  const shapes = [textOfShapes(pair.sources, pair.unordered), textOfShapes(pair.targets, pair.unordered, source.length)];
  byId("input-title").textContent = titleOf("Input", shapes[0], sources.length > 1 ? diagram.source : null);
  byId("output-title").textContent = titleOf("Output", shapes[1], targets.length > 1 ? diagram.target : null);
  byId("reading").textContent = "";
  const tooMany = [isBias(diagram) ? 0 : columns, rows].map((count) => count > MOST_ENTRIES);
  byId("presets").hidden = isBias(diagram) || tooMany[0] || tooMany[1];
  state.cells = { input: [], output: [] };
  state.matrix = null;
  if (tooMany[0] || tooMany[1]) {
    say("input", tooMany[0] ? tooManyWords(columns) : "");
    say("output", tooMany[1] ? tooManyWords(rows) : "");
    return;
  }
  state.matrix = matrixOfMap(state, diagram);
  if (!isBias(diagram)) {
    state.known = knownOfSource(state.plan, diagram.source, state.sizes);
    state.entries = entriesFor(state, diagram.source);
    state.cells.input = fillCells(byId("input"), source, {
      press: (place) => setEntry(state, place, state.entries[place] ? 0 : 1),
      type: (place, key) => typeEntry(state, place, key),
      point: (place) => pointFrom(state, "input", place),
    });
    for (const [place, cell] of state.cells.input.entries()) cell.disabled = !placesToSet(place, state.known).length;
    const first = state.cells.input.find((cell) => !cell.disabled);
    state.cells.input[0].tabIndex = -1;
    if (first) first.tabIndex = 0;
  }
  state.cells.output = fillCells(byId("output"), target, {
    press: (place) => pointFrom(state, "output", place),
    type: () => false,
    point: (place) => pointFrom(state, "output", place),
  });
  showEntries(state);
}

const say = (id, words) => byId(id).replaceChildren(make("p", { class: "hint" }, words));
const tooManyWords = (count) =>
  `${withCommas(count)} entries; up to ${MOST_ENTRIES} are drawn. Choose fewer nodes.`;

// `number` is that of the tensor, where there are several.
const titleOf = (word, shape, number) => `${word}${number === null ? "" : ` [${number}]`}${shape && `: ${shape}`}`;

// What was drawn for these nodes before, or an example.
function entriesFor(state, source) {
  const { lengths, groups, hollow } = state.known;
  const key = [source, lengths, groups, hollow].join("|");
  if (!state.drawn.has(key)) state.drawn.set(key, filledInput(state.known, FILLS.example));
  return state.drawn.get(key);
}

function setEntry(state, place, value) {
  for (const same of placesToSet(place, state.known)) state.entries[same] = value;
  showEntries(state);
  pointFrom(state, "input", place);
}

function typeEntry(state, place, key) {
  if (/^[0-9]$/.test(key)) setEntry(state, place, Number(key));
  else if (key === "-") setEntry(state, place, -state.entries[place]);
  else return false;
  return true;
}

function fillInput(state, name) {
  if (!state.matrix || isBias(state.chosen.diagram)) return;
  filledInput(state.known, FILLS[name]).forEach((value, place) => (state.entries[place] = value));
  showEntries(state);
}

function showEntries(state) {
  const isConstant = isBias(state.chosen.diagram);
  const entries = isConstant ? [1] : state.entries;
  const output = applyMatrix(state.matrix, entries);
  const largest = (values) => Math.max(1, ...values.map(Math.abs));
  if (!isConstant) showValues(state.cells.input, entries, "x", largest(entries));
  showValues(state.cells.output, output, "y", largest(output));
}

// Show what an entry of the output reads, or where one of the input goes.
function pointFrom(state, side, place) {
  if (!state.matrix) return;
  const { rows, columns, values } = state.matrix;
  const from = place === null ? null : side;
  const reads = (row) => [...Array(columns).keys()].filter((column) => values[row * columns + column]);
  const reaches = (column) => [...Array(rows).keys()].filter((row) => values[row * columns + column]);
  const others = from === "output" ? reads(place) : from === "input" ? reaches(place) : [];
  pointAt(state.cells.input, new Set(from === "output" ? others : []));
  pointAt(state.cells.output, new Set(from === "input" ? others : []));
  byId("reading").textContent = from === null ? "" : readingWords(state, from, place, others);
  const svg = byId("matrix").querySelector("svg");
  if (!svg || isBias(state.chosen.diagram)) return;
  markMatrix(svg, state.matrix, from === "output" ? { row: place } : from === "input" ? { column: place } : {});
}

function readingWords(state, from, place, others) {
  const own = state.cells[from][place];
  if (isBias(state.chosen.diagram)) return own.getAttribute("aria-label");
  const [name, cells] = from === "output" ? ["x", state.cells.input] : ["y", state.cells.output];
  const some = others.slice(0, 6).map((other) => `${name}[${cells[other].dataset.index}]`);
  if (others.length > 6) some[5] = `${others.length - 5} more`;
  const verb = from === "output" ? "reads" : "goes to";
  return `${own.getAttribute("aria-label")}; ${verb} ${some.length ? listed(some) : "nothing"}`;
}

function showMatrix(state) {
  const { diagram } = state.chosen;
  const { rows, columns } = extentOf(state, diagram);
  byId("matrix-title").textContent = isBias(diagram)
    ? "As a matrix"
    : `Matrix, ${withCommas(rows)} × ${withCommas(columns)}`;
  if (rows > MOST_ROWS || columns > MOST_ROWS) {
    say("matrix", `A picture shows up to ${MOST_ROWS} rows and columns. Choose fewer nodes.`);
    byId("matrix-hint").textContent = "";
    return;
  }
  const matrix = matrixShown(state, diagram);
  const cell = cellSide(matrix, 260, 18);
  const nonZero = matrix.values.filter(Boolean).length;
  const label = `matrix of ${rows} rows and ${columns} columns, ${nonZero} of its entries not zero`;
  byId("matrix").replaceChildren(drawMatrix(matrix, { cell, bias: isBias(diagram), label }));
  const agree = state.basis === "orbit" ? "exactly" : "at least";
  byId("matrix-hint").textContent = isBias(diagram)
    ? `The first slot counts rows; filled where the indices agree ${agree} as the letters say.`
    : `Rows are output indices, columns input indices; filled where the indices agree ${agree} as the letters say.`;
}
