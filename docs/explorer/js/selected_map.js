// The selected map: its diagram and description, its matrix, and its output for an editable input.

function selectMap(state, kind, diagram) {
  state.selected = { kind, diagram };
  renderSelected(state);
}

const isBias = (diagram) => diagram.source === null;

function matrixShape({ plan, sizes }, diagram) {
  const source = isBias(diagram) ? [] : axisLengths(plan.spec.sources[diagram.source], sizes);
  const target = axisLengths(plan.spec.targets[diagram.target], sizes);
  return { rows: numel(target), columns: numel(source), source, target };
}

const currentMatrix = (state, diagram) =>
  basisMatrix(state.plan.spec, diagram, state.sizes, { basis: state.basis, means: usesMeans(state) });

// The matrix as drawn; for a bias the first slot gives the rows and the other slots the columns.
function drawnMatrix(state, diagram) {
  const matrix = currentMatrix(state, diagram);
  if (!isBias(diagram)) return matrix;
  const rows = matrix.target.length ? matrix.target[0] : 1;
  return { ...matrix, rows, columns: matrix.rows / rows, target: [rows], source: matrix.target.slice(1) };
}

function renderSelected(state) {
  const { diagram } = state.selected;
  const between = pairLabel(state, diagram);
  const kind = isBias(diagram) ? "bias" : "map";
  byId("selected-title").replaceChildren(
    makeHtml("span", { class: "name" }, diagram.name),
    makeHtml("span", { class: "soft" }, ` ${kind} ${diagram.number}${between ? `, ${between}` : ""}`),
  );
  byId("description").textContent = isBias(diagram) ? describeBias(diagram) : describeMap(diagram, { means: usesMeans(state) });
  byId("steps").textContent = currentSteps(state, diagram);
  byId("picture").replaceChildren(drawDiagram(diagram, { large: true }));
  byId("normalize").disabled = state.basis === "orbit";
  renderTensors(state);
  renderMatrix(state);
}

const usesMeans = (state) => state.basis === "diagram" && state.normalize === "mean";

function currentSteps(state, diagram) {
  const steps = [isBias(diagram) ? "a constant, whatever goes in" : describeSteps(diagram)];
  if (state.basis === "orbit" && new Set(diagram.partition).size > 1) steps.push("different letters are different nodes");
  if (specOfBias(state.plan.spec, diagram.target).unordered.length) {
    steps.push("then the average over exchanges of the slots in braces");
  }
  return steps.join("; ");
}

function renderTensors(state) {
  const { diagram } = state.selected;
  const { source, target, rows, columns } = matrixShape(state, diagram);
  byId("input-side").hidden = isBias(diagram);
  const pair = specOfPair(state.plan.spec, diagram.source, diagram.target);
  const { sources, targets } = state.plan.spec;
  const shapes = [formatShapes(pair.sources, pair.unordered), formatShapes(pair.targets, pair.unordered, source.length)];
  byId("input-title").textContent = tensorTitle("Input", shapes[0], sources.length > 1 ? diagram.source : null);
  byId("output-title").textContent = tensorTitle("Output", shapes[1], targets.length > 1 ? diagram.target : null);
  byId("entry-info").textContent = "";
  const tooMany = [isBias(diagram) ? 0 : columns, rows].map((count) => count > MAX_ENTRIES);
  byId("presets").hidden = isBias(diagram) || tooMany[0] || tooMany[1];
  state.cells = { input: [], output: [] };
  state.matrix = null;
  if (tooMany[0] || tooMany[1]) {
    showHint("input", tooMany[0] ? tooManyEntries(columns) : "");
    showHint("output", tooMany[1] ? tooManyEntries(rows) : "");
    return;
  }
  state.matrix = currentMatrix(state, diagram);
  if (!isBias(diagram)) {
    state.constraints = inputConstraints(state.plan, diagram.source, state.sizes);
    state.entries = inputEntries(state, diagram.source);
    state.cells.input = renderCells(byId("input"), source, {
      onPress: (position) => setEntry(state, position, state.entries[position] ? 0 : 1),
      onKey: (position, key) => setEntryByKey(state, position, key),
      onPoint: (position) => highlightRelated(state, "input", position),
    });
    state.cells.input.forEach((cell, position) => (cell.disabled = !linkedEntries(position, state.constraints).length));
    const first = state.cells.input.find((cell) => !cell.disabled);
    state.cells.input[0].tabIndex = -1;
    if (first) first.tabIndex = 0;
  }
  state.cells.output = renderCells(byId("output"), target, {
    onPress: (position) => highlightRelated(state, "output", position),
    onKey: () => false,
    onPoint: (position) => highlightRelated(state, "output", position),
  });
  renderEntries(state);
}

