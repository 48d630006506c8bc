// Text formatting as in Python, so that the messages of the page equal those of the library.

// The characters at which Python's str.split() splits; JavaScript's \s differs in a few.
const SPACE = /[\t-\r\x1c-\x20\x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]/u;

// Python strings are sequences of code points, JavaScript strings of UTF-16 code units.
const codePoints = (text) => Array.from(text);

// "a, b and c".
function joinNames(names) {
  const first = names.slice(0, -1);
  const last = names[names.length - 1];
  return first.length ? `${first.join(", ")} and ${last}` : last;
}

// 1234567 as "1,234,567".
const groupDigits = (number) => String(number).replace(/\B(?=(\d{3})+$)/g, ",");

const pluralize = (count, word) => `${count} ${word}${count === 1 ? "" : "s"}`;

// Python's repr() of a number, a string, or an array (as a tuple).
function pyRepr(value) {
  if (typeof value === "number") return String(value);
  if (Array.isArray(value)) {
    const inside = value.map(pyRepr);
    return inside.length === 1 ? `(${inside[0]},)` : `(${inside.join(", ")})`;
  }
  const quote = value.includes("'") && !value.includes('"') ? '"' : "'";
  return quote + codePoints(value).map((one) => escapeCharacter(one, quote)).join("") + quote;
}

const ESCAPES = { "\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t" };

function escapeCharacter(character, quote) {
  if (character === quote) return `\\${quote}`;
  if (character in ESCAPES) return ESCAPES[character];
  if (character === " " || !/[\p{C}\p{Z}]/u.test(character)) return character;
  const code = character.codePointAt(0);
  const [letter, digits] = code < 0x100 ? ["x", 2] : code < 0x10000 ? ["u", 4] : ["U", 8];
  return `\\${letter}${code.toString(16).padStart(digits, "0")}`;
}

// Lexicographic order, as Python compares tuples.
function compareTuples(one, other) {
  for (let position = 0; position < Math.min(one.length, other.length); position++) {
    if (one[position] !== other[position]) return one[position] - other[position];
  }
  return one.length - other.length;
}
