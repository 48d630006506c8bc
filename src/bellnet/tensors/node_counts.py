"""How many nodes of every node set there are, in one graph or in each graph of a batch."""

from collections.abc import Mapping, Sequence
from functools import cached_property
from math import prod
from operator import index as as_index

import torch
from torch import Tensor

from bellnet._utils.memory import machine_memory
from bellnet.errors import SizesError, type_name
from bellnet.tensors.tracing import no_transforms

Size = int | Tensor | Sequence[int]
NodeSizes = Size | Mapping[str, Size]

LARGEST = 2**62
"""More nodes than this are refused, since their indices would overflow."""
BYTES_PER_NODE = 64
"""The memory of the tables of a layer for each node: its graph, its index, and how many entries it has."""
SPARSE = 'Stay sparse: layers take a Sparse, and Encoding.encode, Loader and the estimators have layout="sparse".'
ANY_SET = ""
"""Stands for the name where sizes were given without one: they then hold for whatever a spec calls the node set."""


class NodeCounts:
    """The number of nodes of every node set in every graph.

    Nodes of a batch are also numbered through: those of the first graph, then those of the second, and so on.

    Args:
        by_set: For every node set (n_graphs,) integers; `ANY_SET` alone if the sets have no names.
        is_batch: Whether there is a batch axis; without one there is one graph.
    """

    def __init__(self, by_set: Mapping[str, Tensor], *, is_batch: bool) -> None:
        self.by_set = dict(by_set)
        self.is_batch = is_batch
        self.n_graphs = len(next(iter(self.by_set.values()))) if self.by_set else 1

    @classmethod
    def parse(cls, call: str, sizes: object, device: torch.device) -> "NodeCounts":
        """From what a caller gave: a number, one number for each graph, or a dict from node sets to these."""
        given = sizes if isinstance(sizes, Mapping) else {ANY_SET: sizes}
        if not given:
            raise SizesError(f"{call}: sizes is empty.\nGive the number of nodes of every node set.")
        parsed = {name: _parse(call, name, size, device) for name, size in given.items()}
        (first, counts), *others = parsed.items()
        for name, other in others:
            if other.shape != counts.shape:
                raise SizesError(
                    f"{call}: the sizes of node sets {first!r} and {name!r} have shapes {tuple(counts.shape)} and "
                    f"{tuple(other.shape)}.\n"
                    "Give all node sets one number each, or each of them one number for every graph."
                )
        return cls({name: one.reshape(-1) for name, one in parsed.items()}, is_batch=counts.ndim == 1)

    @property
    def is_named(self) -> bool:
        """Whether the node sets have names."""
        return ANY_SET not in self.by_set

    @property
    def sizes(self) -> int | Tensor | dict[str, int | Tensor]:
        """As a caller would give them."""
        shown = {name: counts.clone() if self.is_batch else int(counts) for name, counts in self.by_set.items()}
        return shown if self.is_named else shown[ANY_SET]

    def of(self, name: str) -> Tensor | None:
        """(n_graphs,) numbers of nodes of a node set; None if it is not among those with sizes."""
        return self.by_set.get(name) if self.is_named else self.by_set[ANY_SET]

    @cached_property
    def totals(self) -> dict[str, int]:
        """For every node set the number of nodes in all graphs together."""
        with no_transforms():
            return {name: int(counts.sum()) for name, counts in self.by_set.items()}

    @cached_property
    def common(self) -> dict[str, int | None]:
        """For every node set the number of nodes of each graph; None if graphs differ in it, or there is no graph."""
        common: dict[str, int | None] = {}
        with no_transforms():
            for name, counts in self.by_set.items():
                low, high = (int(counts.min()), int(counts.max())) if len(counts) else (0, 1)
                common[name] = low if low == high else None
        return common

    @cached_property
    def starts(self) -> dict[str, Tensor]:
        """For every node set (n_graphs,): the first node of every graph, if nodes are numbered through."""
        with no_transforms():
            return {name: counts.cumsum(0) - counts for name, counts in self.by_set.items()}

    def graph_of_every_node(self, name: str) -> Tensor:
        """(nodes of all graphs,): the number of the graph that a node belongs to."""
        self._check_memory(name)
        counts = self.by_set[name]
        return torch.repeat_interleave(torch.arange(len(counts), device=counts.device), counts)

    def _check_memory(self, name: str) -> None:
        """Refuse tables of all nodes that would not fit into the memory of this machine."""
        needed, here = self.totals[name] * BYTES_PER_NODE, machine_memory()
        if here is not None and needed > here:
            named = f" of node set {name!r}" if name != ANY_SET else ""
            raise SizesError(
                f"sizes: {self.totals[name]:,} nodes{named} would take at least {needed:,} bytes in a layer, which has "
                f"memory for each node; this machine has {here:,}.\n"
                "Number only the nodes that occur: torch.unique(index, return_inverse=True)."
            )

    def key(self, name: str) -> str:
        """Under which name the counts of a node set stand here."""
        return name if self.is_named else ANY_SET

    def only(self, names: Sequence[str]) -> "NodeCounts":
        """The counts of some node sets."""
        if not self.is_named or set(names) == set(self.by_set):
            return self
        return NodeCounts({name: self.by_set[name] for name in dict.fromkeys(names)}, is_batch=self.is_batch)

    def to(self, device: torch.device | str) -> "NodeCounts":
        """The same on another device."""
        return NodeCounts({name: counts.to(device) for name, counts in self.by_set.items()}, is_batch=self.is_batch)


