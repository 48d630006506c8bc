"""Strategies for hypothesis: specs, sizes, permutations, tensors and padded batches.

Examples shrink towards few slots, few nodes and tensors of zeros. Entries come from a seed and are not drawn one by
one, so that large examples stay cheap.

>>> from hypothesis import given, settings, strategies as st
>>> from bellnet import EquivariantLinear, testing
>>> @settings(deadline=None, max_examples=20)
... @given(st.data(), specs(max_slots=3, target_only=False))
... def test_the_layer_commutes_with_permutations(data, spec):
...     layer = EquivariantLinear(spec, 2, 2, dtype=torch.float64)
...     counts = data.draw(sizes(spec))
...     x = data.draw(tensors(spec.source, counts, channels=2))
...     chosen = data.draw(permutations(counts))
...     found = layer(testing.permute_nodes(x, spec.source, chosen))
...     torch.testing.assert_close(found, testing.permute_nodes(layer(x), spec.target, chosen))
>>> test_the_layer_commutes_with_permutations()
"""

from collections.abc import Mapping

import torch
from torch import Tensor

from bellnet.errors import MissingExtraError
from bellnet.spec import Spec, parse_shape, parse_spec
from bellnet.tensors import Padded

try:
    from hypothesis import strategies as st
    from hypothesis.strategies import SearchStrategy
except ImportError as reason:
    raise MissingExtraError(
        "bellnet.testing.strategies needs hypothesis, which is not installed.\nRun: pip install bellnet[testing]"
    ) from reason

_NAMES = ("n", "u", "i", "v", "w")


@st.composite
def specs(
    draw: st.DrawFn, *, min_slots: int = 0, max_slots: int = 4, max_node_sets: int = 2, target_only: bool = True
) -> Spec:
    """Specs with `min_slots` to `max_slots` slots, source and target together, over at most `max_node_sets` node sets.

    The number of maps grows with the slots like a Bell number. Without `target_only` the target has no node sets that
    the source has not.
    """
    names = _NAMES[:max_node_sets]
    n_slots = draw(st.integers(min_slots, max_slots))
    slots = draw(st.lists(st.sampled_from(names), min_size=n_slots, max_size=n_slots))
    n_source = draw(st.integers(0, n_slots))
    spec = Spec(tuple(slots[:n_source]), tuple(slots[n_source:]))
    if target_only or not spec.target_only:
        return spec
    return Spec(spec.source, tuple(name for name in spec.target if name in spec.source))


def sizes(spec: str | Spec, *, min: int = 0, max: int = 4) -> SearchStrategy[dict[str, int]]:
    """For every node set of a spec (or of a shape such as "n n") a number of nodes from `min` to `max`."""
    slots = parse_shape(spec) if isinstance(spec, str) and "->" not in spec else parse_spec(spec).slots
    return st.fixed_dictionaries({name: st.integers(min, max) for name in dict.fromkeys(slots)})


def permutations(sizes: Mapping[str, int]) -> SearchStrategy[dict[str, tuple[int, ...]]]:
    """For every node set a permutation of its nodes, as `permute_nodes` takes them."""
    return st.fixed_dictionaries({name: st.permutations(range(size)).map(tuple) for name, size in sizes.items()})


@st.composite
def tensors(
    draw: st.DrawFn,
    shape: str | tuple[str, ...],
    sizes: Mapping[str, int],
    *,
    channels: int = 1,
    batch: tuple[int, ...] = (),
    dtype: torch.dtype = torch.float64,
) -> Tensor:
    """Tensors (*batch, one axis for each slot, channels): zeros, small integers, or normal numbers.

    Small integers are often equal, as a maximum may meet them, and their sums are exact.

    Args:
        draw: Passed by hypothesis.
        shape: The node set of every slot: "n n", or one side of a spec, `spec.source`.
        sizes: The number of nodes of every node set.
        channels: The number of channels.
        batch: The batch axes.
        dtype: The dtype of the tensor.
    """
    names = parse_shape(shape) if isinstance(shape, str) else shape
    lengths = (*batch, *(sizes[name] for name in names), channels)
    kind = draw(st.sampled_from(["zeros", "integers", "normal"]))
    if kind == "zeros":
        return torch.zeros(lengths, dtype=dtype)
    generator = torch.Generator().manual_seed(draw(st.integers(0, 2**31 - 1)))
    if kind == "integers":
        return torch.randint(-2, 3, lengths, generator=generator).to(dtype)
    return torch.randn(lengths, generator=generator, dtype=torch.float64).to(dtype)


@st.composite
def padded(
    draw: st.DrawFn,
    shape: str | tuple[str, ...] = "n n",
    *,
    max_graphs: int = 3,
    min: int = 0,
    max: int = 4,
    channels: int = 1,
    dtype: torch.dtype = torch.float64,
) -> Padded:
    """Batches of 1 to `max_graphs` graphs with `min` to `max` nodes, with large numbers or NaN in the padding."""
    names = parse_shape(shape) if isinstance(shape, str) else shape
    n_graphs, extra = draw(st.integers(1, max_graphs)), draw(st.integers(0, 2))
    counts = st.lists(st.integers(min, max), min_size=n_graphs, max_size=n_graphs)
    drawn = {name: torch.tensor(draw(counts)) for name in dict.fromkeys(names)}
    lengths = {name: int(sizes.max()) + extra for name, sizes in drawn.items()}
    values = draw(tensors(names, lengths, channels=channels, batch=(n_graphs,), dtype=dtype))
    graphs = Padded(values, drawn[names[0]] if len(drawn) == 1 else drawn)
    outside = ~graphs.mask(" ".join(names)).unsqueeze(-1)
    return graphs.with_values(values.masked_fill(outside, draw(st.sampled_from([1e4, float("nan")]))))
