// The entries of a tensor as a grid of buttons with a roving tabindex.
//
// The last two axes are rows and columns; earlier axes are rows and columns of such blocks.

const MAX_ENTRIES = 256;

// `handlers` are onPress(position), onKey(position, key) and onPoint(position or null).
function renderCells(root, lengths, handlers) {
  const cells = [];
  const body = makeGrid(lengths, [], cells);
  root.replaceChildren(body);
  root.style.setProperty("--longest", Math.max(1, ...lengths.slice(-1)));
  cells[0].tabIndex = 0;
  const positionOfEvent = ({ target }) => cells.indexOf(target.closest("button"));
  body.addEventListener("click", (event) => {
    const position = positionOfEvent(event);
    if (position >= 0) handlers.onPress(position);
  });
  body.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const position = positionOfEvent(event);
    const next = nextPosition(event.key, position, lengths);
    if (next !== null) {
      event.preventDefault();
      if (next >= 0 && next < cells.length) cells[next].focus();
    } else if (handlers.onKey(position, event.key)) event.preventDefault();
  });
  body.addEventListener("focusin", (event) => {
    const position = positionOfEvent(event);
    if (position < 0) return;
    for (const cell of cells) cell.tabIndex = -1;
    cells[position].tabIndex = 0;
    handlers.onPoint(position);
  });
  body.addEventListener("pointerover", (event) => {
    const position = positionOfEvent(event);
    if (position >= 0 && event.pointerType === "mouse") handlers.onPoint(position);
  });
  for (const leaving of ["pointerleave", "focusout"]) body.addEventListener(leaving, () => handlers.onPoint(null));
  return cells;
}

function makeGrid(lengths, before, cells) {
  if (lengths.length > 2) {
    const nOuter = lengths.length % 2 ? 1 : 2;
    const [outer, inner] = [lengths.slice(0, nOuter), lengths.slice(nOuter)];
    const blocks = allIndices(outer).map((indices) => {
      const own = [...before, ...indices];
      const label = inner.length > 2 ? "" : makeHtml("span", { class: "block-label" }, `[${own.join(", ")}, …]`);
      return makeHtml("div", { class: "block" }, label, makeGrid(inner, own, cells));
    });
    const grid = makeHtml("div", { class: `blocks${nOuter === 1 ? " row" : ""}` }, ...blocks);
    grid.style.setProperty("--columns", outer[nOuter - 1]);
    return grid;
  }
  const grid = makeHtml("div", { class: "grid" });
  grid.style.setProperty("--columns", lengths.length ? lengths[lengths.length - 1] : 1);
  for (const indices of allIndices(lengths)) {
    const cell = makeHtml("button", { type: "button", tabindex: "-1", class: "cell", "aria-describedby": "entry-info" });
    cell.dataset.index = [...before, ...indices].join(", ");
    cells.push(cell);
    grid.append(cell);
  }
  return grid;
}

// The position that a navigation key moves to, which may be out of range; null for other keys.
function nextPosition(key, position, lengths) {
  const row = lengths.length ? lengths[lengths.length - 1] : 1;
  const steps = {
    ArrowLeft: position - 1,
    ArrowRight: position + 1,
    ArrowUp: position - row,
    ArrowDown: position + row,
    Home: position - (position % row),
    End: position - (position % row) + row - 1,
  };
  return steps[key] ?? null;
}

// Show values; `name` is x or y, `largest` the absolute value with full colour.
function setCellValues(cells, values, name, largest) {
  cells.forEach((cell, position) => {
    const value = values[position];
    const share = Math.round((72 * Math.abs(value)) / largest);
    const words = `${name}[${cell.dataset.index}] = ${formatValue(value)}`;
    cell.textContent = formatValue(value);
    cell.dataset.value = value;
    cell.setAttribute("aria-label", words);
    cell.style.setProperty("--share", `${share}%`);
    cell.classList.toggle("negative", value < 0);
    cell.classList.toggle("zero", value === 0);
  });
}

function highlightCells(cells, positions) {
  cells.forEach((cell, position) => cell.classList.toggle("highlighted", positions.has(position)));
}
