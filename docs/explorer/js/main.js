// The entry point: the state of the page, event listeners, and the initial spec.

const state = {
  plan: null,
  sizes: {}, // the number of nodes of each node set
  order: null,
  selected: null, // { kind, diagram }
  view: "diagrams",
  basis: "diagram",
  normalize: "mean",
  inputs: new Map(), // entries of the inputs, by sizes and constraints
};

function setSpec(text) {
  byId("spec").value = text;
  updateSpec(state);
}

byId("spec").addEventListener("input", () => updateSpec(state));
byId("symmetric").addEventListener("change", () => updateSpec(state));
byId("hollow").addEventListener("change", () => updateSpec(state));

byId("arrow").addEventListener("click", () => {
  const field = byId("spec");
  const before = field.value.slice(0, field.selectionStart);
  const gap = before && !before.endsWith(" ") ? " " : "";
  field.setRangeText(`${gap}-> `, field.selectionStart, field.selectionEnd, "end");
  field.focus();
  updateSpec(state);
});

byId("examples").append(
  ...EXAMPLES.map((text) => {
    const button = makeHtml("button", { type: "button" }, text);
    button.onclick = () => setSpec(text);
    return button;
  }),
);

for (const name of ["view", "basis", "normalize"]) {
  byId(name).addEventListener("change", () => {
    state[name] = checkedValue(name);
    renderGallery(state);
    renderSelected(state);
  });
}

byId("presets").addEventListener("click", ({ target }) => {
  if (target.value) fillInput(state, target.value);
});

window.addEventListener("hashchange", () => {
  const text = readUrlHash();
  if (text && text !== byId("spec").value) setSpec(text);
});

setSpec(readUrlHash() || byId("spec").value);
