// Elements of the document: found, made and filled. Text is always set as text.

const byId = (id) => document.getElementById(id);

function make(tag, attributes = {}, ...children) {
  return filled(document.createElement(tag), attributes, children);
}

function makeSvg(tag, attributes = {}, ...children) {
  return filled(document.createElementNS("http://www.w3.org/2000/svg", tag), attributes, children);
}

function filled(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === true) element.setAttribute(name, "");
    else if (value !== false && value !== null) element.setAttribute(name, value);
  }
  element.append(...children);
  return element;
}

const chosenOf = (id) => byId(id).querySelector("input:checked").value;

// A number as an entry shows it: whole, or with two decimals.
function shown(number) {
  const close = Math.round(number);
  if (Math.abs(number - close) < 1e-9) return String(close === 0 ? 0 : close);
  return number.toFixed(2).replace("-", "−");
}
