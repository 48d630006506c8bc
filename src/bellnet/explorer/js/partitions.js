// Set partitions as restricted growth strings: slot by slot the number of its block, blocks in order of appearance.

// The partition that puts equal labels together.
function canonical(labels) {
  const numbers = new Map();
  return labels.map((label) => {
    if (!numbers.has(label)) numbers.set(label, numbers.size);
    return numbers.get(label);
  });
}

// The blocks as lists of slots.
function blocksOf(partition) {
  const blocks = [];
  partition.forEach((block, slot) => (blocks[block] ??= []).push(slot));
  return blocks;
}

// The partitions in which slots of one block are of one kind, in canonical order, or the first of them.
//
// Of partitions that differ by an exchange of slots of one group only the first is listed, and the others are not made
// either; no two of the slots that are apart share a block.
function partitions(kinds, groups, apart, most = Infinity) {
  const numbers = canonical(groups);
  const before = numbers.map((number, slot) => numbers.lastIndexOf(number, slot - 1));
  const found = [];
  const string = [];
  const words = []; // of every block the groups of its slots, in order
  const slotsIn = []; // and the slots themselves

  function fits(slot, block) {
    if (kinds[slotsIn[block][0]] !== kinds[slot]) return false;
    if (apart.has(slot) && slotsIn[block].some((other) => apart.has(other))) return false;
    // Of blocks that are made of the same groups the earlier one is taken.
    return words.indexOf(words[block]) === block;
  }

  function extend(slot) {
    if (slot === kinds.length) {
      found.push([...string]);
      return;
    }
    // The slots of a group go to the blocks in order. A block of its own is always allowed: what is begun leads on.
    for (let block = slot && before[slot] >= 0 ? string[before[slot]] : 0; block <= words.length; block++) {
      const isNew = block === words.length;
      if (!isNew && !fits(slot, block)) continue;
      const word = isNew ? "" : words[block];
      if (isNew) slotsIn.push([]);
      words[block] = `${word} ${numbers[slot]}`;
      slotsIn[block].push(slot);
      string.push(block);
      extend(slot + 1);
      string.pop();
      slotsIn[block].pop();
      if (isNew) {
        words.pop();
        slotsIn.pop();
        break;
      }
      words[block] = word;
      if (found.length >= most) return;
    }
  }

  extend(0);
  return found.slice(0, most);
}

// What is known of the slots of a map between one source and one target: their kinds, groups, and which are apart.
function declaredOf(spec, { symmetric, hollow }) {
  const source = spec.sources[0];
  const kinds = canonical([...source, ...spec.targets[0]]);
  const groups = kinds.map((_, slot) => slot);
  for (const group of spec.unordered) for (const slot of group) groups[slot] = group[0];
  if (symmetric) source.forEach((name, slot) => (groups[slot] = source.indexOf(name)));
  return { kinds, groups, apart: new Set(hollow ? source.keys() : []) };
}
