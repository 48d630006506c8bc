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
    """Specs with at most so many slots, source and target together, over at most so many node sets.

    Args:
        draw: Filled in by hypothesis.
        min_slots: The least number of slots.
        max_slots: The largest number of slots; the number of maps grows like a Bell number.
        max_node_sets: The largest number of node sets, at most five.
        target_only: Whether the target may have node sets that the source has not; if not, such slots are left out.
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
    return st.fixed_dictionaries({name: st.integers(min, max) for name in dict.fromkeys(_slots(spec))})


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
        draw: Filled in by hypothesis.
        shape: The node set of every slot: "n n", or one side of a spec, `spec.source`.
        sizes: The number of nodes of every node set.
        channels: The number of channels.
        batch: The batch axes.
        dtype: The type of the tensor.
    """
    names = parse_shape(shape) if isinstance(shape, str) else shape
    return _entries(draw, (*batch, *(sizes[name] for name in names), channels), dtype)


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
    """Batches of graphs of different sizes, padded, with large numbers or NaN outside the true sizes.

    Args:
        draw: Filled in by hypothesis.
        shape: The node set of every slot.
        max_graphs: The largest number of graphs; there is at least one.
        min: The least number of nodes.
        max: The largest number of nodes.
        channels: The number of channels.
        dtype: The type of the values.
    """
    names = parse_shape(shape) if isinstance(shape, str) else shape
    n_graphs = draw(st.integers(1, max_graphs))
    counts = st.lists(st.integers(min, max), min_size=n_graphs, max_size=n_graphs)
    drawn = {name: torch.tensor(draw(counts)) for name in dict.fromkeys(names)}
    extra = draw(st.integers(0, 2))
    lengths = [int(drawn[name].max()) + extra for name in names]
    values = _entries(draw, (n_graphs, *lengths, channels), dtype)
    graphs = Padded(values, drawn[names[0]] if len(drawn) == 1 else drawn)
    outside = ~graphs.mask(" ".join(names)).unsqueeze(-1)
    return graphs.with_values(values.masked_fill(outside, draw(st.sampled_from([1e4, float("nan")]))))


def _entries(draw: st.DrawFn, shape: tuple[int, ...], dtype: torch.dtype) -> Tensor:
    kind = draw(st.sampled_from(["zeros", "integers", "normal"]))
    if kind == "zeros":
        return torch.zeros(shape, dtype=dtype)
    generator = torch.Generator().manual_seed(draw(st.integers(0, 2**31 - 1)))
    if kind == "integers":
        return torch.randint(-2, 3, shape, generator=generator).to(dtype)
    return torch.randn(shape, generator=generator, dtype=torch.float64).to(dtype)


def _slots(spec: str | Spec) -> tuple[str, ...]:
    if isinstance(spec, str) and "->" not in spec:
        return parse_shape(spec)
    return parse_spec(spec).slots