def _parse(call: str, name: str, size: object, device: torch.device) -> Tensor:
    argument = f"sizes[{name!r}]" if name != ANY_SET else "sizes"
    counts: Tensor | None = None
    if isinstance(size, Tensor):
        whole = not (size.is_floating_point() or size.is_complex() or size.dtype == torch.bool)
        counts = size.detach().to(device, torch.int64, copy=True) if whole and size.ndim <= 1 else None
    elif isinstance(size, Sequence) and not isinstance(size, str) and all(_is_whole(one) for one in size):
        counts = torch.tensor([as_index(one) for one in size], dtype=torch.int64, device=device)
    elif _is_whole(size):
        counts = torch.tensor(as_index(size), device=device)  # type: ignore[arg-type]
    if counts is None:
        shown = f"a {size.dtype} tensor of shape {tuple(size.shape)}" if isinstance(size, Tensor) else type_name(size)
        raise SizesError(
            f"{call}: {argument} must be a whole number, or whole numbers for the graphs of a batch, not {shown}.\n"
            "Sizes are numbers of nodes: 5 for one graph, torch.tensor([5, 3]) for a batch of two."
        )
    if counts.numel() and int(counts.min()) < 0:
        raise SizesError(f"{call}: {argument} holds a negative number, {int(counts.min())}.")
    if counts.numel() and float(counts.double().sum()) > LARGEST:
        raise SizesError(f"{call}: {argument} add up to more than {LARGEST:,} nodes.\nSizes are numbers of nodes.")
    return counts


def _is_whole(size: object) -> bool:
    if isinstance(size, bool):
        return False
    try:
        return abs(as_index(size)) < 2**63  # type: ignore[arg-type]
    except TypeError:
        return False


def check_room_for(call: str, shape: Sequence[int], dtype: torch.dtype, max_gigabytes: float | None = None) -> None:
    """Refuse a tensor that would take more than so many gigabytes, or than the machine has if None."""
    needed = prod(shape) * dtype.itemsize
    allowed = machine_memory() if max_gigabytes is None else max_gigabytes * 1e9
    if allowed is None or needed <= allowed:
        return
    whose = "this machine has" if max_gigabytes is None else "max_gigabytes allows"
    raise SizesError(
        f"{call}: a tensor of {' x '.join(map(str, shape))} numbers would take {needed:,} bytes; {whose} "
        f"{int(allowed):,}.\n{SPARSE}"
    )
