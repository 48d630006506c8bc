"""Random specs and sizes, and a second reference from the definition.

Everything here is written from the definitions: masks of equal and unequal indices, and one contraction. It shares no
code with the library's own oracle except the order of the diagrams.
"""

from itertools import combinations, permutations
from math import prod

import torch
from hypothesis import strategies as st

from bellnet import Spec, plan


@st.composite
def specs(draw, *, max_slots, names="n", min_source=0):
    """Specs over these node sets, with at most `max_slots` slots."""
    n_slots = draw(st.integers(min_source, max_slots))
    k = draw(st.integers(min_source, n_slots))
    slots = draw(st.lists(st.sampled_from(names), min_size=n_slots, max_size=n_slots))
    return Spec(tuple(slots[:k]), tuple(slots[k:]))


def sizes_for(spec, *, entries=800, least=0):
    """A size for every node set, from `least` up, such that a basis tensor has at most `entries` entries."""
    slots = max(len(spec.slots), 1)
    most = max(size for size in range(1, 6) if size**slots <= entries)
    size = st.sampled_from(range(most, least - 1, -1))  # large ones first: a simpler example has more nodes, not none
    return st.fixed_dictionaries(dict.fromkeys(spec.node_sets, size))


def mask(partition, sizes, slots, *, exact):
    """Where the indices of the slots agree inside blocks; `exact` also demands that blocks of one set differ."""
    lengths = [sizes[name] for name in slots]
    index = torch.meshgrid(*map(torch.arange, lengths), indexing="ij") if slots else ()
    holds = torch.ones(lengths, dtype=torch.bool)
    for one, other in combinations(range(len(slots)), 2):
        if partition[one] == partition[other]:
            holds = holds & (index[one] == index[other])
        elif exact and slots[one] == slots[other]:
            holds = holds & (index[one] != index[other])
    return holds


def divisor(partition, spec, sizes):
    """By what `normalize="mean"` divides a map: the sizes of the blocks that lie in the source alone."""
    k = len(spec.source)
    return prod(
        max(sizes[spec.slots[partition.index(block)]], 1) for block in set(partition[:k]) if block not in partition[k:]
    )


def by_definition(layer, x, sizes, *, weight=None, bias=None):
    """What a layer must give for a tensor, from masks; differentiable in everything."""
    spec, exact = layer.spec, layer.basis == "orbit"
    weight = layer.weight if weight is None else weight
    bias = layer.bias if bias is None else bias
    k = len(spec.source)
    batch = x.shape[: x.ndim - k - 1]
    target = [sizes[name] for name in spec.target]
    flat = x.reshape(*batch, prod(sizes[name] for name in spec.source), x.shape[-1])
    y = x.new_zeros(*batch, prod(target), weight.shape[-1])
    for number, diagram in enumerate(layer.plan.diagrams):
        entries = mask(diagram.partition, sizes, spec.slots, exact=exact).to(x)
        if layer.normalize == "mean":
            entries = entries / divisor(diagram.partition, spec, sizes)
        y = y + torch.einsum("...ai,ab,io->...bo", flat, entries.reshape(flat.shape[-2], prod(target)), weight[number])
    y = y.reshape(*batch, *target, weight.shape[-1])
    if bias is not None:
        for number, pattern in enumerate(layer.plan.biases):
            y = y + mask(pattern, sizes, spec.target, exact=exact).to(x).unsqueeze(-1) * bias[number]
    return y


def declared(spec, x, *, symmetric, hollow):
    """The nearest tensor that does not change under exchanges of slots of one node set, or is zero where they meet."""
    k = len(spec.source)
    first = x.ndim - k - 1
    if hollow:
        sizes = dict(zip(spec.source, x.shape[first:-1], strict=True))
        pattern = plan(Spec((), spec.source)).biases[-1]
        x = x * mask(pattern, sizes, spec.source, exact=True).to(x).unsqueeze(-1)
    if symmetric:
        moves = [m for m in permutations(range(k)) if all(spec.source[s] == spec.source[m[s]] for s in range(k))]
        batch = list(range(first))
        x = sum(x.permute(*batch, *(first + slot for slot in move), x.ndim - 1) for move in moves) / len(moves)
    return x


def randomise(layer, seed=0):
    """Give a layer weights and a bias that are all different from zero."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in layer.parameters():
            parameter.copy_(torch.randn(parameter.shape, generator=generator, dtype=torch.float64))
    return layer
