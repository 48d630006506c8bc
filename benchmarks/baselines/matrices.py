"""`n n -> n n` as fifteen (n^2, n^2) matrices, the basis in Figure 1 of the paper, for one n; memory grows with n^4."""

import torch
from torch import Tensor, nn

from bellnet import EquivariantLinear
from bellnet.testing import matrix_of


class Matrices(nn.Module):
    """The layer `n n -> n n` on (batch, n, n, in_channels), for one n and with the weights of a layer with means."""

    matrices: Tensor
    diagonal: Tensor

    def __init__(self, layer: EquivariantLinear, n: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(layer.weight.detach().clone())
        self.bias = nn.Parameter(layer.bias.detach().clone())
        single = EquivariantLinear("n n -> n n", 1, 1, bias=False, dtype=layer.weight.dtype)
        matrices = layer.weight.new_empty(len(layer.weight), n * n, n * n)
        with torch.no_grad():
            for number, matrix in enumerate(matrices):
                single.weight.zero_()
                single.weight[number] = 1
                matrix.copy_(matrix_of(single, "n n -> n n", n))
        self.register_buffer("matrices", matrices)
        self.register_buffer("diagonal", torch.eye(n, dtype=matrices.dtype).unsqueeze(-1))

    def forward(self, x: Tensor) -> Tensor:
        flat = x.flatten(1, 2)
        mixed = sum(matrix @ (flat @ weight) for matrix, weight in zip(self.matrices, self.weight, strict=True))
        on_diagonal, everywhere = self.bias
        output: Tensor = mixed.reshape(*x.shape[:-1], -1) + everywhere + on_diagonal * self.diagonal
        return output
