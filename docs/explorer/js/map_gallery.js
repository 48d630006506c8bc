// The gallery of all maps, grouped by rank, highest first; one is selected with the pointer or the arrow keys.

const MAX_CARDS = 210; // with more maps, each rank shows PAGE_SIZE at first
const PAGE_SIZE = 24;
const MAX_CARD_CELLS = 4096; // of a matrix on a card

function renderGallery(state) {
  const { plan } = state;
  const groups = galleryGroups(plan);
  byId("gallery").replaceChildren(...groups.map((group) => makeGroup(state, group)));
  byId("legend").textContent = galleryLegend(state);
  const card = byId("gallery").querySelector(":checked")?.closest(".card");
  if (card) scrollToCard(card);
}

// On narrow screens a rank scrolls horizontally; this shows the selected map.
function scrollToCard(card) {
  const strip = card.parentElement;
  const right = card.offsetLeft - strip.offsetLeft + card.offsetWidth;
  if (right > strip.clientWidth) strip.scrollLeft = right - strip.clientWidth / 2;
}

// { title, diagrams, kind } of each rank and of the biases.
function galleryGroups(plan) {
  const biases = plan.biases.length
    ? [{ title: countNoun(plan.biases.length, "bias", "biases"), diagrams: plan.biases, kind: "bias" }]
    : [];
  if (plan.levels === null) {
    return [{ title: `the first ${plan.diagrams.length} of ${plan.count} maps`, diagrams: plan.diagrams, kind: "map" }];
  }
  const ranks = [...plan.levels].reverse().map((level) => ({
    title: `${formatRank(plan.spec, level.rank)}: ${countNoun(level.diagrams.length, "map", "maps")}`,
    diagrams: level.diagrams,
    kind: "map",
  }));
  return [...ranks, ...biases];
}

function formatRank(spec, rank) {
  const sets = nodeSetsOf(spec);
  if (sets.length <= 1) return `rank ${rank.reduce((sum, one) => sum + one, 0)}`;
  // A node set on one side only never crosses.
  const onBoth = (name) => spec.sources.flat().includes(name) && spec.targets.flat().includes(name);
  const ranks = sets.map((name, set) => [name, rank[set]]).filter(([name]) => onBoth(name));
  return `rank ${ranks.map(([name, one]) => `${one} in ${name}`).join(", ") || "0"}`;
}

function makeGroup(state, { title, diagrams, kind }) {
  const isMany = state.plan.diagrams.length > MAX_CARDS;
  const cards = makeHtml("div", { class: "cards" });
  const group = makeHtml("fieldset", { class: `rank ${kind}` }, makeHtml("legend", {}, title), cards);
  let nShown = 0;
  const show = (more) => {
    cards.append(...diagrams.slice(nShown, nShown + more).map((diagram) => makeCard(state, diagram, kind)));
    nShown = Math.min(nShown + more, diagrams.length);
    const left = diagrams.length - nShown;
    group.querySelector(".more")?.remove();
    if (!left) return;
    const words = `${groupDigits(left)} left out; show ${Math.min(left, 2 * PAGE_SIZE)} more`;
    const button = makeHtml("button", { type: "button", class: "more" }, words);
    button.onclick = () => {
      const first = nShown;
      show(2 * PAGE_SIZE);
      cards.children[first].querySelector("input").focus();
    };
    group.append(button);
  };
  show(isMany ? PAGE_SIZE : diagrams.length);
  return group;
}

function makeCard(state, diagram, kind) {
  const isSelected = state.selected.kind === kind && state.selected.diagram.number === diagram.number;
  const input = makeHtml("input", { type: "radio", name: "map", class: "visually-hidden", checked: isSelected });
  const [pair, description] = [pairLabel(state, diagram), describeCurrent(state, diagram)];
  input.setAttribute("aria-label", [pair, diagram.name, description].filter(Boolean).join(", "));
  input.onchange = () => selectMap(state, kind, diagram);
  const name = makeHtml("span", { class: "name" }, diagram.name);
  const pairLabels = pair ? [makeHtml("span", { class: "pair" }, pair)] : [];
  return makeHtml("label", { class: "card", title: description }, input, drawCard(state, diagram), ...pairLabels, name);
}

function drawCard(state, diagram) {
  const isBias = diagram.source === null;
  if (state.view === "matrices") {
    const { rows, columns } = matrixShape(state, diagram);
    if (rows * columns > MAX_CARD_CELLS) return makeHtml("span", { class: "too-large" }, `${rows} × ${columns}`);
    const matrix = drawnMatrix(state, diagram);
    return drawMatrix(matrix, { cell: cellSize(matrix, 84, 14), bias: isBias });
  }
  return drawDiagram(diagram);
}

// The indices of the source and target tensor of a map; "" if there is one of each.
function pairLabel({ plan }, diagram) {
  if (isSingle(plan.spec)) return "";
  return diagram.source === null ? `to [${diagram.target}]` : `[${diagram.source}] to [${diagram.target}]`;
}

const describeCurrent = (state, diagram) =>
  diagram.source === null ? describeBias(diagram) : describeMap(diagram, { means: usesMeans(state) });

function galleryLegend(state) {
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
