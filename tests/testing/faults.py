"""Modules with a planted fault, each a mistake that is easily made, and the same modules without it."""

import torch
from torch import nn

from bellnet import EquivariantLinear, InvariantPool, Padded


class SumOfRows(nn.Module):
    """Without a fault: "n n -> n"."""

    in_channels = 2

    def forward(self, x):
        return x.sum(-2)


class SumOfRowsWithoutNodeZero(SumOfRows):
    """Leaves out the column of the first node."""

    def forward(self, x):
        return x[..., 1:, :].sum(-2)


class LooksAtNodeZero(SumOfRows):
    """Adds what stands at the first node, once, far below everything else."""

    def forward(self, x):
        return x.sum(-2) + 1e-2 * x[..., :1, 0, :]


class LooksAtOrder(SumOfRows):
    """Blind to a shift of all nodes, but not to an exchange of two."""

    def forward(self, x):
        return x.diagonal(0, -3, -2).mT.roll(1, -2)


class OneBiasForEachPosition(nn.Module):
    """A bias for each of five nodes instead of one for each pattern."""

    def __init__(self):
        super().__init__()
        self.in_channels = 2
        self.layer = EquivariantLinear("n n -> n", 2, 2, bias=False)
        self.bias = nn.Parameter(torch.linspace(0, 1, 5).unsqueeze(-1))

    def forward(self, x):
        return self.layer(x) + self.bias[: x.shape[-2]]


class TransposesTheWrongAxes(nn.Module):
    """Takes u for i, which shows only where one of them is permuted."""

    in_channels = 1

    def forward(self, x):
        return x + x.sum(-3, keepdim=True) * torch.linspace(0, 1, x.shape[-2]).unsqueeze(-1)


class FillsOneNode(nn.Module):
    """From a graph to new nodes, "-> n", but the first of them gets more."""

    in_channels = 3

    def forward(self, x, *, sizes):
        new = x.unsqueeze(-2).repeat_interleave(sizes["n"], -2)
        return torch.cat([2 * new[..., :1, :], new[..., 1:, :]], -2)


class MaxWithoutDiagonal(nn.Module):
    """The maximum off the diagonal, which a single node does not have: minus infinity."""

    def forward(self, x):
        diagonal = torch.eye(x.shape[-2], dtype=torch.bool).unsqueeze(-1)
        return x.masked_fill(diagonal, -torch.inf).amax((-3, -2))


class MeanCountsPadding(nn.Module):
    """The mean over nodes, divided by the padded length."""

    in_channels = 2

    def forward(self, x):
        if isinstance(x, Padded):
            pooled = InvariantPool("n", reduce="sum")(x)
            return pooled / x.values.shape[1]
        return x.mean(-2)


class MeanByMask(nn.Module):
    """The mean over nodes by a mask: wrong if the padding has NaN."""

    in_channels = 2

    def forward(self, x):
        if not isinstance(x, Padded):
            return x.mean(-2)
        mask = (torch.arange(x.values.shape[1]) < x.sizes.unsqueeze(-1)).unsqueeze(-1).to(x.values.dtype)
        return (x.values * mask).sum(-2) / x.sizes.unsqueeze(-1)


class MaxSeesPadding(nn.Module):
    """The maximum over nodes and over what lies outside them."""

    in_channels = 2

    def forward(self, x):
        return (x.values if isinstance(x, Padded) else x).amax(-2)


class MaxAgainstZero(nn.Module):
    """The maximum over nodes after the padding was set to zero: wrong if all nodes are negative."""

    in_channels = 2

    def forward(self, x):
        if isinstance(x, Padded):
            outside = torch.arange(x.values.shape[1]) >= x.sizes.unsqueeze(-1)
            return x.values.masked_fill(outside.unsqueeze(-1), 0).amax(-2)
        return x.amax(-2)


class WrapsTheLayer(nn.Module):
    """Without a fault: a layer, for modules that have one around it."""

    def __init__(self, spec="n n -> n"):
        super().__init__()
        self.in_channels = 2
        self.layer = EquivariantLinear(spec, 2, 2)
        with torch.no_grad():
            for parameter in self.layer.parameters():
                parameter.normal_()

    def forward(self, x):
        return self.layer(x)


class LeavesGarbageOutside(WrapsTheLayer):
    """Correct inside, but one outside the true sizes."""

    def forward(self, x):
        y = self.layer(x)
        return y.map(torch.exp) if isinstance(y, Padded) else y.exp()


class SwapsDivisors(WrapsTheLayer):
    """In a padded batch each graph is divided by the size of its neighbour."""

    def forward(self, x):
        y = self.layer(x)
        if not isinstance(y, Padded):
            return y / x.shape[-2]
        return Padded(y.values / x.sizes.roll(1)[:, None, None], x.sizes)


class ForgetsSizes(WrapsTheLayer):
    """Returns the values with the sizes of another batch."""

    def forward(self, x):
        y = self.layer(x)
        return Padded(y.values, y.sizes.flip(0).clone() + 1) if isinstance(y, Padded) else y


class WrongGradient(WrapsTheLayer):
    """The right output, but in a padded batch all gradients are twice as large."""

    def forward(self, x):
        y = self.layer(x)
        if not isinstance(x, Padded):
            return y
        return Padded(2 * y.values - y.values.detach(), y.sizes)


class WrongGradientOfParameters(WrapsTheLayer):
    """The right output, but in a padded batch the bias has a gradient of the first graph only."""

    def forward(self, x):
        y = self.layer(x)
        if not isinstance(x, Padded):
            return y
        frozen = torch.func.functional_call(self.layer, {"bias": self.layer.bias.detach()}, (x,))
        return Padded(torch.cat([y.values[:1], frozen.values[1:]]), y.sizes)


class GradientLeaksOut(WrapsTheLayer):
    """The right output, but gradients of the padding reach the input."""

    def forward(self, x):
        y = self.layer(x)
        if not isinstance(x, Padded):
            return y
        outside = (torch.arange(x.values.shape[1]) >= x.sizes.unsqueeze(-1)).unsqueeze(-1)
        leak = x.values.diagonal(0, 1, 2).mT * outside
        return Padded(y.values + leak - leak.detach(), y.sizes)
