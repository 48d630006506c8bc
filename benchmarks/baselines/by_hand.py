"""`n n -> n n` alone, by the library's own algorithm in straight-line torch: an implementation of this layer alone.

Diagonal, row means and column means are concatenated; every rank is one product; the output is the broadcast sum of the
products of lower rank, and the two products of matrices are added to it. There is no plan, no layout, no input check
and no other dtype: the difference to the layer is the cost of generality.
"""

from typing import Any, Self

import torch
from torch import Tensor, nn

from bellnet import EquivariantLinear, plan

MATRICES = ("ab->ab", "ab->ba")
VECTORS = tuple(f"{source}->{target}" for source in ("aa", "ab", "ba") for target in ("aa", "ac", "ca"))
SCALARS = ("aa->bb", "aa->bc", "ab->cc", "ab->cd")
"""The diagrams of every rank, in row-major order of the blocks of its matrix."""


class ByHand(nn.Module):
    """The layer `n n -> n n` with means, on (batch, n, n, in_channels).

    Attributes:
        straight, transposed: (in_channels, out_channels) each, for the matrix and its transpose.
        vectors: (3 * in_channels, 3 * out_channels), from diagonal, row and column means to diagonal, rows and columns.
        scalars: (2 * in_channels, 2 * out_channels), from the means of diagonal and matrix to diagonal and matrix.
        bias: (2 * out_channels): added on the diagonal, and everywhere.
    """

    def __init__(self, in_channels: int, out_channels: int, *, dtype: torch.dtype | None = None) -> None:
        super().__init__()
        self.straight, self.transposed, self.vectors, self.scalars = (
            nn.Parameter(torch.randn(several * in_channels, several * out_channels, dtype=dtype) / in_channels**0.5)
            for several in (1, 1, 3, 2)
        )
        self.bias = nn.Parameter(torch.zeros(2 * out_channels, dtype=dtype))

    @classmethod
    def like(cls, layer: EquivariantLinear) -> Self:
        """The same function, with the weights of a layer with means."""
        copy = cls(layer.in_channels, layer.out_channels, dtype=layer.weight.dtype)
        with torch.no_grad():
            for parameter, name in zip((copy.straight, copy.transposed), MATRICES, strict=True):
                parameter.copy_(by_blocks(layer.weight, (name,), 1))
            copy.vectors.copy_(by_blocks(layer.weight, VECTORS, 3))
            copy.scalars.copy_(by_blocks(layer.weight, SCALARS, 2))
            if layer.bias is not None:
                copy.bias.copy_(layer.bias.flatten())
        return copy

    def forward(self, x: Tensor) -> Tensor:
        output: Tensor = _Run.apply(x, self.straight, self.transposed, self.vectors, self.scalars, self.bias)
        return output


def by_blocks(weight: Tensor, names: tuple[str, ...], across: int) -> Tensor:
    """The weights of some diagrams as the blocks of one matrix, with `across` blocks in a row."""
    known = [diagram.name for diagram in plan("n n -> n n").diagrams]
    rows = [names[start : start + across] for start in range(0, len(names), across)]
    return torch.cat([torch.cat([weight[known.index(_canonical(name))] for name in row], 1) for row in rows])


def _canonical(name: str) -> str:
    """The name of a diagram with its letters in order of first appearance: "ba->aa" is "ab->bb"."""
    letters = dict.fromkeys(name.replace("->", ""))
    return name.translate({ord(old): new for old, new in zip(letters, "abcd", strict=False)})


class _Run(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, x: Tensor, straight: Tensor, transposed: Tensor, vectors: Tensor, scalars: Tensor, bias: Tensor
    ) -> Tensor:
        (batch, n, _, before), after = x.shape, straight.shape[1]
        contracted = torch.cat([x.diagonal(0, 1, 2).mT, x.mean(2), x.mean(1)], 2)
        means = contracted[:, :, : 2 * before].mean(1)
        on_diagonal, everywhere = torch.addmm(bias, means, scalars).view(batch, 1, 2 * after).split(after, 2)
        diagonal, rows, columns = (contracted.view(batch * n, -1) @ vectors).view(batch, n, -1).split(after, 2)
        output = (rows + everywhere).unsqueeze(2) + columns.unsqueeze(1)
        output.diagonal(0, 1, 2).add_((diagonal + on_diagonal).mT)
        flat = output.view(-1, after)
        flat.addmm_(x.reshape(-1, before), straight)
        flat.addmm_(x.transpose(1, 2).reshape(-1, before), transposed)
        ctx.save_for_backward(x, straight, transposed, vectors, scalars, contracted, means)
        return output

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> tuple[Tensor, ...]:
        x, straight, transposed, vectors, scalars, contracted, means = ctx.saved_tensors
        (batch, n, _, before), after, gradient = x.shape, straight.shape[1], gradients[0]
        pulled = torch.cat([gradient.diagonal(0, 1, 2).mT, gradient.sum(2), gradient.sum(1)], 2)
        sums = pulled[:, :, : 2 * after].sum(1)
        flat, flat_pulled = gradient.reshape(-1, after), pulled.view(batch * n, -1)
        of_vectors = (flat_pulled @ vectors.mT).view(batch, n, -1)
        of_vectors[:, :, : 2 * before].add_((sums @ scalars.mT).unsqueeze(1), alpha=1 / n)
        diagonal, rows, columns = of_vectors.split(before, 2)
        of_x = (rows / n).unsqueeze(2) + (columns / n).unsqueeze(1)
        of_x.diagonal(0, 1, 2).add_(diagonal.mT)
        of_x.view(-1, before).addmm_(flat, straight.mT)
        # No case has fewer output than input channels, so the gradient of the input is the narrower side to transpose.
        of_x.add_((flat @ transposed.mT).view(x.shape).transpose(1, 2))
        return (
            of_x,
            x.reshape(-1, before).mT @ flat,
            x.transpose(1, 2).reshape(-1, before).mT @ flat,
            contracted.view(batch * n, -1).mT @ flat_pulled,
            means.mT @ sums,
            sums.sum(0),
        )
