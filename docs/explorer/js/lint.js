// Warnings for specs that are valid but probably written in the notation of einsum or einops.

const BATCH_NAMES = ["b", "bs", "batch"];
const CHANNEL_NAMES = ["c", "ch", "channel", "channels", "d", "dim", "f", "feat", "feature", "features", "h", "hidden"];
const MAX_EINSUM_LETTERS = 4; // longer words are names, not einsum subscripts

// The warning: how the spec was read and what was probably meant; null if there is none.
function lintSpec(spec) {
  const sides = [spec.sources, spec.targets];
  const found = findMisreading(sides);
  if (found === null) return null;
  const names = [...new Set(sides.flat(2))];
  const sets = `the node set${names.length === 1 ? "" : "s"} ${joinNames(names.map(pyRepr))}`;
  const read = `${sides.map(describeSlots).join(" -> ")}, of ${sets}`;
  let end = "if not, other names end this warning.";
  let words;
  if (found.slots) {
    words = `${read}: commas stand between tensors.\nIf they stand between the slots of one, write`;
    end = `if not, pass ${reprSpec(orderedSpec(spec))}.`;
  } else if (found.axes.length) {
    const are = found.axes.length > 1 ? "are such axes" : "is such an axis";
    words =
      `${read}, each of which can be permuted.\n` +
      `Axes of batches and channels are not written: if ${joinNames(found.axes)} ${are}, write`;
  } else {
    words = `${read}: names are separated by spaces.\nIf each letter is an axis, as in einsum, write`;
  }
  return `The spec "${formatSides(sides)}" was read as ${words} "${formatSides(found.meant)}"; ${end}`;
}

const formatSides = (sides) => sides.map((shapes) => formatShapes(shapes)).join(" -> ").trim();

function describeSlots(shapes) {
  if (shapes.length === 1) return pluralize(shapes[0].length, "slot");
  return `tensors of ${joinNames(shapes.map((shape) => String(shape.length)))} slots`;
}

// { meant, axes, slots }: the probable meaning, names of batch or channel axes, whether commas separate slots; or null.
function findMisreading(sides) {
  if (looksLikeEinsum(sides)) {
    const alone = sides.flat().every((shape) => shape.length <= 1);
    const split = (word) => (isOneLetterRepeated(word) || (alone && mayBeLetters(word)) ? codePoints(word) : [word]);
    return { meant: sides.map((shapes) => shapes.map((shape) => shape.flatMap(split))), axes: [], slots: false };
  }
  if (looksLikeSlots(sides)) return { meant: sides.map((shapes) => [shapes.flat()]), axes: [], slots: true };
  return findBatchOrChannelAxes(sides);
}

function looksLikeEinsum(sides) {
  const words = sides.flat(2);
  if (words.some(isOneLetterRepeated)) return true;
  // Otherwise only "ui -> u": no space on either side, and the letters of one word are among those of the other.
  const alone = sides.every((shapes) => shapes.length === 1 && shapes[0].length === 1);
  if (!alone || !words.every(mayBeLetters)) return false;
  const [source, target] = words.map((word) => new Set(codePoints(word)));
  const within = (one, other) => [...one].every((letter) => other.has(letter));
  return words[0] !== words[1] && (within(target, source) || within(source, target));
}

// Whether commas separate equal names and no tensor has more than one slot.
function looksLikeSlots(sides) {
  const repeats = (shapes) => {
    const named = shapes.filter((shape) => shape.length).map(String);
    return new Set(named).size < named.length;
  };
  return sides.flat().every((shape) => shape.length <= 1) && sides.some(repeats);
}

// A batch axis at the start of every shape, or channel axes at the end.
function findBatchOrChannelAxes(sides) {
  const shapes = sides.flat();
  const count = (shape, name) => shape.filter((other) => other === name).length;
  let batch = shapes[0].length && BATCH_NAMES.includes(shapes[0][0].toLowerCase()) ? shapes[0][0] : null;
  if (shapes.some((shape) => shape[0] !== batch || count(shape, batch) > 1)) batch = null;
  let kept = shapes.map((shape) => (batch === null ? shape : shape.slice(1)));
  const last = kept.map((shape) => {
    const name = shape[shape.length - 1];
    return name !== undefined && CHANNEL_NAMES.includes(name.toLowerCase()) ? name : null;
  });
  const inside = new Set(kept.flatMap((shape, number) => (last[number] === null ? shape : shape.slice(0, -1))));
  let channels = last.filter((name) => name !== null && !inside.has(name));
  if (channels.length < shapes.length) channels = [];
  if (channels.length) kept = kept.map((shape) => shape.slice(0, -1));
  const axes = [...(batch === null ? [] : [batch]), ...new Set(channels)];
  const spelled = axes.some((name) => codePoints(name).length > 1);
  const pairs = kept.some((shape) => new Set(shape).size < shape.length);
  const both = batch !== null && channels.length > 0;
  // A single letter may be a node set.
  if (!axes.length || !kept.some((shape) => shape.length) || !(spelled || pairs || both)) return null;
  const meant = [kept.slice(0, sides[0].length), kept.slice(sides[0].length)];
  return { meant, axes, slots: false };
}

const isLetters = (word) => /^\p{L}+$/u.test(word);
const isOneLetterRepeated = (word) =>
  codePoints(word).length > 1 && isLetters(word) && new Set(codePoints(word)).size === 1;
const mayBeLetters = (word) => isLetters(word) && codePoints(word).length <= MAX_EINSUM_LETTERS;
