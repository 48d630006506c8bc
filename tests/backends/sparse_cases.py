"""Random supports, and what a layer must give on them, from the definition and graph by graph."""

from itertools import product
from math import prod

import torch
from hypothesis import strategies as st

import bellnet as bn
from tests.backends.subjects import by_definition, mask

KINDS = ("empty", "full", "single", "hollow", "with diagonal", "some")


def tuples_of(slots, sizes):
    """All tuples of nodes of one graph, one column each."""
    every = list(product(*(range(sizes[name]) for name in slots)))
    return torch.tensor(every, dtype=torch.int64).reshape(len(every), len(slots)).T


def choose(kind, slots, sizes, generator):
    """Some of the tuples of one graph."""
    every = tuples_of(slots, sizes)
    same_set = torch.tensor([[one == other for other in slots] for one in slots])
    equal = every.unsqueeze(0) == every.unsqueeze(1)
    off = torch.eye(len(slots), dtype=torch.bool)
    touches = (equal & (same_set & ~off).unsqueeze(-1)).any(0).any(0)
    some = torch.rand(every.shape[1], generator=generator) < 0.4
    if kind == "single":
        some = torch.zeros_like(some)
        some[: min(len(some), 1)] = True
        some = some[torch.randperm(len(some), generator=generator)]
    chosen = {
        "empty": torch.zeros_like(some),
        "full": torch.ones_like(some),
        "single": some,
        "hollow": some & ~touches,
        "with diagonal": some | touches,
        "some": some,
    }[kind]
    return every[:, chosen]


def sparse(kind, slots, sizes, channels, generator):
    """A Sparse over a batch of graphs; `sizes` has a list for every node set, or numbers for one graph alone."""
    graphs = _graphs(sizes)
    columns = [choose(kind, slots, graph, generator) for graph in graphs]
    if not _is_batch(sizes):
        index, given = columns[0], sizes
    else:
        numbered = [torch.cat([torch.full((1, c.shape[1]), g), c]) for g, c in enumerate(columns)]
        index = torch.cat(numbered, 1) if numbered else torch.zeros(1 + len(slots), 0, dtype=torch.int64)
        given = {name: torch.tensor(counts, dtype=torch.int64) for name, counts in sizes.items()}
    values = torch.randn(index.shape[1], channels, generator=generator, dtype=torch.float64)
    shuffled = torch.randperm(index.shape[1], generator=generator)
    given = {name: given[name] for name in dict.fromkeys(slots)}
    return bn.Sparse(index[:, shuffled], values[shuffled], given, shape=" ".join(slots))


@st.composite
def random_sizes(draw, spec, *, entries=300):
    """Sizes for one graph or for a batch of graphs of different sizes, down to none."""
    slots = max(len(spec.slots), 1)
    most = max(size for size in range(1, 6) if size**slots <= entries)
    size = st.sampled_from(range(most, -1, -1))
    if draw(st.booleans()):
        return {name: draw(size) for name in spec.node_sets}
    n_graphs = draw(st.integers(1, 3))
    return {name: draw(st.lists(size, min_size=n_graphs, max_size=n_graphs)) for name in spec.node_sets}


def expected(layer, x, target, sizes):
    """What the layer must give at the tuples of the target: the definition on the dense tensor of every graph."""
    found = []
    for number, graph in enumerate(_graphs(sizes)):
        values, here = x.values, x.index
        where = target.index if target is not None else None
        if _is_batch(sizes):
            values, here = x.values[x.index[0] == number], x.index[1:, x.index[0] == number]
            where = None if where is None else where[1:, where[0] == number]
        lengths = [graph[name] for name in layer.spec.source]
        dense = torch.zeros(*lengths, x.values.shape[1], dtype=torch.float64).index_put(tuple(here), values)
        stored = torch.zeros(lengths, dtype=torch.float64).index_put(tuple(here), torch.ones(here.shape[1]).double())
        y = (
            _stored_definition(layer, dense, stored, graph)
            if layer.normalize == "stored"
            else by_definition(layer, dense, graph)
        )
        found.append(y.unsqueeze(0) if where is None else y[tuple(where)])
    result = torch.cat(found)
    return result if target is not None or _is_batch(sizes) else result.squeeze(0)


def _stored_definition(layer, x, stored, sizes):
    """Every sum divided by how many of its terms are stored."""
    spec = layer.spec
    target = [sizes[name] for name in spec.target]
    flat, ones = x.reshape(-1, x.shape[-1]), stored.reshape(-1)
    y = torch.zeros(prod(target), layer.weight.shape[-1], dtype=torch.float64)
    for number, diagram in enumerate(layer.plan.diagrams):
        entries = mask(diagram.partition, sizes, spec.slots, exact=False).to(x).reshape(len(flat), prod(target))
        n_stored = (entries.T @ ones).clamp(min=1).unsqueeze(-1)
        y = y + (entries.T @ flat / n_stored) @ layer.weight[number]
    y = y.reshape(*target, layer.weight.shape[-1])
    if layer.bias is not None:
        for number, pattern in enumerate(layer.plan.biases):
            y = y + mask(pattern, sizes, spec.target, exact=False).to(x).unsqueeze(-1) * layer.bias[number]
    return y


def _is_batch(sizes):
    return isinstance(next(iter(sizes.values())), list)


def _graphs(sizes):
    if not _is_batch(sizes):
        return [sizes]
    return [dict(zip(sizes, counts, strict=True)) for counts in zip(*sizes.values(), strict=True)]
