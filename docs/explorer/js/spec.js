// Specs: the shapes of source and target tensors, and which slots may be exchanged.
//
// A spec is { sources, targets, unordered }. A shape is the list of the node sets of its slots; a group in `unordered` is a
// list of slots, numbered across all tensors, source slots first.

const shapesOf = (spec) => [...spec.sources, ...spec.targets];
const slotsOf = (spec) => shapesOf(spec).flat();
const nodeSetsOf = (spec) => [...new Set(slotsOf(spec))];
const isSingle = (spec) => spec.sources.length === 1 && spec.targets.length === 1;
const orderedSpec = (spec) => ({ ...spec, unordered: [] });

// The spec of one source and one target; of the biases of the target if the source is null.
function specOfPair(spec, source, target) {
  const shapes = shapesOf(spec);
  const starts = [0];
  for (const shape of shapes) starts.push(starts[starts.length - 1] + shape.length);
  const tensors = [...(source === null ? [] : [source]), spec.sources.length + target];
  const kept = tensors.flatMap((one) => shapes[one].map((_, slot) => starts[one] + slot));
  return {
    sources: [source === null ? [] : shapes[source]],
    targets: [shapes[spec.sources.length + target]],
    unordered: spec.unordered
      .filter((group) => kept.includes(group[0]))
      .map((group) => group.map((slot) => kept.indexOf(slot))),
  };
}

const specOfBias = (spec, target) => specOfPair(spec, null, target);

// The text of one side of the arrow; its slots are numbered from `start`.
function formatShapes(shapes, unordered = [], start = 0) {
  const first = new Set(unordered.map((group) => group[0]));
  const last = new Set(unordered.map((group) => group[group.length - 1]));
  let slot = start;
  const words = shapes.map((shape) =>
    shape
      .map((name) => {
        const word = `${first.has(slot) ? "{" : ""}${name}${last.has(slot) ? "}" : ""}`;
        slot += 1;
        return word;
      })
      .join(" "),
  );
  return words.join(", ").replace(/^ +| +$/g, "");
}

function formatSpec(spec) {
  const source = formatShapes(spec.sources, spec.unordered);
  const target = formatShapes(spec.targets, spec.unordered, spec.sources.flat().length);
  return `${source} -> ${target}`.trim();
}

function reprSpec(spec) {
  const [source, target] = [spec.sources, spec.targets].map((shapes) => (shapes.length === 1 ? shapes[0] : shapes));
  const groups = spec.unordered.length ? `, unordered=${pyRepr(spec.unordered)}` : "";
  return `Spec(source=${pyRepr(source)}, target=${pyRepr(target)}${groups})`;
}
