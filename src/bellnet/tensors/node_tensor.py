"""Numbers of nodes, and the base class of `Padded` and `Sparse`: values over tuples of nodes, with arithmetic."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from math import prod
from operator import add, mul, sub, truediv
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn, Self, TypeVar

import torch
from torch import Tensor
from torch.utils._pytree import SequenceKey, register_pytree_node

from bellnet._utils.memory import machine_memory
from bellnet.errors import NotATensorError, ShapeError, SizesError, TensorError, type_name
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


Operation = Callable[[Any, Any], Tensor]
Context = TypeVar("Context")
Kind = TypeVar("Kind", bound="Tensor | NodeTensor")
Key = int | slice | Sequence[int] | Tensor
"""An index of graphs of a batch."""

REDUCTIONS = frozenset(
    {
        *("all", "amax", "amin", "aminmax", "any", "argmax", "argmin", "logsumexp", "max", "mean", "median", "min"),
        *("nanmean", "nansum", "norm", "prod", "std", "sum", "var"),
    }
)
"""Methods of tensors that would include padding, or leave out the zeros that are not stored."""
SELECTIONS = frozenset({"chunk", "index_select", "narrow", "select", "split", "take", "tensor_split", "unbind"})
CONVERSIONS = {"cpu": '"cpu"', "cuda": '"cuda"', "double": "torch.float64", "float": "torch.float32"}
CONVERSIONS |= {"half": "torch.float16", "bfloat16": "torch.bfloat16"}


class NodeTensor(ABC):
    """Values over tuples of nodes.

    Arithmetic with numbers, with tensors of channels and with values over the same nodes acts entry by entry. Of a
    `Padded` that includes the padding: NaN there reaches the gradients of such tensors.
    """

    __slots__ = ("_values",)

    _values: Tensor
    _what_values_are: ClassVar[str]

    @property
    def values(self) -> Tensor:
        """The values, channels last."""
        return self._values

    @abstractmethod
    def with_values(self, values: Tensor) -> Self:
        """Other values for the same nodes."""

    @abstractmethod
    def _check_same_nodes(self, other: Self, call: str) -> None:
        """Refuse values over other nodes."""

    @abstractmethod
    def _moved(self, values: Tensor, *, non_blocking: bool) -> Self:
        """These values, converted or on another device, for the same nodes."""

    @abstractmethod
    def _n_graphs(self) -> int | None:
        """The length of the first batch axis; None without one."""

    def _combined_with(self, others: Sequence[object], values: Tensor, *, keeps_zeros: bool) -> Self:
        """Values computed from this and other operands; `keeps_zeros` if they are zero where all operands are."""
        return self.with_values(values)

    @property
    def device(self) -> torch.device:
        """The device of the values."""
        return self._values.device

    @property
    def dtype(self) -> torch.dtype:
        """The dtype of the values."""
        return self._values.dtype

    @property
    def channels(self) -> int:
        """The number of channels."""
        return self._values.shape[-1]

    def detach(self) -> Self:
        """The same values without their gradient history."""
        return self._combined_with([], self._values.detach(), keeps_zeros=True)

    def clone(self) -> Self:
        """A copy of the values, through which gradients flow."""
        return self._combined_with([], self._values.clone(), keeps_zeros=True)

    def map(self, function: Callable[[Tensor], Tensor]) -> Self:
        """Apply a function of single entries to the values, an activation or a linear layer for instance."""
        return self.with_values(function(self._values))

    def to(
        self,
        *args: torch.device | str | torch.dtype | Tensor | None,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
        non_blocking: bool = False,
    ) -> Self:
        """Move to a device, or convert the values to a dtype, or both; also as keywords."""
        values = self._values
        for arg in (*args, device, dtype):
            if isinstance(arg, Tensor):
                values = values.to(arg.device, arg.dtype, non_blocking=non_blocking)
            elif isinstance(arg, torch.device | str | torch.dtype | int):
                values = values.to(arg, non_blocking=non_blocking)
            elif arg is not None:
                raise TensorError(f"to(): expected a device, a dtype or a tensor, not {type_name(arg)}.")
        return self if values is self._values else self._moved(values, non_blocking=non_blocking)

    def __len__(self) -> int:
        n_graphs = self._n_graphs()
        if n_graphs is None:
            raise ShapeError(
                f"This {type(self).__name__} is one graph without a batch axis, so it has neither length nor index."
            )
        return n_graphs

    def __add__(self, other: Any) -> Self:
        return self._combined(other, add, "+")

    __radd__ = __add__

    def __sub__(self, other: Any) -> Self:
        return self._combined(other, sub, "-")

    def __rsub__(self, other: Any) -> Self:
        return self._combined(other, lambda own, given: given - own, "-")

    def __mul__(self, other: Any) -> Self:
        return self._combined(other, mul, "*")

    __rmul__ = __mul__

    def __truediv__(self, other: Any) -> Self:
        return self._combined(other, truediv, "/")

    def __neg__(self) -> Self:
        return self._combined(-1, mul, "*")

    def _combined(self, other: Any, operation: Operation, sign: str) -> Self:
        own, call = self._values, f"{type(self).__name__} {sign} {type(other).__name__}"
        if isinstance(other, NodeTensor):
            if type(other) is not type(self):
                raise TensorError(
                    f"{call}: both must be of one kind.\nConvert one of them, x.to_padded() for instance."
                )
            self._check_same_nodes(other, call)
            given = other._values
            if given.shape[-1] not in (1, own.shape[-1]) and own.shape[-1] != 1:
                raise ShapeError(f"{call}: they have {own.shape[-1]} and {given.shape[-1]} channels.")
            return self._combined_with([other], operation(own, given), keeps_zeros=operation is not truediv)
        if isinstance(other, Tensor):
            if other.ndim > 1 or (other.ndim == 1 and other.shape[0] not in (1, own.shape[-1])):
                raise ShapeError(
                    f"{call}: a tensor must hold one number, or one for each of the {own.shape[-1]} channels; its "
                    f"shape is {tuple(other.shape)}.\nFor other tensors use x.with_values(x.values {sign} tensor)."
                )
        elif not isinstance(other, int | float):
            return NotImplemented  # type: ignore[no-any-return]
        values = operation(own, other)
        return self._combined_with([], values, keeps_zeros=_keeps_zeros(other, operation, values.dtype))

    if not TYPE_CHECKING:  # with it a type checker would accept every name

        def __getattr__(self, name: str) -> NoReturn:
            """Called for missing names. Underscored names belong to protocols; `values` is missing while unpickling."""
            own = type(self)
            if not name.startswith("_") and name != "values" and hasattr(Tensor, name) and not hasattr(own, name):
                raise NotATensorError(
                    f"A {own.__name__} is not a tensor and has no {name!r}.\n{_advice(name)}"
                    + f"\n{self._what_values_are}." * (name not in CONVERSIONS)
                )
            return object.__getattribute__(self, name)  # raises the usual error

    @classmethod
    def __torch_function__(
        cls, function: Callable[..., Any], types: Any, args: Any = (), kwargs: Any = None
    ) -> NoReturn:
        """Called when a function of torch gets one of these."""
        if function in (torch.cat, torch.concat, torch.concatenate):
            raise TensorError(
                f"torch.{function.__name__} takes tensors, but got a {cls.__name__}.\n"
                "bellnet.cat([x, y]) concatenates along the channels."
            )
        raise TensorError(
            f"{function.__name__} takes tensors, but got a {cls.__name__}.\n"
            "A module that acts on every entry alone takes it in a Pointwise, bellnet.Pointwise(torch.nn.ReLU()),\n"
            "and a function in its map, x.map(torch.relu). Its tensor is x.values."
        )


def cat(tensors: Sequence[Kind]) -> Kind:
    """Concatenate along the channels: tensors, `Padded` with the same sizes, or `Sparse` with the same support.

    Args:
        tensors: One or more of one kind; they may differ in their numbers of channels only.

    Returns:
        The same kind, with the channels of all of them in order.

    >>> from bellnet import Padded
    >>> x, y = (Padded(torch.ones(2, 3, 3, channels), torch.tensor([3, 1])) for channels in (2, 4))
    >>> cat([x, y]).shape
    torch.Size([2, 3, 3, 6])
    """
    if not isinstance(tensors, list | tuple) or not tensors:
        got = "an empty sequence" if isinstance(tensors, list | tuple) else type_name(tensors)
        raise TensorError(f"cat(tensors): expected a list or a tuple of tensors, got {got}.\nWrite cat([x, y]).")
    given: list[Any] = list(tensors)
    first = given[0]
    kind = Tensor if isinstance(first, Tensor) else type(first)
    if not issubclass(kind, Tensor | NodeTensor):
        raise TensorError(f"cat(tensors): expected tensors, Padded or Sparse, got {type_name(first)} at tensors[0].")
    for number, other in enumerate(given[1:], 1):
        call = f"cat(tensors): tensors[0] and tensors[{number}]"
        if not isinstance(other, kind):
            raise TensorError(
                f"{call} are {type_name(first)} and {type_name(other)}, but all must be of one kind.\n"
                "Convert one of them: x.to_padded(), Sparse.from_dense(x) or first.with_values(tensor)."
            )
        if other.device != first.device:
            raise TensorError(f"{call} are on {first.device} and {other.device}.\nMove one of them: x.to(device).")
        if kind is not Tensor:
            first._check_same_nodes(other, call)
        elif not first.ndim or first.shape[:-1] != other.shape[:-1]:
            raise ShapeError(
                f"{call} have shapes {tuple(first.shape)} and {tuple(other.shape)}.\n"
                "They may differ in the last axis only, the channels."
            )
    joined: Any = torch.cat([one.values if isinstance(one, NodeTensor) else one for one in given], -1)
    result: Kind = joined if kind is Tensor else first._combined_with(given[1:], joined, keeps_zeros=True)
    return result


def chosen_graphs(x: NodeTensor, key: object) -> Tensor:
    """The numbers of the graphs that an index selects: (n,) of them, or one without an axis."""
    call, n_graphs = f"{type(x).__name__}[index]", len(x)
    if isinstance(key, bool | tuple) or not (isinstance(key, slice | list | Tensor) or hasattr(key, "__index__")):
        raise TensorError(
            f"{call}: expected an integer, a slice, or a tensor of integers or booleans, got {type_name(key)}.\n"
            "An index selects graphs of a batch: x[3], x[1:4] or x[torch.tensor([0, 2])]."
        )
    chosen = torch.arange(n_graphs, device=x.device)[key]
    if chosen.ndim > 1:
        raise ShapeError(f"{call}: an index of graphs has at most one axis; its shape is {tuple(chosen.shape)}.")
    return chosen


def _keeps_zeros(number: object, operation: Operation, dtype: torch.dtype) -> bool:
    """Whether an operation with a number makes zeros of zeros; a number may be infinite, or zero, in their dtype."""
    if not isinstance(number, int | float):
        return False
    known = torch.finfo(torch.float64 if dtype == torch.float64 else torch.float32)
    return abs(number) <= known.max if operation is mul else operation is truediv and abs(number) >= known.tiny


def _advice(name: str) -> str:
    if name in CONVERSIONS:
        return f"Write x.to({CONVERSIONS[name]})."
    if name in SELECTIONS:
        return "An index selects graphs of a batch, x[3] or x[1:4], and x.unpack() returns them one by one."
    if name in REDUCTIONS:
        pool = name if name in ("mean", "sum") else "max"
        return (
            f'bellnet.InvariantPool("n n", "{pool}") reduces the entries of every graph, and so does a layer without '
            'target slots, "n n ->".'
        )
    return "Apply a function of single entries by x.map(torch.relu), and a module by a Pointwise."


def register_pytree(
    kind: type[Any],
    flatten: Callable[[Any], tuple[list[Tensor], Context]],
    unflatten: Callable[[Iterable[Any], Context], Any],
) -> None:
    """Make a class a node of torch's pytrees; torch requires the keys of the leaves as well."""

    def flatten_with_keys(given: Any) -> tuple[list[tuple[Any, Tensor]], Context]:
        leaves, context = flatten(given)
        return [(SequenceKey(number), leaf) for number, leaf in enumerate(leaves)], context

    register_pytree_node(
        kind,
        flatten,
        unflatten,
        serialized_type_name=f"bellnet.{kind.__name__}",
        flatten_with_keys_fn=flatten_with_keys,
    )
