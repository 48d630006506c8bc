"""Numbers of other libraries as features."""

import torch
from torch import Tensor


def as_features(values: Tensor) -> Tensor:
    """Numbers as floating point: as they are, or whole numbers in the default type, or in double if that rounds."""
    if values.is_floating_point():
        return values
    default = values.to(torch.get_default_dtype())
    return default if values.dtype == torch.bool or torch.equal(default.to(values.dtype), values) else values.double()
