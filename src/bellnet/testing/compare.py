"""Whether two tensors are the same up to rounding, and where they are not."""

from dataclasses import dataclass

import torch
from torch import Tensor

_DEFAULTS = {
    torch.float64: (1e-9, 1e-9),
    torch.float32: (1e-4, 1e-5),
    torch.float16: (1e-2, 1e-2),
    torch.bfloat16: (5e-2, 5e-2),
}


@dataclass(frozen=True)
class Tolerance:
    """How much rounding is allowed: `atol`, and `rtol` for each unit of the largest expected value.

    The largest value, and not each value, sets the scale: a sum that nearly cancels carries the rounding of its terms.
    """

    rtol: float
    atol: float

    @classmethod
    def choose(cls, dtype: torch.dtype, rtol: float | None, atol: float | None) -> "Tolerance":
        """What was given, and for the rest what suits the dtype."""
        default_rtol, default_atol = _DEFAULTS.get(dtype, _DEFAULTS[torch.float32])
        return cls(default_rtol if rtol is None else rtol, default_atol if atol is None else atol)


NO_ROUNDING = Tolerance(rtol=0.0, atol=0.0)


@dataclass(frozen=True)
class Difference:
    """The entry in which two tensors differ most, where that is more than is allowed."""

    place: tuple[int, ...]
    found: float
    expected: float
    allowed: float

    def __str__(self) -> str:
        size = abs(self.found - self.expected)
        return f"{size:.3g}, where {self.allowed:.3g} is allowed" if size < torch.inf else "not finite"


def difference(found: Tensor, expected: Tensor, tolerance: Tolerance) -> Difference | None:
    """Where two tensors of one shape differ most, if by more than the tolerance; what is not finite always differs.

    >>> difference(torch.tensor([1.0, 2.0]), torch.tensor([1.0, 2.5]), Tolerance(rtol=0.1, atol=0.0)).place
    (1,)
    """
    if found.numel() == 0:
        return None
    found, expected = found.detach().double().cpu(), expected.detach().double().cpu()
    apart = (found - expected).abs().nan_to_num(nan=torch.inf)
    scale = expected.nan_to_num(nan=0.0, posinf=0.0, neginf=0.0).abs().amax()
    allowed = float(tolerance.atol + tolerance.rtol * scale)
    if float(apart.max()) <= allowed:
        return None
    place = tuple((apart == apart.max()).nonzero()[0].tolist())
    return Difference(place, float(found[place]), float(expected[place]), allowed)
