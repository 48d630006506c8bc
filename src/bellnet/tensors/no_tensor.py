"""What holds a tensor and is none: torch's functions cannot take it, and say what can."""

from collections.abc import Callable
from typing import Any, NoReturn

from bellnet.errors import TensorError


class NoTensor:
    """A tensor and what is known of its nodes."""

    __slots__ = ()

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