const showHint = (id, words) => byId(id).replaceChildren(makeHtml("p", { class: "hint" }, words));
const tooManyEntries = (count) =>
  `${groupDigits(count)} entries; up to ${MAX_ENTRIES} are drawn. Choose fewer nodes.`;

// `number` is the index of the tensor, or null if there is only one.
const tensorTitle = (word, shape, number) => `${word}${number === null ? "" : ` [${number}]`}${shape && `: ${shape}`}`;

// The last input for these sizes and constraints; an example if there is none.
function inputEntries(state, source) {
  const { lengths, groups, hollow } = state.constraints;
  const key = [source, lengths, groups, hollow].join("|");
  if (!state.inputs.has(key)) state.inputs.set(key, fillValues(state.constraints, FILL_VALUES.example));
  return state.inputs.get(key);
}

function setEntry(state, position, value) {
  for (const same of linkedEntries(position, state.constraints)) state.entries[same] = value;
  renderEntries(state);
  highlightRelated(state, "input", position);
}

function setEntryByKey(state, position, key) {
  if (/^[0-9]$/.test(key)) setEntry(state, position, Number(key));
  else if (key === "-") setEntry(state, position, -state.entries[position]);
  else return false;
  return true;
}

function fillInput(state, name) {
  if (!state.matrix || isBias(state.selected.diagram)) return;
  fillValues(state.constraints, FILL_VALUES[name]).forEach((value, position) => (state.entries[position] = value));
  renderEntries(state);
}

function renderEntries(state) {
  const isConstant = isBias(state.selected.diagram);
  const entries = isConstant ? [1] : state.entries;
  const output = applyMatrix(state.matrix, entries);
  const largest = (values) => Math.max(1, ...values.map(Math.abs));
  if (!isConstant) setCellValues(state.cells.input, entries, "x", largest(entries));
  setCellValues(state.cells.output, output, "y", largest(output));
}

// Highlight the input entries that an output entry depends on, or the output entries that an input entry contributes to.
function highlightRelated(state, side, position) {
  if (!state.matrix) return;
  const { rows, columns, values } = state.matrix;
  const from = position === null ? null : side;
  const reads = (row) => [...Array(columns).keys()].filter((column) => values[row * columns + column]);
  const reaches = (column) => [...Array(rows).keys()].filter((row) => values[row * columns + column]);
  const others = from === "output" ? reads(position) : from === "input" ? reaches(position) : [];
  highlightCells(state.cells.input, new Set(from === "output" ? others : []));
  highlightCells(state.cells.output, new Set(from === "input" ? others : []));
  byId("entry-info").textContent = from === null ? "" : describeEntry(state, from, position, others);
  const svg = byId("matrix").querySelector("svg");
  if (!svg || isBias(state.selected.diagram)) return;
  highlightInMatrix(svg, state.matrix, from === "output" ? { row: position } : from === "input" ? { column: position } : {});
}

function describeEntry(state, from, position, others) {
  const own = state.cells[from][position];
  if (isBias(state.selected.diagram)) return own.getAttribute("aria-label");
  const [name, cells] = from === "output" ? ["x", state.cells.input] : ["y", state.cells.output];
  const some = others.slice(0, 6).map((other) => `${name}[${cells[other].dataset.index}]`);
  if (others.length > 6) some[5] = `${others.length - 5} more`;
  const verb = from === "output" ? "reads" : "goes to";
  return `${own.getAttribute("aria-label")}; ${verb} ${some.length ? joinNames(some) : "nothing"}`;
}

function renderMatrix(state) {
  const { diagram } = state.selected;
  const { rows, columns } = matrixShape(state, diagram);
  byId("matrix-title").textContent = isBias(diagram)
    ? "As a matrix"
    : `Matrix, ${groupDigits(rows)} × ${groupDigits(columns)}`;
  if (rows > MAX_DRAWN_ROWS || columns > MAX_DRAWN_ROWS) {
    showHint("matrix", `A picture shows up to ${MAX_DRAWN_ROWS} rows and columns. Choose fewer nodes.`);
    byId("matrix-hint").textContent = "";
    return;
  }
  const matrix = drawnMatrix(state, diagram);
  const cell = cellSize(matrix, 260, 18);
  const nonZero = matrix.values.filter(Boolean).length;
  const label = `matrix of ${rows} rows and ${columns} columns, ${nonZero} of its entries not zero`;
  byId("matrix").replaceChildren(drawMatrix(matrix, { cell, bias: isBias(diagram), label }));
  const agree = state.basis === "orbit" ? "exactly" : "at least";
  byId("matrix-hint").textContent = isBias(diagram)
    ? `The first slot counts rows; filled where the indices agree ${agree} as the letters say.`
    : `Rows are output indices, columns input indices; filled where the indices agree ${agree} as the letters say.`;
}
