"""How many nodes of every node set there are, in one graph or in each graph of a batch."""

from collections.abc import Callable, Mapping, Sequence
from math import prod
from typing import Any

import torch
from torch import Tensor

from bellnet._utils.memory import machine_memory
from bellnet.errors import SizesError, type_name
from bellnet.tensors.tracing import Cached, is_concrete

Size = int | Tensor | Sequence[int]
NodeSizes = Size | Mapping[str, Size]

LARGEST = 2**62
"""More nodes than this are refused, since their indices would overflow."""
BYTES_PER_NODE = 64
"""The memory of the tables of a layer for each node: its graph, its index, and how many entries it has."""
MOST_SHOWN = 16
"""The largest number of sizes that a repr shows one by one."""
SPARSE = 'Stay sparse: layers take a Sparse, and Encoding.encode, Loader and the estimators have layout="sparse".'
ANY_SET = ""
"""Stands for the name where sizes were given without one: they then hold for whatever a spec calls the node set."""


class NodeCounts(Cached):
    """The number of nodes of every node set in every graph.

    Nodes of a batch are also numbered across all graphs: those of the first graph, then those of the second.

    Args:
        by_set: For every node set the integers of all graphs; `ANY_SET` alone if the sets have no names.
        is_batch: Whether there is a batch axis; without one there is one graph.
    """

    def __init__(self, by_set: Mapping[str, Tensor], *, is_batch: bool) -> None:
        self.by_set = dict(by_set)
        self.is_batch = is_batch

    @classmethod
    def parse(cls, call: str, sizes: object, device: torch.device) -> "NodeCounts":
        """From an integer, one integer for each graph, or a dict from node sets to these."""
        by_set = {name: parse_counts(call, name, size, device) for name, size in by_name(sizes).items()}
        if not by_set:
            raise SizesError(f"{call}: sizes is empty.\nGive the number of nodes of every node set.")
        shapes = [tuple(counts.shape) for counts in by_set.values()]
        if len(set(shapes)) > 1 or len(shapes[0]) > 1:
            raise SizesError(
                f"{call}: {', '.join(map(_argument, by_set))} have shapes {', '.join(map(str, shapes))}.\n"
                "Give all node sets one number each, or each of them one number for every graph."
            )
        for name, counts in by_set.items():
            if counts.numel() and float(counts.double().sum()) > LARGEST:
                raise SizesError(
                    f"{call}: {_argument(name)} add up to more than {LARGEST:,} nodes.\nSizes are numbers of nodes."
                )
        return cls({name: one.reshape(-1) for name, one in by_set.items()}, is_batch=len(shapes[0]) == 1)

    @property
    def n_graphs(self) -> int:
        """The number of graphs."""
        return len(next(iter(self.by_set.values()))) if self.by_set else 1

    @property
    def is_named(self) -> bool:
        """Whether the node sets have names."""
        return ANY_SET not in self.by_set

    def each(self, function: Callable[[Tensor], Any]) -> Any:
        """A function applied to the numbers of every node set: a dict if the sets have names."""
        found = {name: function(counts) for name, counts in self.by_set.items()}
        return found if self.is_named else found[ANY_SET]

    def map(self, function: Callable[[Tensor], Tensor], *, is_batch: bool | None = None) -> "NodeCounts":
        """The numbers that a function returns for those of every node set, on another device for instance."""
        by_set = {name: function(counts) for name, counts in self.by_set.items()}
        return NodeCounts(by_set, is_batch=self.is_batch if is_batch is None else is_batch)

    def equals(self, other: "NodeCounts") -> bool:
        """Whether names and numbers are the same."""
        same = self.by_set.keys() == other.by_set.keys()
        return same and all(torch.equal(counts, other.by_set[name]) for name, counts in self.by_set.items())

    def of(self, name: str) -> Tensor | None:
        """The numbers of nodes of a node set; None if it is not among those with sizes."""
        return self.by_set.get(self.key(name))

    @property
    def totals(self) -> dict[str, int]:
        """For every node set the number of nodes in all graphs together."""
        return self.cached("totals", lambda: {name: int(counts.sum()) for name, counts in self.by_set.items()})

    @property
    def common(self) -> dict[str, int | None]:
        """For every node set the number of nodes of each graph; None if graphs differ in it, or there is no graph."""

        def common(counts: Tensor) -> int | None:
            low, high = map(int, torch.aminmax(counts)) if len(counts) else (0, 1)
            return low if low == high else None

        return self.cached("common", lambda: {name: common(counts) for name, counts in self.by_set.items()})

    @property
    def starts(self) -> dict[str, Tensor]:
        """For every node set (n_graphs,): the first node of every graph, in the numbering across all graphs."""
        return self.cached("starts", lambda: {name: one.cumsum(0) - one for name, one in self.by_set.items()})

    def graph_of_every_node(self, name: str) -> Tensor:
        """(nodes of all graphs,): the number of the graph that a node belongs to."""
        needed, here = self.totals[name] * BYTES_PER_NODE, machine_memory()
        if here is not None and needed > here:
            named = f" of node set {name!r}" if name != ANY_SET else ""
            raise SizesError(
                f"sizes: {self.totals[name]:,} nodes{named} would take at least {needed:,} bytes in a layer, which has "
                f"memory for each node; this machine has {here:,}.\n"
                "Number only the nodes that occur: torch.unique(index, return_inverse=True)."
            )
        counts = self.by_set[name]
        return torch.repeat_interleave(torch.arange(len(counts), device=counts.device), counts)

    def key(self, name: str) -> str:
        """The key of a node set in `by_set`."""
        return name if self.is_named else ANY_SET

    def only(self, names: Sequence[str]) -> "NodeCounts":
        """The counts of some node sets."""
        if not self.is_named or set(names) == set(self.by_set):
            return self
        return NodeCounts({name: self.by_set[name] for name in dict.fromkeys(names)}, is_batch=self.is_batch)


