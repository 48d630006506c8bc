// The parser of specs. Errors point at the position with carets.

const EXAMPLE_ADVICE =
  'Write node set names separated by spaces around one arrow, for instance "n n -> n n" or "u i -> u".';
const BRACES_ADVICE = 'Braces stand in a map, around slots of one node set that may be exchanged: "{n n} -> {n n}".';

class SpecError extends Error {}

function parseSpec(given) {
  const text = codePoints(given);
  const arrows = text.flatMap((one, at) => (one === "-" && text[at + 1] === ">" ? [at] : []));
  if (!arrows.length) {
    throw specError(text, text.length, 2, "the arrow '->' between source and target is missing", EXAMPLE_ADVICE);
  }
  if (arrows.length > 1) throw specError(text, arrows[1], 2, "there is a second arrow", EXAMPLE_ADVICE);
  const unordered = [];
  const sources = parseShapes(text, 0, arrows[0], 0, unordered);
  const targets = parseShapes(text, arrows[0] + 2, text.length, sources.flat().length, unordered);
  return { sources, targets, unordered };
}

// The shapes between two positions of the text; groups in braces are added to `groups`, numbered from `before`.
function parseShapes(text, start, stop, before, groups) {
  const shapes = [];
  let from = start;
  for (let at = start; at <= stop; at++) {
    if (at < stop && text[at] !== ",") continue;
    shapes.push(parseShape(text, from, at, before + shapes.flat().length, groups));
    from = at + 1;
  }
  return shapes;
}

function parseShape(text, start, stop, before, groups) {
  const names = [];
  let opened = null; // position of the open brace and number of names before it
  for (const { at, word } of tokenize(text, start, stop)) {
    if (word[0] === "{") {
      if (opened !== null) throw specError(text, at, 1, "there is a brace inside of braces", BRACES_ADVICE);
      opened = { at, after: names.length };
    } else if (word[0] === "}") {
      if (opened === null) throw specError(text, at, 1, "this brace was not opened", BRACES_ADVICE);
      if (names.length - opened.after < 2) {
        throw specError(text, opened.at, at + 1 - opened.at, "fewer than two slots are in braces", BRACES_ADVICE);
      }
      groups.push(names.slice(opened.after).map((_, number) => before + opened.after + number));
      opened = null;
    } else {
      names.push(parseName(text, at, word));
      if (opened !== null && names[names.length - 1] !== names[opened.after]) {
        throw specError(text, at, word.length, "slots of different node sets are in braces", BRACES_ADVICE);
      }
    }
  }
  if (opened !== null && text[stop] === ",") {
    throw specError(text, stop, 1, "a comma, which stands between tensors, is inside of braces", BRACES_ADVICE);
  }
  if (opened !== null) throw specError(text, opened.at, 1, "this brace is not closed", BRACES_ADVICE);
  return names;
}

// The tokens: braces and words, as lists of code points with their positions.
function tokenize(text, start, stop) {
  const words = [];
  let inside = false;
  for (let at = start; at < stop; at++) {
    const isBrace = text[at] === "{" || text[at] === "}";
    if (isBrace || SPACE.test(text[at])) {
      if (isBrace) words.push({ at, word: [text[at]] });
      inside = false;
    } else if (inside) {
      words[words.length - 1].word.push(text[at]);
    } else {
      words.push({ at, word: [text[at]] });
      inside = true;
    }
  }
  return words;
}

const FIRST_CHARACTER = /^[\p{L}\p{Nl}\p{No}_]$/u;
const LATER_CHARACTER = /^[\p{L}\p{N}_]$/u;

function parseName(text, start, word) {
  const at = word.findIndex((one, position) => !(position ? LATER_CHARACTER : FIRST_CHARACTER).test(one));
  if (at >= 0) throw specError(text, start + at, 1, ...nameErrorReason(word[at]));
  return word.join("");
}

function nameErrorReason(character) {
  if (/\p{Nd}/u.test(character)) {
    return [
      "a node set name does not begin with a digit",
      "The string names node sets, not lengths: the same layer fits any number of nodes.",
    ];
  }
  const reason = `${pyRepr(character)} is not part of a node set name`;
  if (character === "." || character === "*") {
    return [reason, "Batch axes are not written: any number of them may stand in front, and channels come last."];
  }
  return [reason, EXAMPLE_ADVICE];
}

function specError(text, at, width, reason, advice) {
  const carets = " ".repeat(at) + "^".repeat(width);
  return new SpecError(`This spec cannot be read: ${reason}.\n\n    ${text.join("")}\n    ${carets}\n${advice}`);
}
