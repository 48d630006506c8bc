"""Invariant pooling: one value for each orbit of the entries of a tensor, for every channel."""

from itertools import combinations

import torch
from torch import Tensor, nn

from bellnet.combinatorics import Partition, partitions
from bellnet.execute import Nodes
from bellnet.nn.inputs import Reception
from bellnet.nn.options import check_choice
from bellnet.plan import Fold
from bellnet.spec import Spec, parse_shape
from bellnet.tensors import Padded


class InvariantPool(nn.Module):
    """The maximum, sum or mean over each orbit: the entries whose indices have one equality pattern.

    For "n n" the orbits are the diagonal and the off-diagonal. Channels are multiplied by the number of orbits,
    Bell(k) for one node set; orbits come in canonical order (coincident indices first), each with all its channels.
    An orbit without entries (the off-diagonal of a single node) gives zero. Padding is not seen.

    Args:
        spec: The node set of every slot, for instance "n n".
        reduce: "max", "sum" or "mean".

    >>> pool = InvariantPool("n n", reduce="max")
    >>> pool(torch.tensor([[1.0, 7.0], [2.0, 5.0]]).unsqueeze(-1))
    tensor([5., 7.])
    """

    def __init__(self, spec: str, reduce: str = "max") -> None:
        super().__init__()
        self.axes = parse_shape(spec)
        self._call = f'InvariantPool("{" ".join(self.axes)}")'
        self.reduce = check_choice(self._call, "reduce", reduce, ("max", "sum", "mean"))
        self.orbits = partitions(self.axes)

    @property
    def n_orbits(self) -> int:
        """By how much the number of channels grows."""
        return len(self.orbits)

    def forward(self, x: Tensor | Padded) -> Tensor:
        """From (*batch, one axis for each slot, channels) to (*batch, n_orbits * channels)."""
        spec = Spec(self.axes, ())
        given = Reception(self._call, spec, None).receive(x)
        sets = spec.set_numbers[0]
        pooled = [self._pool(given.tensor, given.nodes, Fold.keeping(orbit, sets, set(orbit))) for orbit in self.orbits]
        return torch.cat(pooled, -1).reshape(*given.batch, -1)

    def _pool(self, tensor: Tensor, nodes: Nodes, orbit: Fold) -> Tensor:
        """One orbit of a (batch, *axes, channels) tensor: (batch, channels)."""
        entries = _diagonal(tensor, orbit.blocks)
        left_out = _left_out(nodes, tuple(orbit.set_of_block.values()), entries)
        axes = tuple(range(1, entries.ndim - 1))
        if not axes:
            return entries
        if self.reduce == "sum":
            return entries.masked_fill(left_out, 0).sum(axes)
        if self.reduce == "mean":
            count = (~left_out).expand(*entries.shape[:-1], 1).sum(axes).clamp(min=1)
            return entries.masked_fill(left_out, 0).sum(axes) / count.to(entries.dtype)
        empty = left_out.expand(*entries.shape[:-1], 1).flatten(1).all(1).unsqueeze(-1)
        if 0 in entries.shape[1:-1]:
            return entries.sum(axes)
        # amax shares the gradient among equal entries, so that it does not depend on the numbering of nodes either.
        return entries.masked_fill(left_out, -torch.inf).amax(axes).masked_fill(empty, 0)

    def extra_repr(self) -> str:
        """The options, as they would be written in a call, and the number of orbits."""
        return f'"{" ".join(self.axes)}", reduce="{self.reduce}", n_orbits={self.n_orbits}'


def _diagonal(tensor: Tensor, blocks: Partition) -> Tensor:
    """The entries whose slots agree inside each block: (batch, one axis for each block, channels)."""
    fold = Fold.keeping(blocks, (0,) * len(blocks), set(blocks))
    if fold.step is None:
        return tensor
    first, second = (axis + 1 for axis in fold.step.axes)
    return _diagonal(tensor, fold.step.parent.blocks).diagonal(0, first, second).movedim(-1, first)


def _left_out(nodes: Nodes, sets: tuple[int, ...], entries: Tensor) -> Tensor:
    """Where two indices of one node set coincide, or there is no node: broadcasts to the entries."""
    left_out = entries.new_zeros([1] * entries.ndim, dtype=torch.bool)
    for one, other in combinations(range(len(sets)), 2):
        if sets[one] == sets[other]:
            length = nodes.lengths[sets[one]]
            shape = [1] * entries.ndim
            shape[one + 1] = shape[other + 1] = length
            left_out = left_out | torch.eye(length, dtype=torch.bool, device=entries.device).reshape(shape)
    outside = nodes.outside(sets)
    return left_out if outside is None else left_out | outside
