"""Random collections to run layers on, and their expected results, pair by pair from the definition."""

from types import SimpleNamespace

import torch
from hypothesis import strategies as st

import bellnet as bn
from tests.backends.sparse_cases import choose
from tests.backends.subjects import by_definition

CHANNELS = (2, 1, 3, 2)


@st.composite
def collections(draw, *, names="nm", max_order=3, max_slots=7):
    """Specs with up to three tensors a side, at least one side with several."""
    shape = st.lists(st.sampled_from(names), max_size=max_order).map(tuple)
    n_sources, n_targets = draw(st.sampled_from([(2, 1), (1, 2), (2, 2), (3, 1), (1, 3), (3, 2), (2, 3), (3, 3)]))
    sources, targets = (draw(st.lists(shape, min_size=n, max_size=n)) for n in (n_sources, n_targets))
    while max(map(len, sources)) + max(map(len, targets)) > max_slots - 2:
        side = sources if max(map(len, sources)) >= max(map(len, targets)) else targets
        longest = max(range(len(side)), key=lambda number: len(side[number]))
        side[longest] = side[longest][:-1]
    return bn.Spec(*(tuple(side) if len(side) > 1 else side[0] for side in (sources, targets)))


def layer_of(spec, **options):
    """A layer whose tensors have different channels, unless that is not wanted."""
    even = options.pop("even", False)
    inside, outside = (
        tuple((2 if even else CHANNELS[number]) for number in range(len(shapes)))
        for shapes in (spec.sources, spec.targets)
    )
    layer = bn.EquivariantLinear(
        spec,
        inside if len(inside) > 1 else inside[0],
        outside if len(outside) > 1 else outside[0],
        dtype=torch.float64,
        **options,
    )
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for parameter in layer.parameters():
            parameter.copy_(torch.randn(parameter.shape, generator=generator, dtype=torch.float64))
    return layer


def tensors_of(layer, sizes, *, batch=(), seed=0):
    """A random tensor for every source."""
    generator = torch.Generator().manual_seed(seed)
    channels = layer.in_channels if isinstance(layer.in_channels, tuple) else (layer.in_channels,)
    return [
        torch.randn(*batch, *[sizes[name] for name in shape], width, generator=generator, dtype=torch.float64)
        for shape, width in zip(layer.spec.sources, channels, strict=True)
    ]


def given_to(layer, tensors, sizes, **options):
    """Call a layer; its results as a list."""
    new = {name: sizes[name] for name in layer.spec.target_only}
    results = layer(tuple(tensors) if len(tensors) > 1 else tensors[0], sizes=new, **options)
    return list(results) if isinstance(results, tuple) else [results]


def pair_by_pair(layer, tensors, sizes, *, normalize=None):
    """The expected results for dense tensors: for every target the sum over all sources, map by map."""
    found = [None] * len(layer.spec.targets)
    for pair in layer.plan.pairs:
        alone = SimpleNamespace(
            spec=layer.spec.pair(pair.source, pair.target),
            plan=layer.plan.pair(pair.source, pair.target),
            basis=layer.basis,
            normalize=normalize or layer.normalize,
            weight=getattr(layer, f"weight_{pair.source}_to_{pair.target}"),
            bias=getattr(layer, f"bias_{pair.target}") if pair.source == 0 else None,
        )
        term = by_definition(alone, tensors[pair.source], sizes)
        found[pair.target] = term if found[pair.target] is None else found[pair.target] + term
    return found


def support_over(kind, slots, sizes, seed):
    """A support of one graph (numbers) or of several (lists)."""
    generator = torch.Generator().manual_seed(seed)
    names = dict.fromkeys(slots)
    if not isinstance(next(iter(sizes.values())), list):
        index = choose(kind, slots, sizes, generator)
        given = {name: sizes[name] for name in names}
    else:
        n_graphs = len(next(iter(sizes.values())))
        graphs = [{name: several[number] for name, several in sizes.items()} for number in range(n_graphs)]
        columns = [choose(kind, slots, graph, generator) for graph in graphs]
        numbered = [torch.cat([torch.full((1, one.shape[1]), graph), one]) for graph, one in enumerate(columns)]
        index = torch.cat(numbered, 1)
        given = {name: torch.tensor(sizes[name]) for name in names}
    return bn.Sparse(index, torch.zeros(index.shape[1], 1, dtype=torch.float64), given, shape=" ".join(slots)).support
