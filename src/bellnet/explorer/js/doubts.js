// Specs that can be read, but hardly mean what they say: habits from einsum and einops.

const BATCH = ["b", "bs", "batch"];
const CHANNELS = ["c", "ch", "channel", "channels", "d", "dim", "f", "feat", "feature", "features", "h", "hidden"];
const LONGEST = 4; // letters of a side in einsum; longer words are words

// What a spec was read as and what was probably meant; null if there is no doubt.
function doubtAbout(spec) {
  const sides = [spec.sources, spec.targets];
  const found = findDoubt(sides);
  if (found === null) return null;
  const names = [...new Set(sides.flat(2))];
  const sets = `the node set${names.length === 1 ? "" : "s"} ${listed(names.map(repr))}`;
  const read = `${sides.map(slotsInWords).join(" -> ")}, of ${sets}`;
  let end = "if not, other names end this warning.";
  let words;
  if (found.slots) {
    words = `${read}: commas stand between tensors.\nIf they stand between the slots of one, write`;
    end = `if not, pass ${reprOfSpec(orderedSpec(spec))}.`;
  } else if (found.axes.length) {
    const are = found.axes.length > 1 ? "are such axes" : "is such an axis";
    words =
      `${read}, each of which can be renumbered.\n` +
      `Axes of batches and channels are not written: if ${listed(found.axes)} ${are}, write`;
  } else {
    words = `${read}: names are separated by spaces.\nIf each letter is an axis, as in einsum, write`;
  }
  return `The spec "${textOfSides(sides)}" was read as ${words} "${textOfSides(found.meant)}"; ${end}`;
}

const textOfSides = (sides) => sides.map((shapes) => textOfShapes(shapes)).join(" -> ").trim();

function slotsInWords(shapes) {
  if (shapes.length === 1) return withS(shapes[0].length, "slot");
  return `tensors of ${listed(shapes.map((shape) => String(shape.length)))} slots`;
}

// { meant, axes, slots }: what to write, which names would be axes of batches and channels, whether commas part slots.
function findDoubt(sides) {
  if (looksLikeEinsum(sides)) {
    const alone = sides.flat().every((shape) => shape.length <= 1);
    const apart = (word) => (isOneLetterRepeated(word) || (alone && mayBeLetters(word)) ? characters(word) : [word]);
    return { meant: sides.map((shapes) => shapes.map((shape) => shape.flatMap(apart))), axes: [], slots: false };
  }
  if (looksLikeSlots(sides)) return { meant: sides.map((shapes) => [shapes.flat()]), axes: [], slots: true };
  return axesTooMany(sides);
}

function looksLikeEinsum(sides) {
  const words = sides.flat(2);
  if (words.some(isOneLetterRepeated)) return true;
  // Otherwise only "ui -> u": no space at all, and letters of one word that come back in another.
  const alone = sides.every((shapes) => shapes.length === 1 && shapes[0].length === 1);
  if (!alone || !words.every(mayBeLetters)) return false;
  const [source, target] = words.map((word) => new Set(characters(word)));
  const within = (one, other) => [...one].every((letter) => other.has(letter));
  return words[0] !== words[1] && (within(target, source) || within(source, target));
}

// Whether a comma stands between equal names, and no tensor has two: those two could as well be one tensor.
function looksLikeSlots(sides) {
  const repeats = (shapes) => {
    const named = shapes.filter((shape) => shape.length).map(String);
    return new Set(named).size < named.length;
  };
  return sides.flat().every((shape) => shape.length <= 1) && sides.some(repeats);
}

// A name for the batch in front of every shape, or one for channels at the end, with node sets beside it.
function axesTooMany(sides) {
  const shapes = sides.flat();
  const count = (shape, name) => shape.filter((other) => other === name).length;
  let batch = shapes[0].length && BATCH.includes(shapes[0][0].toLowerCase()) ? shapes[0][0] : null;
  if (shapes.some((shape) => shape[0] !== batch || count(shape, batch) > 1)) batch = null;
  let kept = shapes.map((shape) => (batch === null ? shape : shape.slice(1)));
  const last = kept.map((shape) => {
    const name = shape[shape.length - 1];
    return name !== undefined && CHANNELS.includes(name.toLowerCase()) ? name : null;
  });
  const inside = new Set(kept.flatMap((shape, number) => (last[number] === null ? shape : shape.slice(0, -1))));
  let channels = last.filter((name) => name !== null && !inside.has(name));
  if (channels.length < shapes.length) channels = [];
  if (channels.length) kept = kept.map((shape) => shape.slice(0, -1));
  const axes = [...(batch === null ? [] : [batch]), ...new Set(channels)];
  const spelled = axes.some((name) => characters(name).length > 1);
  const pairs = kept.some((shape) => new Set(shape).size < shape.length);
  const both = batch !== null && channels.length > 0;
  // A single letter may well be a node set.
  if (!axes.length || !kept.some((shape) => shape.length) || !(spelled || pairs || both)) return null;
  const meant = [kept.slice(0, sides[0].length), kept.slice(sides[0].length)];
  return { meant, axes, slots: false };
}

const isLetters = (word) => /^\p{L}+$/u.test(word);
const isOneLetterRepeated = (word) =>
  characters(word).length > 1 && isLetters(word) && new Set(characters(word)).size === 1;
const mayBeLetters = (word) => isLetters(word) && characters(word).length <= LONGEST;
