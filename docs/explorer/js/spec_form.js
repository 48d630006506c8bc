// The form with the spec: on every change the spec is parsed and the page updated, or the error shown.

const EXAMPLES = [
  "n n -> n n",
  "n n -> n",
  "n n ->",
  "n n n -> n",
  "u u i -> u i",
  "n n, n -> n n, n",
  "{n n} -> {n n}",
];
const MAX_MAPS_OF_LARGE_SPEC = 24;
const MAX_DRAWN_SLOTS = 24;
const NODE_COUNTS = [1, 2, 3, 4, 5, 6, 7, 8];

// The result for a text: { error, warning, plan }, each of them or null.
function evaluateSpec(text, declared) {
  let spec;
  try {
    spec = parseSpec(text);
  } catch (error) {
    if (!(error instanceof SpecError)) throw error;
    return { error: error.message, warning: null, plan: null };
  }
  const nMaps = countMaps(spec, declared);
  const error = sizeLimitError(spec, nMaps);
  const warning = lintSpec(spec);
  if (error === null) return { error, warning, plan: makePlan(spec, declared) };
  if (slotsOf(spec).length > MAX_DRAWN_SLOTS) return { error, warning, plan: null };
  const diagrams = makeDiagrams(spec, declared, MAX_MAPS_OF_LARGE_SPEC);
  return { error, warning, plan: { spec, ...declared, diagrams, biases: [], levels: null, count: formatLargeCount(nMaps) } };
}

function updateSpec(state) {
  const text = byId("spec").value;
  const declared = { symmetric: byId("symmetric").checked, hollow: byId("hollow").checked };
  const { error, warning, plan } = evaluateSpec(text, declared);
  byId("spec").setAttribute("aria-invalid", String(error !== null));
  byId("error").hidden = error === null;
  byId("error").textContent = error ?? "";
  byId("warning").hidden = warning === null;
  byId("warning").textContent = warning ?? "";
  const hasLevels = plan !== null && plan.levels !== null;
  byId("table").replaceChildren(...(hasLevels ? [makeTable(plan)] : []));
  byId("as-text").classList.toggle("invisible", !hasLevels);
  for (const id of ["maps", "selected"]) byId(id).inert = plan === null;
  byId("status").textContent = hasLevels ? planSummary(plan)[0] : error.split("\n")[0];
  if (plan === null) return;
  if (hasLevels) byId("text").textContent = pythonExample(plan);
  writeUrlHash(text);
  state.plan = plan;
  state.sizes = initialSizes(state, plan.spec);
  state.selected = { kind: "map", diagram: initialMap(plan, state.selected?.diagram.name) };
  renderSizes(state);
  renderGallery(state);
  renderSelected(state);
}

function makeTable(plan) {
  const savings = unorderedSummary(plan);
  const [counts, ...others] = planSummary(plan);
  const caption = makeHtml(
    "caption",
    {},
    makeHtml("span", { class: "name" }, formatSpec(plan.spec)),
    makeHtml("strong", {}, counts),
    ...others.map((words) => makeHtml("span", { class: "soft" }, words)),
  );
  const cell = (head, content) => {
    if (head === "rank") return makeHtml("th", { scope: "row", class: head }, content);
    const names = [content].flat().flatMap((name, at) => [at ? " " : "", makeHtml("span", {}, name)]);
    return makeHtml("td", { class: head }, ...names);
  };
  const rows = tableRows(plan).map((row) =>
    makeHtml(
      "tr",
      {},
      ...COLUMNS.map((head) => cell(head, row[head])),
    ),
  );
  const heads = COLUMNS.map((head) => makeHtml("th", { scope: "col", class: head }, head));
  const foot = savings ? [makeHtml("tfoot", {}, makeHtml("tr", {}, makeHtml("td", { colspan: "5" }, savings)))] : [];
  const body = [makeHtml("thead", {}, makeHtml("tr", {}, ...heads)), makeHtml("tbody", {}, ...rows), ...foot];
  return makeHtml("table", {}, caption, ...body);
}

function pythonExample(plan) {
  const text = formatSpec(plan.spec);
  const declared = ["symmetric", "hollow"].filter((name) => plan[name]).map((name) => `, ${name}=True`).join("");
  return (
    `>>> import bellnet as bn\n>>> print(bn.plan("${text}"${declared}))\n${formatPlan(plan)}\n` +
    `>>> layer = bn.EquivariantLinear("${text}", 16, 32${declared})  # channels in and out`
  );
}

// The map that is selected first: the one with this name, or else one with both crossing and summed blocks.
function initialMap({ diagrams }, name) {
  const isTypical = ({ sourceLabels, crossing }) =>
    crossing.length > 0 && crossing.length < sourceLabels.length && new Set(sourceLabels).size === sourceLabels.length;
  return (
    diagrams.find((diagram) => diagram.name === name) ??
    diagrams.find(isTypical) ??
    diagrams.find(({ sourceLabels }) => new Set(sourceLabels).size === sourceLabels.length) ??
    diagrams[0]
  );
}

// The current numbers of nodes if node sets and order are unchanged, or else numbers that are easy to read.
function initialSizes(state, spec) {
  const order = Math.max(...shapesOf(spec).map((shape) => shape.length));
  const usual = order <= 2 ? 5 : order === 3 ? 4 : order === 4 ? 3 : 2;
  const isSame = String(nodeSetsOf(spec)) === String(Object.keys(state.sizes)) && order === state.order;
  state.order = order;
  return isSame ? state.sizes : Object.fromEntries(nodeSetsOf(spec).map((name, set) => [name, Math.max(2, usual - set)]));
}

function renderSizes(state) {
  const fields = nodeSetsOf(state.plan.spec).map((name) => {
    const makeOption = (size) => makeHtml("option", { value: size, selected: size === state.sizes[name] }, String(size));
    const choices = NODE_COUNTS.map(makeOption);
    const field = makeHtml("select", { "aria-label": `number of nodes of ${name}` }, ...choices);
    field.onchange = () => {
      state.sizes[name] = Number(field.value);
      if (state.view === "matrices") renderGallery(state);
      renderSelected(state);
    };
    return makeHtml("label", {}, makeHtml("span", { class: "name" }, `${name} =`), field);
  });
  byId("sizes").replaceChildren(...fields);
}

// The URL contains the spec, so that it can be bookmarked and shared.
function writeUrlHash(text) {
  const hash = `#${encodeURIComponent(text)}`;
  if (location.hash === hash) return;
  try {
    history.replaceState(null, "", hash);
  } catch {
    // Some browsers do not allow a page to change its URL.
  }
}

const readUrlHash = () => {
  try {
    return decodeURIComponent(location.hash.slice(1));
  } catch {
    return ""; // not written by this page
  }
};
