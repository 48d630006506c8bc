// Reading a spec, and pointing at the mistake in one that cannot be read.

const EXAMPLE =
  'Write node set names separated by spaces around one arrow, for instance "n n -> n n" or "u i -> u".';
const UNORDERED = 'Braces stand in a map, around slots of one node set that may be exchanged: "{n n} -> {n n}".';

class SpecMistake extends Error {}

function parseSpec(given) {
  const text = characters(given);
  const arrows = text.flatMap((one, at) => (one === "-" && text[at + 1] === ">" ? [at] : []));
  if (!arrows.length) {
    throw mistake(text, text.length, 2, "the arrow '->' between source and target is missing", EXAMPLE);
  }
  if (arrows.length > 1) throw mistake(text, arrows[1], 2, "there is a second arrow", EXAMPLE);
  const unordered = [];
  const sources = readShapes(text, 0, arrows[0], 0, unordered);
  const targets = readShapes(text, arrows[0] + 2, text.length, sources.flat().length, unordered);
  return { sources, targets, unordered };
}

// The shapes between two places of a text; groups in braces are added to `groups`, numbered from `before`.
function readShapes(text, start, stop, before, groups) {
  const shapes = [];
  let from = start;
  for (let at = start; at <= stop; at++) {
    if (at < stop && text[at] !== ",") continue;
    shapes.push(readNames(text, from, at, before + shapes.flat().length, groups));
    from = at + 1;
  }
  return shapes;
}

function readNames(text, start, stop, before, groups) {
  const names = [];
  let opened = null; // where a brace was opened, and after how many names
  for (const { at, word } of wordsBetween(text, start, stop)) {
    if (word[0] === "{") {
      if (opened !== null) throw mistake(text, at, 1, "there is a brace inside of braces", UNORDERED);
      opened = { at, after: names.length };
    } else if (word[0] === "}") {
      if (opened === null) throw mistake(text, at, 1, "this brace was not opened", UNORDERED);
      if (names.length - opened.after < 2) {
        throw mistake(text, opened.at, at + 1 - opened.at, "fewer than two slots are in braces", UNORDERED);
      }
      groups.push(names.slice(opened.after).map((_, number) => before + opened.after + number));
      opened = null;
    } else {
      names.push(readName(text, at, word));
      if (opened !== null && names[names.length - 1] !== names[opened.after]) {
        throw mistake(text, at, word.length, "slots of different node sets are in braces", UNORDERED);
      }
    }
  }
  if (opened !== null && text[stop] === ",") {
    throw mistake(text, stop, 1, "a comma, which stands between tensors, is inside of braces", UNORDERED);
  }
  if (opened !== null) throw mistake(text, opened.at, 1, "this brace is not closed", UNORDERED);
  return names;
}

// Braces, and whatever stands between spaces and braces, as lists of characters with their places.
function wordsBetween(text, start, stop) {
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

const FIRST = /^[\p{L}\p{Nl}\p{No}_]$/u;
const LATER = /^[\p{L}\p{N}_]$/u;

function readName(text, start, word) {
  const at = word.findIndex((one, place) => !(place ? LATER : FIRST).test(one));
  if (at >= 0) throw mistake(text, start + at, 1, ...reasonOf(word[at]));
  return word.join("");
}

function reasonOf(character) {
  if (/\p{Nd}/u.test(character)) {
    return [
      "a node set name does not begin with a digit",
      "The string names node sets, not lengths: the same layer fits any number of nodes.",
    ];
  }
  const reason = `${repr(character)} is not part of a node set name`;
  if (character === "." || character === "*") {
    return [reason, "Batch axes are not written: any number of them may stand in front, and channels come last."];
  }
  return [reason, EXAMPLE];
}

function mistake(text, at, width, reason, advice) {
  const carets = " ".repeat(at) + "^".repeat(width);
  return new SpecMistake(`This spec cannot be read: ${reason}.\n\n    ${text.join("")}\n    ${carets}\n${advice}`);
}
