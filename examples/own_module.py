"""Your own module, checked: the checks that bellnet is tested with work on any torch module."""

import torch
from torch import Tensor, nn

import bellnet as bn


class TwoHops(nn.Module):
    """Edges that also see what lies two steps away: the matrix product of two layers, added to a third."""

    def __init__(self, in_channels: int, out_channels: int) -> None:
        super().__init__()
        self.left = bn.EquivariantLinear("n n -> n n", in_channels, out_channels)
        self.right = bn.EquivariantLinear("n n -> n n", in_channels, out_channels)
        self.straight = bn.EquivariantLinear("n n -> n n", in_channels, out_channels)

    def forward(self, x: Tensor) -> Tensor:
        two_steps = torch.einsum("...ijc,...jkc->...ikc", self.left(x), self.right(x))
        return self.straight(x) + two_steps / max(x.shape[-2], 1)


bn.testing.assert_equivariant(TwoHops(3, 4), "n n -> n n", in_channels=3)
print("TwoHops commutes with renumbering the nodes")


class FirstNodeFirst(nn.Module):
    """A mistake that is easily made: the first node is treated differently from the others."""

    def forward(self, x: Tensor) -> Tensor:
        return x - x[..., :1, :, :]


try:
    bn.testing.assert_equivariant(FirstNodeFirst(), "n n -> n n", in_channels=3)
except bn.errors.EquivarianceError as mistake:
    print(f"\nFirstNodeFirst does not, and the check says how:\n\n{mistake}")
else:
    raise SystemExit("the check has missed the mistake")
