"""The functions of a round of message passing: M, U, and the modules on channels that they are built of."""

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from bellnet.nn.message_passing.state import Adjacency

PLAIN = Adjacency()


@dataclass(frozen=True, eq=False)
class MessageFunctions:
    """m_u = sum over v of a_uv M(h_u, h_v, e_uv), then h_u' = U(h_u, m_u).

    Attributes:
        message: M, a module on channels: takes h_u, h_v and, if there are edge channels, e_uv, concatenated.
        update: U, a module on channels: takes h_u and m_u, concatenated.
        node_channels: The number of channels of h.
        edge_channels: The number of channels of e.
        adjacency: The matrix a.
    """

    message: nn.Module
    update: nn.Module
    node_channels: int
    edge_channels: int = 0
    adjacency: Adjacency = PLAIN


class ExactProduct(nn.Module):
    """The exact product of two tensors entry by entry, which is not part of the model; for comparison."""

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        """Multiply entry by entry."""
        return x * y


class EdgeConditionedMessage(nn.Module):
    """M(h_u, h_v, e_uv) = h_v W(e_uv), where a module returns the entries of the matrix W(e_uv) row by row.

    Its products are computed exactly or by ReLU networks, like the product with the adjacency.
    """

    def __init__(self, matrix: nn.Module, node_channels: int, out_channels: int) -> None:
        super().__init__()
        self.matrix = matrix
        self.node_channels = node_channels
        self.out_channels = out_channels
        self.product: nn.Module = ExactProduct()

    def forward(self, z: Tensor) -> Tensor:
        """From (..., h_u and h_v and e_uv) to (..., out_channels)."""
        neighbour, edge = z[..., self.node_channels : 2 * self.node_channels], z[..., 2 * self.node_channels :]
        matrix = self.matrix(edge).unflatten(-1, (self.node_channels, self.out_channels))
        product: Tensor = self.product(neighbour.unsqueeze(-1), matrix)
        return product.sum(-2)


class ChannelAffine(nn.Module):
    """Every channel times a number, plus a number: batch normalisation with fixed statistics."""

    def __init__(self, scale: Tensor, shift: Tensor) -> None:
        super().__init__()
        self.scale = nn.Parameter(scale.detach().clone())
        self.shift = nn.Parameter(shift.detach().clone())

    def forward(self, x: Tensor) -> Tensor:
        """Scale and shift the last axis."""
        return x * self.scale + self.shift

    @property
    def in_features(self) -> int:
        """The number of channels."""
        return len(self.scale)

    def extra_repr(self) -> str:
        """The number of channels."""
        return str(self.in_features)


def linear_of(*blocks: Tensor, bias: Tensor | None = None) -> nn.Linear:
    """The linear layer whose weight consists of these blocks, one for each of the concatenated parts of its input.

    >>> linear_of(torch.zeros(2, 3), torch.eye(2))(torch.tensor([1.0, 2.0, 3.0, 4.0, 5.0])).tolist()
    [4.0, 5.0]
    """
    weight = torch.cat(blocks, 1).detach()
    made = nn.Linear(weight.shape[1], weight.shape[0], bias=bias is not None, dtype=weight.dtype, device=weight.device)
    with torch.no_grad():
        made.weight.copy_(weight)
        if bias is not None:
            made.bias.copy_(bias)
    return made
