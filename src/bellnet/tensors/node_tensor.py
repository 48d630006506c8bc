"""The base class of `Padded` and `Sparse`: values over tuples of nodes, with arithmetic and concatenation."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from operator import add, mul, sub, truediv
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn, Self, TypeVar

import torch
from torch import Tensor
from torch.utils._pytree import SequenceKey, register_pytree_node

from bellnet.errors import NotATensorError, ShapeError, TensorError, type_name

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
