"""Checks of permutation equivariance for a custom torch module."""

import torch
from torch import Tensor, nn

import bellnet as bn


class TwoHops(nn.Module):
    """The sum of an equivariant layer and the matrix product of two others, which adds paths of two steps."""

    def __init__(self, in_channels: int, out_channels: int) -> None:
        super().__init__()
        self.left = bn.EquivariantLinear("n n -> n n", in_channels, out_channels)
        self.right = bn.EquivariantLinear("n n -> n n", in_channels, out_channels)
        self.straight = bn.EquivariantLinear("n n -> n n", in_channels, out_channels)

    def forward(self, x: Tensor) -> Tensor:
        two_steps = torch.einsum("...ijc,...jkc->...ikc", self.left(x), self.right(x))
        return self.straight(x) + two_steps / max(x.shape[-2], 1)


bn.testing.assert_equivariant(TwoHops(3, 4), "n n -> n n", in_channels=3)
print("TwoHops is permutation-equivariant")


class MinusFirstNode(nn.Module):
    """Not equivariant: the first node is treated differently from the others."""

    def forward(self, x: Tensor) -> Tensor:
        return x - x[..., :1, :, :]


try:
    bn.testing.assert_equivariant(MinusFirstNode(), "n n -> n n", in_channels=3)
except bn.errors.EquivarianceError as error:
    print(f"\nMinusFirstNode is not:\n\n{error}")
else:
    raise SystemExit("expected an EquivarianceError")
