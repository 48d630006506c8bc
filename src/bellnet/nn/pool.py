"""Invariant pooling: one value for each orbit of the entries of a tensor, for every channel."""

import json
from collections.abc import Sequence

import torch
from torch import Tensor, nn

from bellnet.backends import Orbit, pool_orbits
from bellnet.combinatorics import partitions
from bellnet.errors import OptionError, ShapeError, TensorError, as_written
from bellnet.nn.each import check_several
from bellnet.nn.inputs import Reception
from bellnet.nn.listed import check_sparse
from bellnet.nn.listed_pool import pool_listed
from bellnet.nn.one_input import refuse_more
from bellnet.nn.options import check_choice
from bellnet.nn.scripting import NotScripted
from bellnet.nn.several import Collection, OverNodes
from bellnet.plan import MOST_MAPS, Contraction, refuse_giants
from bellnet.spec import Spec, parse_shapes, text_of
from bellnet.tensors import Sparse

REDUCTIONS = ("max", "sum", "mean")


class InvariantPool(NotScripted, nn.Module):
    """The maximum, sum or mean over each orbit: the entries whose indices have one equality pattern.

    For "n n" the orbits are the diagonal and the off-diagonal. Channels are multiplied by the number of orbits,
    Bell(k) for one node set; orbits come in canonical order (coincident indices first), each with all its channels.
    Several of maximum, sum and mean stand side by side, all orbits of the first before those of the second.
    An orbit without entries (the off-diagonal of a single node) gives zero. Padding is not seen. What comes of several
    tensors stands side by side.

    Args:
        spec: The node set of every slot, for instance "n n", or "n n, n" for two tensors.
        reduce: "max", "sum" or "mean", or several of them: ("mean", "max").
        over: For a `Sparse`, "all" counts the tuples that are not listed as zeros, so that the result is that of the
            dense tensor; "stored" leaves them out.
        max_maps: A spec with more orbits is refused; they are the maps of "n n ->".

    >>> pool = InvariantPool("n n", reduce="max")
    >>> pool(torch.tensor([[1.0, 7.0], [2.0, 5.0]]).unsqueeze(-1))
    tensor([5., 7.])
    """

    def __init__(
        self, spec: str, reduce: str | Sequence[str] = "max", *, over: str = "all", max_maps: int = MOST_MAPS
    ) -> None:
        super().__init__()
        self.shapes = parse_shapes(spec)
        self._call = call = f'InvariantPool("{text_of(self.shapes)}")'
        self.reduce = _check_reduce(call, reduce)
        self.over = check_choice(call, "over", over, ("all", "stored"))
        self.parts: nn.ModuleList | None = None
        if len(self.shapes) > 1:
            shapes = map(" ".join, self.shapes)
            self.parts = nn.ModuleList(InvariantPool(one, reduce, over=over, max_maps=max_maps) for one in shapes)
            return
        (self.axes,) = self.shapes
        refuse_giants(Spec(self.axes, ()), max_maps=max_maps)
        self._reception = Reception(call, Spec(self.axes, ()), None)
        self._orbits = tuple(_orbit(pattern, self._reception.source_sets) for pattern in partitions(self.axes))

    @property
    def n_orbits(self) -> int:
        """The number of orbits, of all tensors together."""
        return len(self._orbits) if self.parts is None else sum(part.n_orbits for part in self._pools)

    @property
    def growth(self) -> int:
        """By how much the number of channels grows: a value for every orbit, and for each of several reductions."""
        return self.n_orbits * len(self._reductions)

    def n_pooled(self, channels: int | tuple[int, ...]) -> int:
        """How many numbers come of so many channels, which for several tensors are a tuple."""
        if isinstance(channels, int):
            return self.growth * channels
        return sum(part.growth * width for part, width in zip(self._pools, channels, strict=True))

    @property
    def _pools(self) -> "list[InvariantPool]":
        return list(self.parts or ())  # type: ignore[arg-type]

    @property
    def _reductions(self) -> tuple[str, ...]:
        return (self.reduce,) if isinstance(self.reduce, str) else self.reduce

    def forward(self, x: OverNodes | Collection, *more: object) -> Tensor:
        """From (*batch, one axis for each slot, channels) to (*batch, growth * channels)."""
        if more:
            refuse_more(f'InvariantPool("{text_of(self.shapes)}")', (x, *more), len(self.shapes))
        if self.parts is None:
            return self._pooled(x)  # type: ignore[arg-type]
        given = check_several(self._call, x, self.shapes)
        pooled = [part._pooled(one) for part, one in zip(self._pools, given, strict=True)]
        for number, one in enumerate(pooled):
            if one.shape[:-1] != pooled[0].shape[:-1]:
                raise ShapeError(
                    f"{self._call}: the batch axes of x[0] are {tuple(pooled[0].shape[:-1])}, but those of x[{number}] "
                    f"are {tuple(one.shape[:-1])}.\nAll tensors must be about the same graphs."
                )
        return torch.cat(pooled, -1)

    def _pooled(self, x: OverNodes) -> Tensor:
        if isinstance(x, Sparse):
            check_sparse(self._reception.call, x, self.axes, None)
            self._check_dtype(x.values)
            return pool_listed(x, self._reception.source_sets, self._reductions, unlisted=self.over == "all")
        given = self._reception.receive(x)
        self._check_dtype(given.tensor)
        parts = [pool_orbits(given.tensor, given.nodes, self._orbits, reduce) for reduce in self._reductions]
        pooled = parts[0] if len(parts) == 1 else torch.cat(parts, -1)
        return pooled.reshape(*given.batch, pooled.shape[-1])

    def _check_dtype(self, tensor: Tensor) -> None:
        if not tensor.is_floating_point():
            raise TensorError(
                f"{self._reception.call} takes floating point numbers, but the input is {tensor.dtype}.\n"
                "Convert it: x.to(torch.float32)."
            )

    def extra_repr(self) -> str:
        """The options, as they would be written in a call, and the number of orbits."""
        over = "" if self.over == "all" else f', over="{self.over}"'
        return f'"{text_of(self.shapes)}", reduce={json.dumps(self.reduce)}{over}, n_orbits={self.n_orbits}'


def _check_reduce(call: str, reduce: object) -> str | tuple[str, ...]:
    """One reduction, or several, each once."""
    if isinstance(reduce, str) or not isinstance(reduce, Sequence):
        return check_choice(call, "reduce", reduce, REDUCTIONS)
    several = tuple(check_choice(call, f"reduce[{place}]", one, REDUCTIONS) for place, one in enumerate(reduce))
    if not several or len(set(several)) < len(several):
        raise OptionError(f"{call}: reduce must name each of max, sum and mean once at most, not {as_written(reduce)}.")
    return several


def _orbit(pattern: tuple[int, ...], sets: tuple[int, ...]) -> Orbit:
    merges: list[tuple[int, int]] = []
    # One node set for all slots: the axes of a fold then stand in order of first appearance.
    step = Contraction.keeping(pattern, (0,) * len(pattern), set(pattern)).step
    while step is not None:
        merges.insert(0, (step.axes[0], step.axes[1]))
        step = step.parent.step
    return Orbit(tuple(merges), tuple(sets[pattern.index(block)] for block in range(max(pattern, default=-1) + 1)))
