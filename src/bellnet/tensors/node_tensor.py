"""What `Padded` and `Sparse` have in common: a tensor of values, and what is known of its nodes."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from operator import add, mul, sub, truediv
from typing import TYPE_CHECKING, Any, NoReturn, Self, TypeVar

import torch
from torch import Tensor
from torch.utils._pytree import SequenceKey

from bellnet.errors import NotATensorError, ShapeError, TensorError, type_name

Operation = Callable[[Any, Any], Tensor]
Context = TypeVar("Context")

OVER_ENTRIES = frozenset(
    {
        *("all", "amax", "amin", "aminmax", "any", "argmax", "argmin", "logsumexp", "max", "mean", "median", "min"),
        *("nanmean", "nansum", "norm", "prod", "std", "sum", "var"),
    }
)
"""What takes entries together: those of padding, too, and not those that are not listed."""
CONVERSIONS = {"cpu": '"cpu"', "cuda": '"cuda"', "double": "torch.float64", "float": "torch.float32"}
CONVERSIONS |= {"half": "torch.float16", "bfloat16": "torch.bfloat16"}
HOLDS = {
    "Padded": "x.values is the tensor, with whatever stands in its padding",
    "Sparse": "x.values is the tensor of the listed values, those of all graphs in a row",
}


class NodeTensor(ABC):
    """Values over tuples of nodes.

    Arithmetic with numbers, with tensors of channels and with values over the same nodes acts entry by entry. Of a
    `Padded` that includes the padding: what is not a number there reaches the gradients of such tensors.
    """

    __slots__ = ()

    @abstractmethod
    def _held(self) -> Tensor:
        """The values, for those who neither change them nor hand them on."""

    @abstractmethod
    def with_values(self, values: Tensor) -> Self:
        """Other values for the same nodes."""

    @abstractmethod
    def _check_same_nodes(self, other: Self, call: str) -> None:
        """Refuse values over other nodes."""

    def _computed(self, values: Tensor, other: object, operation: Operation) -> Self:
        """The result of an operation with another operand, None for none."""
        return self.with_values(values)

    @property
    def device(self) -> torch.device:
        """Where the values are."""
        return self._held().device

    @property
    def dtype(self) -> torch.dtype:
        """The type of the values."""
        return self._held().dtype

    @property
    def channels(self) -> int:
        """The number of channels."""
        return self._held().shape[-1]

    def __add__(self, other: Any) -> Self:
        return self._combined(other, add, "+")

    def __radd__(self, other: Any) -> Self:
        return self._combined(other, add, "+")

    def __sub__(self, other: Any) -> Self:
        return self._combined(other, sub, "-")

    def __rsub__(self, other: Any) -> Self:
        return self._combined(other, lambda own, given: given - own, "-")

    def __mul__(self, other: Any) -> Self:
        return self._combined(other, mul, "*")

    def __rmul__(self, other: Any) -> Self:
        return self._combined(other, mul, "*")

    def __truediv__(self, other: Any) -> Self:
        return self._combined(other, truediv, "/")

    def __neg__(self) -> Self:
        return self._combined(-1, mul, "*")

    def _combined(self, other: Any, operation: Operation, sign: str) -> Self:
        own, call = self._held(), f"{type(self).__name__} {sign} {type(other).__name__}"
        if isinstance(other, NodeTensor):
            if type(other) is not type(self):
                raise TensorError(
                    f"{call}: both must be of one kind.\nConvert one of them, x.to_padded() for instance."
                )
            self._check_same_nodes(other, call)
            given = other._held()
            if given.shape[-1] not in (1, own.shape[-1]) and own.shape[-1] != 1:
                raise ShapeError(f"{call}: they have {own.shape[-1]} and {given.shape[-1]} channels.")
            return self._computed(operation(own, given), other, operation)
        if isinstance(other, Tensor):
            if other.ndim > 1 or (other.ndim == 1 and other.shape[0] not in (1, own.shape[-1])):
                raise ShapeError(
                    f"{call}: a tensor must hold one number, or one for each of the {own.shape[-1]} channels; its "
                    f"shape is {tuple(other.shape)}.\nFor other tensors use x.with_values(x.values {sign} tensor)."
                )
        elif not isinstance(other, int | float):
            return NotImplemented  # type: ignore[no-any-return]
        return self._computed(operation(own, other), other, operation)

    if not TYPE_CHECKING:  # with it every name would be one to a type checker

        def __getattr__(self, name: str) -> NoReturn:
            """Python asks here before it gives up; names with an underscore are asked for by protocols."""
            if is_of_tensors(type(self), name):
                raise not_a_tensor(type(self), name)
            return object.__getattribute__(self, name)  # which says again why there is none

    @classmethod
    def __torch_function__(
        cls, function: Callable[..., Any], types: Any, args: Any = (), kwargs: Any = None
    ) -> NoReturn:
        """Torch asks here before it gives up; what to do instead is known here better than there."""
        raise TensorError(
            f"{function.__name__} takes tensors, but got a {cls.__name__}.\n"
            "A module that acts on every entry alone takes it in a Pointwise, bellnet.Pointwise(torch.nn.ReLU()),\n"
            "and a function in its map, x.map(torch.relu). Its tensor is x.values."
        )


def keeps_zeros(other: object, operation: Operation, dtype: torch.dtype) -> bool:
    """Whether an operation with a number makes zeros of zeros; a number may be infinite, or zero, in their type."""
    if not isinstance(other, int | float):
        return False
    known = torch.finfo(torch.float64 if dtype == torch.float64 else torch.float32)
    return abs(other) <= known.max if operation is mul else operation is truediv and abs(other) >= known.tiny


def converted(
    values: Tensor,
    args: tuple[Any, ...],
    *,
    device: torch.device | str | None,
    dtype: torch.dtype | None,
    non_blocking: bool,
) -> Tensor:
    """Values moved and converted as `Tensor.to` would."""
    for arg in (*args, device, dtype):
        if isinstance(arg, Tensor):
            values = values.to(arg.device, arg.dtype, non_blocking=non_blocking)
        elif isinstance(arg, torch.device | str | torch.dtype | int):
            values = values.to(arg, non_blocking=non_blocking)
        elif arg is not None:
            raise TensorError(f"to(): expected a device, a dtype or a tensor, not {type_name(arg)}.")
    return values


def with_places(flat: tuple[list[Tensor], Context]) -> tuple[list[tuple[Any, Tensor]], Context]:
    """The leaves of a tree of tensors, each with its place, as torch wants them."""
    leaves, context = flat
    return [(SequenceKey(place), leaf) for place, leaf in enumerate(leaves)], context


def is_of_tensors(kind: type, name: str) -> bool:
    """Whether a public name is one of tensors alone; one that half-made objects lack is not."""
    return not name.startswith("_") and name != "values" and hasattr(Tensor, name) and not hasattr(kind, name)


def not_a_tensor(kind: type, name: str) -> NotATensorError:
    """The error for a name of tensors, with the way out.

    Args:
        kind: `Padded` or `Sparse`, or what somebody has derived from them.
        name: What was asked for.
    """
    said = f"A {kind.__name__} is no tensor and has no {name!r}."
    holds = next(HOLDS[base.__name__] for base in kind.__mro__ if base.__name__ in HOLDS)
    if name in CONVERSIONS:
        return NotATensorError(f"{said}\nWrite x.to({CONVERSIONS[name]}).")
    if name in OVER_ENTRIES:
        pool = name if name in ("mean", "sum") else "max"
        advice = (
            f'bellnet.InvariantPool("n n", "{pool}") takes the entries of every graph together, and so does a layer '
            f'without target slots, "n n ->".'
        )
    else:
        advice = "A function that acts on every entry alone goes into x.map(torch.relu), a module into a Pointwise."
    return NotATensorError(f"{said}\n{advice}\n{holds}.")