def by_name(sizes: Any) -> Mapping[str, Any]:
    """Sizes by the name of their node set."""
    return sizes if isinstance(sizes, Mapping) else {ANY_SET: sizes}


def _argument(name: str) -> str:
    return "sizes" if name == ANY_SET else f"sizes[{name!r}]"


def parse_counts(call: str, name: str, sizes: object, device: torch.device) -> Tensor:
    """An int64 copy of numbers of nodes, given as an integer, a sequence, an array or a tensor."""
    counts, shown = sizes, type_name(sizes)
    if not isinstance(counts, Tensor):
        try:
            counts = torch.as_tensor(sizes, device=device)
            counts = counts if counts.numel() else counts.to(torch.int64)  # an empty list has no dtype
        except (TypeError, ValueError, RuntimeError):
            counts = torch.tensor(False)
    else:
        shown = f"{counts.dtype} of shape {tuple(counts.shape)}"
    if counts.is_floating_point() or counts.is_complex() or counts.dtype == torch.bool:
        raise SizesError(
            f"{call}: {_argument(name)} must be numbers of nodes, which are integers, not {shown}.\n"
            "Pass 5 for one graph, torch.tensor([5, 3]) for a batch of two, and mask.sum(-1) for a mask of nodes."
        )
    counts = counts.detach().to(device, torch.int64, copy=True)
    if counts.numel() and is_concrete(counts) and int(counts.min()) < 0:
        raise SizesError(f"{call}: {_argument(name)} holds a negative number, {int(counts.min())}.")
    return counts


def shown_sizes(sizes: object) -> str:
    """Sizes for a repr: all of a few, the least and the largest of many."""
    if isinstance(sizes, Mapping):
        return f"{{{', '.join(f'{name!r}: {shown_sizes(size)}' for name, size in sizes.items())}}}"
    if not isinstance(sizes, Tensor) or not is_concrete(sizes) or sizes.numel() <= MOST_SHOWN:
        return str(sizes)
    return f"{int(sizes.min())} to {int(sizes.max())}"


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
