// All maps, grouped by rank, highest first; one is chosen, by pointer or by arrow keys.

const MOST_CARDS = 210; // more maps are shown a few of each rank at a time
const FEW = 24;
const MOST_CELLS = 4096; // of a matrix on a card

function fillGallery(state) {
  const { plan } = state;
  const groups = groupsOf(plan);
  byId("gallery").replaceChildren(...groups.map((group) => makeGroup(state, group)));
  byId("legend").textContent = legendOf(state);
  const card = byId("gallery").querySelector(":checked")?.closest(".card");
  if (card) bringIntoView(card);
}

// On narrow pages a rank is a strip, of which the chosen map shall be seen.
function bringIntoView(card) {
  const strip = card.parentElement;
  const right = card.offsetLeft - strip.offsetLeft + card.offsetWidth;
  if (right > strip.clientWidth) strip.scrollLeft = right - strip.clientWidth / 2;
}

// { title, diagrams, kind } of every rank, and of the biases.
function groupsOf(plan) {
  const biases = plan.biases.length
    ? [{ title: counted(plan.biases.length, "bias", "biases"), diagrams: plan.biases, kind: "bias" }]
    : [];
  if (plan.levels === null) {
    return [{ title: `the first ${plan.diagrams.length} of ${plan.count} maps`, diagrams: plan.diagrams, kind: "map" }];
  }
  const ranks = [...plan.levels].reverse().map((level) => ({
    title: `${rankInWords(plan.spec, level.rank)}: ${counted(level.diagrams.length, "map", "maps")}`,
    diagrams: level.diagrams,
    kind: "map",
  }));
  return [...ranks, ...biases];
}

function rankInWords(spec, rank) {
  const sets = nodeSetsOf(spec);
  if (sets.length <= 1) return `rank ${rank.reduce((sum, one) => sum + one, 0)}`;
  // A node set on one side only never crosses.
  const onBoth = (name) => spec.sources.flat().includes(name) && spec.targets.flat().includes(name);
  const ranks = sets.map((name, set) => [name, rank[set]]).filter(([name]) => onBoth(name));
  return `rank ${ranks.map(([name, one]) => `${one} in ${name}`).join(", ") || "0"}`;
}

function makeGroup(state, { title, diagrams, kind }) {
  const isMany = state.plan.diagrams.length > MOST_CARDS;
  const cards = make("div", { class: "cards" });
  const group = make("fieldset", { class: `rank ${kind}` }, make("legend", {}, title), cards);
  let nShown = 0;
  const show = (more) => {
    cards.append(...diagrams.slice(nShown, nShown + more).map((diagram) => makeCard(state, diagram, kind)));
    nShown = Math.min(nShown + more, diagrams.length);
    const left = diagrams.length - nShown;
    group.querySelector(".more")?.remove();
    if (!left) return;
    const words = `${withCommas(left)} left out; show ${Math.min(left, 2 * FEW)} more`;
    const button = make("button", { type: "button", class: "more" }, words);
    button.onclick = () => {
      const first = nShown;
      show(2 * FEW);
      cards.children[first].querySelector("input").focus();
    };
    group.append(button);
  };
  show(isMany ? FEW : diagrams.length);
  return group;
}

function makeCard(state, diagram, kind) {
  const isChosen = state.chosen.kind === kind && state.chosen.diagram.number === diagram.number;
  const input = make("input", { type: "radio", name: "map", class: "unseen", checked: isChosen });
  input.setAttribute("aria-label", [betweenOf(state, diagram), diagram.name, wordsHere(state, diagram)].filter(Boolean).join(", "));
  input.onchange = () => choose(state, kind, diagram);
  const between = betweenOf(state, diagram);
  const name = make("span", { class: "name" }, diagram.name);
  const above = between ? [make("span", { class: "between" }, between)] : [];
  return make("label", { class: "card", title: wordsHere(state, diagram) }, input, pictureOf(state, diagram), ...above, name);
}

function pictureOf(state, diagram) {
  const isBias = diagram.source === null;
  if (state.view === "matrices") {
    const { rows, columns } = extentOf(state, diagram);
    if (rows * columns > MOST_CELLS) return make("span", { class: "too-large" }, `${rows} × ${columns}`);
    const matrix = matrixShown(state, diagram);
    return drawMatrix(matrix, { cell: cellSide(matrix, 84, 14), bias: isBias });
  }
  return drawStrands(diagram);
}

// Between which of several tensors a map is.
function betweenOf({ plan }, diagram) {
  if (isSingle(plan.spec)) return "";
  return diagram.source === null ? `to [${diagram.target}]` : `[${diagram.source}] to [${diagram.target}]`;
}

const wordsHere = (state, diagram) =>
  diagram.source === null ? wordsOfBias(diagram) : wordsOf(diagram, { means: areMeans(state) });

function legendOf(state) {
  const sets = nodeSetsOf(state.plan.spec);
  const markers = sets.map((name, set) => `${markerOf(set)} ${name}`).join("  ");
  if (state.view === "matrices") {
    const sizes = sets.map((name) => `${name} = ${state.sizes[name]}`).join(", ");
    return `Rows are output indices, columns input indices, the last slot fastest${sizes ? `; ${sizes}` : ""}.`;
  }
  return (
    "Input slots above, output slots below; joined slots hold the same node. Grey is summed above, repeated below." +
    (sets.length > 1 ? ` ${markers}` : "")
  );
}
