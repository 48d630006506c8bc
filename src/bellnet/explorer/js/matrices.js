// The matrix of a map as a picture: lines part the values of the first slot, finer ones the single cells.

const MOST_ROWS = 256;

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
  for (const [value, d] of runsOf(matrix)) {
    svg.append(makeSvg("path", { class: "one", d, "fill-opacity": (value / largest).toFixed(3) }));
  }
  if (cell > 3) svg.append(makeSvg("path", { class: "fine", d: linesEvery(1, 1, rows, columns) }));
  const [tall, wide] = [target, source].map((lengths) => sizeOf(lengths.slice(1)));
  svg.append(makeSvg("path", { class: "parting", d: linesEvery(tall, wide, rows, columns) }));
  svg.append(makeSvg("path", { class: "border", d: `M0 0H${columns}V${rows}H0z` }));
  svg.append(makeSvg("path", { class: "mark" }));
  return svg;
}

// Point at a row or a column: { row } or { column }; at none if there is neither.
function markMatrix(svg, { rows, columns }, { row, column }) {
  const path = svg.querySelector(".mark");
  if (row !== undefined) path.setAttribute("d", `M0 ${row}h${columns}v1h-${columns}z`);
  else if (column !== undefined) path.setAttribute("d", `M${column} 0v${rows}h1v-${rows}z`);
  else path.removeAttribute("d");
}

// For every value that is not zero the path of all cells that have it; neighbours in a row are one piece.
function runsOf({ rows, columns, values }) {
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

function linesEvery(tall, wide, rows, columns) {
  let d = "";
  for (let y = tall; y < rows; y += tall) d += `M0 ${y}H${columns}`;
  for (let x = wide; x < columns; x += wide) d += `M${x} 0V${rows}`;
  return d;
}

// The side of a cell, so that a matrix has about the given width.
const cellSide = ({ rows, columns }, width, most) => Math.max(1, Math.min(most, width / columns, (1.4 * width) / rows));
