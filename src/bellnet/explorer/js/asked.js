// What was asked for: the spec is read at every change, and everything else follows, or the mistake is shown.

const EXAMPLES = [
  "n n -> n n",
  "n n -> n",
  "n n ->",
  "n n n -> n",
  "u u i -> u i",
  "n n, n -> n n, n",
  "{n n} -> {n n}",
];
const FIRST_FEW = 24;
const MOST_DRAWN_SLOTS = 24;
const SIZES = [1, 2, 3, 4, 5, 6, 7, 8];

// The plan for a text, with what is to be said of it: { message, doubt, plan }.
function answerTo(text, declared) {
  let spec;
  try {
    spec = parseSpec(text);
  } catch (error) {
    if (!(error instanceof SpecMistake)) throw error;
    return { message: error.message, doubt: null, plan: null };
  }
  const nMaps = countMaps(spec, declared);
  const message = giantWords(spec, nMaps);
  const doubt = doubtAbout(spec);
  if (message === null) return { message, doubt, plan: makePlan(spec, declared) };
  if (slotsOf(spec).length > MOST_DRAWN_SLOTS) return { message, doubt, plan: null };
  const diagrams = diagramsOf(spec, declared, FIRST_FEW);
  return { message, doubt, plan: { spec, ...declared, diagrams, biases: [], levels: null, count: shortCount(nMaps) } };
}

function ask(state) {
  const text = byId("spec").value;
  const declared = { symmetric: byId("symmetric").checked, hollow: byId("hollow").checked };
  const { message, doubt, plan } = answerTo(text, declared);
  byId("spec").setAttribute("aria-invalid", String(message !== null));
  byId("message").hidden = message === null;
  byId("message").textContent = message ?? "";
  byId("doubt").hidden = doubt === null;
  byId("doubt").textContent = doubt ?? "";
  const isWhole = plan !== null && plan.levels !== null;
  byId("table").replaceChildren(...(isWhole ? [makeTable(plan)] : []));
  byId("as-text").classList.toggle("absent", !isWhole);
  for (const id of ["maps", "chosen"]) byId(id).inert = plan === null;
  byId("status").textContent = isWhole ? factsOf(plan)[0] : message.split("\n")[0];
  if (plan === null) return;
  if (isWhole) byId("text").textContent = textInPython(plan);
  keepInAddress(text);
  state.plan = plan;
  state.sizes = sizesFor(state, plan.spec);
  state.chosen = { kind: "map", diagram: mapToBeginWith(plan, state.chosen?.diagram.name) };
  fillSizes(state);
  fillGallery(state);
  showChosen(state);
}

function makeTable(plan) {
  const saved = savedWords(plan);
  const [counts, ...others] = factsOf(plan);
  const caption = make(
    "caption",
    {},
    make("span", { class: "name" }, textOfSpec(plan.spec)),
    make("strong", {}, counts),
    ...others.map((words) => make("span", { class: "soft" }, words)),
  );
  const cell = (head, content) =>
    make("td", { class: head }, ...[content].flat().flatMap((name, at) => [at ? " " : "", make("span", {}, name)]));
  const rows = rowsOf(plan).map((row) =>
    make(
      "tr",
      {},
      ...HEADS.map((head) => (head === "rank" ? make("th", { scope: "row", class: head }, row[head]) : cell(head, row[head]))),
    ),
  );
  const heads = HEADS.map((head) => make("th", { scope: "col", class: head }, head));
  const foot = saved ? [make("tfoot", {}, make("tr", {}, make("td", { colspan: "5" }, saved)))] : [];
  return make("table", {}, caption, make("thead", {}, make("tr", {}, ...heads)), make("tbody", {}, ...rows), ...foot);
}

function textInPython(plan) {
  const text = textOfSpec(plan.spec);
  const known = ["symmetric", "hollow"].filter((name) => plan[name]).map((name) => `, ${name}=True`).join("");
  return (
    `>>> import bellnet as bn\n>>> print(bn.plan("${text}"${known}))\n${textOfPlan(plan)}\n` +
    `>>> layer = bn.EquivariantLinear("${text}", 16, 32${known})  # channels in and out`
  );
}

// A map that shows something: one that sums and carries, the same as before if there is one of that name.
function mapToBeginWith({ diagrams }, name) {
  const tells = ({ above, crossing }) =>
    crossing.length > 0 && crossing.length < above.length && new Set(above).size === above.length;
  return (
    diagrams.find((diagram) => diagram.name === name) ??
    diagrams.find(tells) ??
    diagrams.find(({ above }) => new Set(above).size === above.length) ??
    diagrams[0]
  );
}

// As many nodes as before, or as many as can be seen well.
function sizesFor(state, spec) {
  const order = Math.max(...shapesOf(spec).map((shape) => shape.length));
  const usual = order <= 2 ? 5 : order === 3 ? 4 : order === 4 ? 3 : 2;
  const isSame = String(nodeSetsOf(spec)) === String(Object.keys(state.sizes)) && order === state.order;
  state.order = order;
  return isSame ? state.sizes : Object.fromEntries(nodeSetsOf(spec).map((name, set) => [name, Math.max(2, usual - set)]));
}

function fillSizes(state) {
  const fields = nodeSetsOf(state.plan.spec).map((name) => {
    const choices = SIZES.map((size) => make("option", { value: size, selected: size === state.sizes[name] }, String(size)));
    const field = make("select", { "aria-label": `number of nodes of ${name}` }, ...choices);
    field.onchange = () => {
      state.sizes[name] = Number(field.value);
      if (state.view === "matrices") fillGallery(state);
      showChosen(state);
    };
    return make("label", {}, make("span", { class: "name" }, `${name} =`), field);
  });
  byId("sizes").replaceChildren(...fields);
}

// The address carries the spec, so that it can be kept and shared.
function keepInAddress(text) {
  const hash = `#${encodeURIComponent(text)}`;
  if (location.hash === hash) return;
  try {
    history.replaceState(null, "", hash);
  } catch {
    // Where a page may not change its address, it is not changed.
  }
}

const textInAddress = () => {
  try {
    return decodeURIComponent(location.hash.slice(1));
  } catch {
    return ""; // not written by this page
  }
};
