"""`n n -> n n` by stacking: form all fifteen full matrices of every channel, then mix them in one contraction.

Public implementations work like this. Here repeated entries are expanded views, and means are divided before they are
expanded, so that the only copy of full size is the stack itself.
"""

from typing import Self

import torch
from torch import Tensor, nn

from bellnet import EquivariantLinear, plan

OPERATIONS = (
    "ab->ab",
    "ab->ba",
    "aa->ab",
    "aa->ba",
    "ab->ac",
    "ab->ca",
    "ab->bc",
    "ab->cb",
    "aa->bc",
    "ab->cd",
    "aa->aa",
    "ab->aa",
    "ab->bb",
    "aa->bb",
    "ab->cc",
)
"""The diagrams of the fifteen operations, in the order in which they are stacked."""


class StackedFifteen(nn.Module):
    """The layer `n n -> n n` on (batch, in_channels, n, n), the layout that suits stacking.

    Attributes:
        coefficients: (in_channels, out_channels, 15), the last axis in the order of `OPERATIONS`.
        bias: (2, out_channels): added on the diagonal, and everywhere.
    """

    def __init__(self, in_channels: int, out_channels: int, *, dtype: torch.dtype | None = None) -> None:
        super().__init__()
        deviation = (2 / (in_channels + out_channels)) ** 0.5
        self.coefficients = nn.Parameter(torch.randn(in_channels, out_channels, 15, dtype=dtype) * deviation)
        self.bias = nn.Parameter(torch.zeros(2, out_channels, dtype=dtype))

    @classmethod
    def like(cls, layer: EquivariantLinear) -> Self:
        """The same function with channels first, with the weights of a layer with means."""
        copy = cls(layer.in_channels, layer.out_channels, dtype=layer.weight.dtype)
        with torch.no_grad():
            copy.coefficients.copy_(layer.weight[_canonical_indices()].permute(1, 2, 0))
            if layer.bias is not None:
                copy.bias.copy_(layer.bias)
        return copy

    def forward(self, x: Tensor) -> Tensor:
        stacked = torch.stack(operations(x), 2)
        mixed = torch.einsum("dsb,ndbij->nsij", self.coefficients, stacked)
        on_diagonal, everywhere = self.bias[:, :, None, None]
        eye = torch.eye(x.shape[-1], dtype=x.dtype, device=x.device)
        output: Tensor = mixed + (everywhere + on_diagonal * eye)
        return output


class StackedLast(nn.Module):
    """Stacking in the layout that suits a matrix product, which public implementations do not use.

    The fifteen matrices are concatenated along the channels, (batch, n, n, 15 * in_channels), so that mixing them is a
    plain matrix product that does not copy the stack once more.
    """

    def __init__(self, in_channels: int, out_channels: int, *, dtype: torch.dtype | None = None) -> None:
        super().__init__()
        deviation = (2 / (in_channels + out_channels)) ** 0.5
        self.weight = nn.Parameter(torch.randn(15 * in_channels, out_channels, dtype=dtype) * deviation)
        self.bias = nn.Parameter(torch.zeros(2, out_channels, dtype=dtype))

    @classmethod
    def like(cls, layer: EquivariantLinear) -> Self:
        """The same function, with the weights of a layer with means."""
        copy = cls(layer.in_channels, layer.out_channels, dtype=layer.weight.dtype)
        with torch.no_grad():
            copy.weight.copy_(layer.weight[_canonical_indices()].reshape(-1, layer.out_channels))
            if layer.bias is not None:
                copy.bias.copy_(layer.bias)
        return copy

    def forward(self, x: Tensor) -> Tensor:
        views = [matrix.permute(0, 2, 3, 1) for matrix in operations(x.permute(0, 3, 1, 2))]
        stacked = torch.cat(views, -1)
        on_diagonal, everywhere = self.bias
        rows = torch.addmm(everywhere, stacked.reshape(-1, stacked.shape[-1]), self.weight)
        mixed = rows.reshape(*x.shape[:-1], -1)
        mixed.diagonal(0, 1, 2).add_(on_diagonal[:, None])
        return mixed


def operations(x: Tensor) -> list[Tensor]:
    """The fifteen matrices of every channel, in the order of `OPERATIONS`; (batch, channels, n, n) each, or a view."""
    n = x.shape[-1]
    diagonal = x.diagonal(0, 2, 3)
    rows, columns = x.mean(3), x.mean(2)
    trace, total = diagonal.mean(2, keepdim=True), rows.mean(2, keepdim=True)

    def along_rows(vector: Tensor) -> Tensor:
        return vector.unsqueeze(3).expand(x.shape)

    def along_columns(vector: Tensor) -> Tensor:
        return vector.unsqueeze(2).expand(x.shape)

    return [
        x,
        x.transpose(2, 3),
        along_rows(diagonal),
        along_columns(diagonal),
        along_rows(rows),
        along_columns(rows),
        along_rows(columns),
        along_columns(columns),
        along_rows(trace),
        along_rows(total),
        torch.diag_embed(diagonal),
        torch.diag_embed(rows),
        torch.diag_embed(columns),
        torch.diag_embed(trace.expand(-1, -1, n)),
        torch.diag_embed(total.expand(-1, -1, n)),
    ]


def _canonical_indices() -> list[int]:
    """The index of every stacked operation in the canonical order of diagrams."""
    names = [diagram.name for diagram in plan("n n -> n n").diagrams]
    return [names.index(name) for name in OPERATIONS]
