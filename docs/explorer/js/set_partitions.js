// Set partitions as restricted growth strings: the block index of each slot, blocks numbered by first appearance.

// The partition that puts equal labels together.
function canonicalLabels(labels) {
  const numbers = new Map();
  return labels.map((label) => {
    if (!numbers.has(label)) numbers.set(label, numbers.size);
    return numbers.get(label);
  });
}

// The blocks, each a list of slots.
function blocksOf(partition) {
  const blocks = [];
  partition.forEach((block, slot) => (blocks[block] ??= []).push(slot));
  return blocks;
}

// The set partitions whose blocks lie within one node set, in canonical order, at most `limit`.
//
// Of partitions that differ by an exchange of slots of one group only the first is generated. No two separate slots share
// a block.
function setPartitions(setIds, groups, separate, limit = Infinity) {
  const numbers = canonicalLabels(groups);
  const before = numbers.map((number, slot) => numbers.lastIndexOf(number, slot - 1));
  const found = [];
  const string = [];
  const words = []; // for each block the groups of its slots, in order
  const slotsIn = []; // for each block its slots

  function fits(slot, block) {
    if (setIds[slotsIn[block][0]] !== setIds[slot]) return false;
    if (separate.has(slot) && slotsIn[block].some((other) => separate.has(other))) return false;
    // Of blocks with equal groups the first is taken.
    return words.indexOf(words[block]) === block;
  }

  function extend(slot) {
    if (slot === setIds.length) {
      found.push([...string]);
      return;
    }
    // The slots of a group are assigned to blocks in order. A new block is always allowed, so no prefix is a dead end.
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
      if (found.length >= limit) return;
    }
  }

  extend(0);
  return found.slice(0, limit);
}

// Constraints on the slots of a map between one source and one target: node set and exchange group of each slot, and the
// separate slots, which lie in different blocks.
function slotConstraints(spec, { symmetric, hollow }) {
  const source = spec.sources[0];
  const setIds = canonicalLabels([...source, ...spec.targets[0]]);
  const groups = setIds.map((_, slot) => slot);
  for (const group of spec.unordered) for (const slot of group) groups[slot] = group[0];
  if (symmetric) source.forEach((name, slot) => (groups[slot] = source.indexOf(name)));
  return { setIds, groups, separate: new Set(hollow ? source.keys() : []) };
}
