// Where everything begins: what is pressed and typed is listened to, and the first spec is asked.

const state = {
  plan: null,
  sizes: {}, // the number of nodes of every node set
  order: null,
  chosen: null, // { kind, diagram }
  view: "diagrams",
  basis: "diagram",
  normalize: "mean",
  drawn: new Map(), // what was drawn, by the shape of the input
};

function askFor(text) {
  byId("spec").value = text;
  ask(state);
}

byId("spec").addEventListener("input", () => ask(state));
byId("symmetric").addEventListener("change", () => ask(state));
byId("hollow").addEventListener("change", () => ask(state));

byId("arrow").addEventListener("click", () => {
  const field = byId("spec");
  const before = field.value.slice(0, field.selectionStart);
  const gap = before && !before.endsWith(" ") ? " " : "";
  field.setRangeText(`${gap}-> `, field.selectionStart, field.selectionEnd, "end");
  field.focus();
  ask(state);
});

byId("examples").append(
  ...EXAMPLES.map((text) => {
    const button = make("button", { type: "button" }, text);
    button.onclick = () => askFor(text);
    return button;
  }),
);

for (const name of ["view", "basis", "normalize"]) {
  byId(name).addEventListener("change", () => {
    state[name] = chosenOf(name);
    fillGallery(state);
    showChosen(state);
  });
}

byId("presets").addEventListener("click", ({ target }) => {
  if (target.value) fillInput(state, target.value);
});

window.addEventListener("hashchange", () => {
  const text = textInAddress();
  if (text && text !== byId("spec").value) askFor(text);
});

askFor(textInAddress() || byId("spec").value);
