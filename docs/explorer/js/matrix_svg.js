// A matrix as an SVG: bold lines separate the indices of the first slot, fine lines the single cells.

const MAX_DRAWN_ROWS = 256;

function drawMatrix(matrix, { cell, bias = false, label = null }) {
  const { rows, columns, values, source, target } = matrix;
  const svg = makeSvg("svg", {
    class: `matrix${bias ? " bias" : ""}`,
    viewBox: `0 0 ${columns} ${rows}`,
    width: columns * cell,
    height: rows * cell,
    ...(label ? { role: "img", "aria-label": label } : { "aria-hidden": "true" }),
  });
  const largest = Math.max(...values, 1e-9);
  for (const [value, d] of pathsByValue(matrix)) {
    svg.append(makeSvg("path", { class: "entry", d, "fill-opacity": (value / largest).toFixed(3) }));
  }
  if (cell > 3) svg.append(makeSvg("path", { class: "cell-line", d: gridLines(1, 1, rows, columns) }));
  const [height, width] = [target, source].map((lengths) => numel(lengths.slice(1)));
  svg.append(makeSvg("path", { class: "block-line", d: gridLines(height, width, rows, columns) }));
  svg.append(makeSvg("path", { class: "border", d: `M0 0H${columns}V${rows}H0z` }));
  svg.append(makeSvg("path", { class: "highlight" }));
  return svg;
}

// Highlight a row or a column: { row } or { column }; {} removes the highlight.
function highlightInMatrix(svg, { rows, columns }, { row, column }) {
  const path = svg.querySelector(".highlight");
  if (row !== undefined) path.setAttribute("d", `M0 ${row}h${columns}v1h-${columns}z`);
  else if (column !== undefined) path.setAttribute("d", `M${column} 0v${rows}h1v-${rows}z`);
  else path.removeAttribute("d");
}

// For each non-zero value the path of the cells with this value; adjacent cells of a row are one rectangle.
function pathsByValue({ rows, columns, values }) {
  const paths = new Map();
  for (let row = 0; row < rows; row++) {
    for (let column = 0; column < columns; ) {
      const value = values[row * columns + column];
      const start = column;
      while (column < columns && values[row * columns + column] === value) column++;
      const run = column - start;
      if (value) paths.set(value, `${paths.get(value) ?? ""}M${start} ${row}h${run}v1h-${run}z`);
    }
  }
  return paths;
}

function gridLines(height, width, rows, columns) {
  let d = "";
  for (let y = height; y < rows; y += height) d += `M0 ${y}H${columns}`;
  for (let x = width; x < columns; x += width) d += `M${x} 0V${rows}`;
  return d;
}

// The size of a cell for a matrix of about the given width.
const cellSize = ({ rows, columns }, width, limit) => Math.max(1, Math.min(limit, width / columns, (1.4 * width) / rows));
