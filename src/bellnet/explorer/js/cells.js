// The entries of a tensor as cells that can be pointed at, one of which takes part in the order of Tab.
//
// The last two slots are rows and columns; slots before them are rows and columns of such blocks.

const MOST_ENTRIES = 256;

// `events` has what happens: press(place), type(place, key), point(place or null).
function fillCells(root, lengths, events) {
  const cells = [];
  const body = nested(lengths, [], cells);
  root.replaceChildren(body);
  root.style.setProperty("--longest", Math.max(1, ...lengths.slice(-1)));
  cells[0].tabIndex = 0;
  const placeOfEvent = ({ target }) => cells.indexOf(target.closest("button"));
  body.addEventListener("click", (event) => {
    const place = placeOfEvent(event);
    if (place >= 0) events.press(place);
  });
  body.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const place = placeOfEvent(event);
    const next = nextPlace(event.key, place, lengths);
    if (next !== null) {
      event.preventDefault();
      if (next >= 0 && next < cells.length) cells[next].focus();
    } else if (events.type(place, event.key)) event.preventDefault();
  });
  body.addEventListener("focusin", (event) => {
    const place = placeOfEvent(event);
    if (place < 0) return;
    for (const cell of cells) cell.tabIndex = -1;
    cells[place].tabIndex = 0;
    events.point(place);
  });
  body.addEventListener("pointerover", (event) => {
    const place = placeOfEvent(event);
    if (place >= 0 && event.pointerType === "mouse") events.point(place);
  });
  for (const leaving of ["pointerleave", "focusout"]) body.addEventListener(leaving, () => events.point(null));
  return cells;
}

function nested(lengths, before, cells) {
  if (lengths.length > 2) {
    const nOuter = lengths.length % 2 ? 1 : 2;
    const [outer, inner] = [lengths.slice(0, nOuter), lengths.slice(nOuter)];
    const blocks = indicesBelow(outer).map((indices) => {
      const own = [...before, ...indices];
      const label = inner.length > 2 ? "" : make("span", { class: "block-label" }, `[${own.join(", ")}, …]`);
      return make("div", { class: "block" }, label, nested(inner, own, cells));
    });
    const grid = make("div", { class: `blocks${nOuter === 1 ? " row" : ""}` }, ...blocks);
    grid.style.setProperty("--columns", outer[nOuter - 1]);
    return grid;
  }
  const grid = make("div", { class: "grid" });
  grid.style.setProperty("--columns", lengths.length ? lengths[lengths.length - 1] : 1);
  for (const indices of indicesBelow(lengths)) {
    const cell = make("button", { type: "button", tabindex: "-1", class: "cell", "aria-describedby": "reading" });
    cell.dataset.index = [...before, ...indices].join(", ");
    cells.push(cell);
    grid.append(cell);
  }
  return grid;
}

// Where a key leads; beyond the end, it stays. Null for other keys.
function nextPlace(key, place, lengths) {
  const row = lengths.length ? lengths[lengths.length - 1] : 1;
  const steps = {
    ArrowLeft: place - 1,
    ArrowRight: place + 1,
    ArrowUp: place - row,
    ArrowDown: place + row,
    Home: place - (place % row),
    End: place - (place % row) + row - 1,
  };
  return steps[key] ?? null;
}

// Show values; `name` is x or y, and `largest` is what has the full colour.
function showValues(cells, values, name, largest) {
  cells.forEach((cell, place) => {
    const value = values[place];
    const share = Math.round((72 * Math.abs(value)) / largest);
    const words = `${name}[${cell.dataset.index}] = ${shown(value)}`;
    cell.textContent = shown(value);
    cell.dataset.value = value;
    cell.setAttribute("aria-label", words);
    cell.style.setProperty("--share", `${share}%`);
    cell.classList.toggle("negative", value < 0);
    cell.classList.toggle("zero", value === 0);
  });
}

function pointAt(cells, places) {
  cells.forEach((cell, place) => cell.classList.toggle("pointed", places.has(place)));
}
