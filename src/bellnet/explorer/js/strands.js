// One diagram as dots and lines: source slots in an upper row, target slots in a lower one, equal nodes joined.
//
// A block that crosses from source to target has a colour of its own; the number of those is the rank. Blocks that do
// not cross are grey: above they are summed over, below repeated along. A slot alone in its block and not crossing is an
// open dot. The shape of a dot is its node set.

const SLOT = 24;
const DEPTH = 42;
const AROUND = 11;
const LETTER = 13; // room for a letter beside a dot
const COLORS = 6;
const MARKERS = ["●", "■", "◆", "▲", "▼", "✚", "✖"];
const OUTLINES = [
  "M-4 0a4 4 0 1 0 8 0a4 4 0 1 0 -8 0",
  "M-3.6 -3.6h7.2v7.2h-7.2z",
  "M0 -5L5 0L0 5L-5 0z",
  "M0 -4.6L4.6 3.8H-4.6z",
  "M0 4.6L4.6 -3.8H-4.6z",
  "M-1.6 -4.6h3.2v3h3v3.2h-3v3h-3.2v-3h-3v-3.2h3z",
  "M-4.4 -2.4l2-2L0 -2l2.4 -2.4l2 2L2 0l2.4 2.4l-2 2L0 2l-2.4 2.4l-2 -2L-2 0z",
];

const markerOf = (set) => MARKERS[set % MARKERS.length];

// The picture; `large` has room for the letters of the name.
function drawStrands(diagram, { large = false } = {}) {
  const [nSource, nTarget] = [diagram.above.length, diagram.below.length];
  const room = large ? LETTER : 0;
  const width = (Math.max(nSource, nTarget, 1) - 1) * SLOT + 4 * AROUND;
  const places = [...rowOfPlaces(nSource, width, 0), ...rowOfPlaces(nTarget, width, DEPTH)];
  const isConstant = diagram.source === null;
  const svg = makeSvg("svg", {
    class: `strands${isConstant ? " bias" : ""}`,
    viewBox: `0 ${-AROUND - room} ${width} ${DEPTH + 2 * (AROUND + room)}`,
    width,
    height: DEPTH + 2 * (AROUND + room),
    "aria-hidden": "true",
  });
  for (const y of isConstant ? [DEPTH] : [0, DEPTH]) svg.append(makeSvg("path", { class: "rail", d: `M0 ${y}H${width}` }));
  const sets = [...diagram.sourceSets, ...diagram.targetSets];
  const dots = [];
  blocksOf(diagram.partition).forEach((block, number) => {
    const crossing = diagram.crossing.indexOf(number);
    const color = crossing >= 0 ? `color${crossing % COLORS}` : "grey";
    const [upper, lower] = [block.filter((slot) => slot < nSource), block.filter((slot) => slot >= nSource)];
    const line = (d) => svg.append(makeSvg("path", { class: `strand ${color}`, d }));
    for (const [row, inwards] of [[upper, 1], [lower, -1]]) {
      row.slice(1).forEach((slot, before) => line(arc(places[row[before]], places[slot], inwards)));
    }
    if (crossing >= 0) line(crossingLine(...closest(upper, lower, places)));
    for (const slot of block) {
      const isOpen = crossing < 0 && block.length === 1;
      const [x, y] = places[slot];
      const d = OUTLINES[sets[slot] % OUTLINES.length];
      dots.push(makeSvg("path", { class: `dot ${color}${isOpen ? " open" : ""}`, d, transform: `translate(${x} ${y})` }));
      const [side, letter] = [slot < nSource ? -9 : 18, letters([number])];
      if (large) dots.push(makeSvg("text", { class: `letter ${color}`, x, y: y + side }, letter));
    }
  });
  svg.append(...dots);
  return svg;
}

function rowOfPlaces(count, width, y) {
  const left = (width - (count - 1) * SLOT) / 2;
  return Array.from({ length: count }, (_, number) => [left + number * SLOT, y]);
}

function closest(upper, lower, places) {
  const pairs = upper.flatMap((above) => lower.map((below) => [places[above], places[below]]));
  const apart = ([above, below]) => Math.abs(above[0] - below[0]);
  return pairs.reduce((best, pair) => (apart(pair) < apart(best) ? pair : best));
}

function arc([x, y], [end], inwards) {
  const depth = y + inwards * Math.min(0.6 * (end - x), 0.58 * DEPTH);
  return `M${x} ${y}C${x} ${depth} ${end} ${depth} ${end} ${y}`;
}

function crossingLine([x, y], [end, below]) {
  const middle = (y + below) / 2;
  return `M${x} ${y}C${x} ${middle} ${end} ${middle} ${end} ${below}`;
}
