// A diagram as an SVG: source slots in the upper row, target slots in the lower row, lines within each block.
//
// Each crossing block has its own colour; their number is the rank. Other blocks are grey: they are summed over in the
// upper row and broadcast along in the lower row. A slot that is alone in such a block is an open dot. The marker of a
// slot is its node set.

const SLOT_SPACING = 24;
const ROW_SPACING = 42;
const MARGIN = 11;
const LETTER_HEIGHT = 13; // space for a letter above or below a dot
const N_COLORS = 6;
const MARKERS = ["●", "■", "◆", "▲", "▼", "✚", "✖"];
const MARKER_PATHS = [
  "M-4 0a4 4 0 1 0 8 0a4 4 0 1 0 -8 0",
  "M-3.6 -3.6h7.2v7.2h-7.2z",
  "M0 -5L5 0L0 5L-5 0z",
  "M0 -4.6L4.6 3.8H-4.6z",
  "M0 4.6L4.6 -3.8H-4.6z",
  "M-1.6 -4.6h3.2v3h3v3.2h-3v3h-3.2v-3h-3v-3.2h3z",
  "M-4.4 -2.4l2-2L0 -2l2.4 -2.4l2 2L2 0l2.4 2.4l-2 2L0 2l-2.4 2.4l-2 -2L-2 0z",
];

const markerOf = (set) => MARKERS[set % MARKERS.length];

// The picture; with `large` it shows the letters of the name.
function drawDiagram(diagram, { large = false } = {}) {
  const [nSource, nTarget] = [diagram.sourceLabels.length, diagram.targetLabels.length];
  const letterHeight = large ? LETTER_HEIGHT : 0;
  const width = (Math.max(nSource, nTarget, 1) - 1) * SLOT_SPACING + 4 * MARGIN;
  const positions = [...rowPositions(nSource, width, 0), ...rowPositions(nTarget, width, ROW_SPACING)];
  const isConstant = diagram.source === null;
  const svg = makeSvg("svg", {
    class: `diagram${isConstant ? " bias" : ""}`,
    viewBox: `0 ${-MARGIN - letterHeight} ${width} ${ROW_SPACING + 2 * (MARGIN + letterHeight)}`,
    width,
    height: ROW_SPACING + 2 * (MARGIN + letterHeight),
    "aria-hidden": "true",
  });
  const rails = isConstant ? [ROW_SPACING] : [0, ROW_SPACING];
  for (const y of rails) svg.append(makeSvg("path", { class: "rail", d: `M0 ${y}H${width}` }));
  const sets = [...diagram.sourceSets, ...diagram.targetSets];
  const dots = [];
  blocksOf(diagram.partition).forEach((block, number) => {
    const crossing = diagram.crossing.indexOf(number);
    const color = crossing >= 0 ? `color${crossing % N_COLORS}` : "grey";
    const [upper, lower] = [block.filter((slot) => slot < nSource), block.filter((slot) => slot >= nSource)];
    const line = (d) => svg.append(makeSvg("path", { class: `line ${color}`, d }));
    for (const [row, inwards] of [[upper, 1], [lower, -1]]) {
      row.slice(1).forEach((slot, before) => line(arc(positions[row[before]], positions[slot], inwards)));
    }
    if (crossing >= 0) line(crossingLine(...closestPair(upper, lower, positions)));
    for (const slot of block) {
      const isOpen = crossing < 0 && block.length === 1;
      const [x, y] = positions[slot];
      const d = MARKER_PATHS[sets[slot] % MARKER_PATHS.length];
      dots.push(makeSvg("path", { class: `dot ${color}${isOpen ? " open" : ""}`, d, transform: `translate(${x} ${y})` }));
      const [side, letter] = [slot < nSource ? -9 : 18, letters([number])];
      if (large) dots.push(makeSvg("text", { class: `letter ${color}`, x, y: y + side }, letter));
    }
  });
  svg.append(...dots);
  return svg;
}

function rowPositions(count, width, y) {
  const left = (width - (count - 1) * SLOT_SPACING) / 2;
  return Array.from({ length: count }, (_, number) => [left + number * SLOT_SPACING, y]);
}

function closestPair(upper, lower, positions) {
  const pairs = upper.flatMap((above) => lower.map((below) => [positions[above], positions[below]]));
  const distance = ([above, below]) => Math.abs(above[0] - below[0]);
  return pairs.reduce((best, pair) => (distance(pair) < distance(best) ? pair : best));
}

function arc([x, y], [end], inwards) {
  const depth = y + inwards * Math.min(0.6 * (end - x), 0.58 * ROW_SPACING);
  return `M${x} ${y}C${x} ${depth} ${end} ${depth} ${end} ${y}`;
}

function crossingLine([x, y], [end, below]) {
  const middle = (y + below) / 2;
  return `M${x} ${y}C${x} ${middle} ${end} ${middle} ${end} ${below}`;
}
