// Text as Python has it, so that what the page says is what the library says, to the letter.

// What Python takes for space between words; JavaScript's own class differs in a few characters.
const SPACE = /[\t-\r\x1c-\x20\x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]/u;

// Python counts characters, JavaScript counts halves of some of them.
const characters = (text) => Array.from(text);

// "a, b and c", as a sentence has names.
function listed(names) {
  const first = names.slice(0, -1);
  const last = names[names.length - 1];
  return first.length ? `${first.join(", ")} and ${last}` : last;
}

// 1234567 as "1,234,567".
const withCommas = (number) => String(number).replace(/\B(?=(\d{3})+$)/g, ",");

const withS = (count, word) => `${count} ${word}${count === 1 ? "" : "s"}`;

// What repr() gives: of text with quotes and escapes, of lists as tuples.
function repr(value) {
  if (typeof value === "number") return String(value);
  if (Array.isArray(value)) {
    const inside = value.map(repr);
    return inside.length === 1 ? `(${inside[0]},)` : `(${inside.join(", ")})`;
  }
  const quote = value.includes("'") && !value.includes('"') ? '"' : "'";
  return quote + characters(value).map((one) => escaped(one, quote)).join("") + quote;
}

const ESCAPES = { "\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t" };

function escaped(character, quote) {
  if (character === quote) return `\\${quote}`;
  if (character in ESCAPES) return ESCAPES[character];
  if (character === " " || !/[\p{C}\p{Z}]/u.test(character)) return character;
  const code = character.codePointAt(0);
  const [letter, digits] = code < 0x100 ? ["x", 2] : code < 0x10000 ? ["u", 4] : ["U", 8];
  return `\\${letter}${code.toString(16).padStart(digits, "0")}`;
}

// The order of tuples of numbers: by the first that differ, the shorter one first if none does.
function compareTuples(one, other) {
  for (let place = 0; place < Math.min(one.length, other.length); place++) {
    if (one[place] !== other[place]) return one[place] - other[place];
  }
  return one.length - other.length;
}
