// What was asked for: shapes of sources and of targets, and which slots may be exchanged.
//
// A spec is { sources, targets, unordered }: a shape is the list of the node sets of its slots, a group in `unordered`
// lists slots, numbered through all tensors, source slots first.

const shapesOf = (spec) => [...spec.sources, ...spec.targets];
const slotsOf = (spec) => shapesOf(spec).flat();
const nodeSetsOf = (spec) => [...new Set(slotsOf(spec))];
const isSingle = (spec) => spec.sources.length === 1 && spec.targets.length === 1;
const orderedSpec = (spec) => ({ ...spec, unordered: [] });

// The maps from one of the sources to one of the targets; of no source, the constants.
function pairOfSpec(spec, source, target) {
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

const constantsOfSpec = (spec, target) => pairOfSpec(spec, null, target);

// Shapes as they are written on one side of an arrow; their slots are numbered from `start`.
function textOfShapes(shapes, unordered = [], start = 0) {
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

function textOfSpec(spec) {
  const source = textOfShapes(spec.sources, spec.unordered);
  const target = textOfShapes(spec.targets, spec.unordered, spec.sources.flat().length);
  return `${source} -> ${target}`.trim();
}

function reprOfSpec(spec) {
  const [source, target] = [spec.sources, spec.targets].map((shapes) => (shapes.length === 1 ? shapes[0] : shapes));
  const groups = spec.unordered.length ? `, unordered=${repr(spec.unordered)}` : "";
  return `Spec(source=${repr(source)}, target=${repr(target)}${groups})`;
}
