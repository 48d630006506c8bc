// Helpers for DOM elements. Text is never parsed as HTML.

const byId = (id) => document.getElementById(id);

function makeHtml(tag, attributes = {}, ...children) {
  return setContent(document.createElement(tag), attributes, children);
}

function makeSvg(tag, attributes = {}, ...children) {
  return setContent(document.createElementNS("http://www.w3.org/2000/svg", tag), attributes, children);
}

function setContent(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === true) element.setAttribute(name, "");
    else if (value !== false && value !== null) element.setAttribute(name, value);
  }
  element.append(...children);
  return element;
}

const checkedValue = (id) => byId(id).querySelector("input:checked").value;

// The value of an entry: an integer, or two decimals.
function formatValue(number) {
  const close = Math.round(number);
  if (Math.abs(number - close) < 1e-9) return String(close === 0 ? 0 : close);
  return number.toFixed(2).replace("-", "−");
}
