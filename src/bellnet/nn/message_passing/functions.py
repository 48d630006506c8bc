"""What one round of message passing is made of: M, U, and the adjacency that the messages are multiplied by."""

from dataclasses import dataclass

from torch import Tensor, nn

from bellnet.nn.message_passing.adjacency import Adjacency
from bellnet.nn.message_passing.product import ExactProduct, Product

PLAIN = Adjacency()


@dataclass(frozen=True, eq=False)
class MessageFunctions:
    """m_u = sum over v of a_uv M(h_u, h_v, e_uv), then h_u' = U(h_u, m_u).

    Attributes:
        message: M, a module on channels: takes h_u, h_v and, if there are edge channels, e_uv, joined in that order.
        update: U, a module on channels: takes h_u and m_u, joined.
        node_channels: The number of channels of h.
        edge_channels: The number of channels of e that M takes.
        adjacency: Which matrix a is.
    """

    message: nn.Module
    update: nn.Module
    node_channels: int
    edge_channels: int = 0
    adjacency: Adjacency = PLAIN


class EdgeConditionedMessage(nn.Module):
    """M(h_u, h_v, e_uv) = h_v W(e_uv): the entries of a matrix that the edge features choose, times h_v.

    Products again, so they are made as the product with the adjacency is.

    Args:
        matrix: From e_uv to the entries of W(e_uv), row by row.
        node_channels: The number of channels of h.
        out_channels: The number of columns of W.
    """

    def __init__(self, matrix: nn.Module, node_channels: int, out_channels: int) -> None:
        super().__init__()
        self.matrix = matrix
        self.node_channels = node_channels
        self.out_channels = out_channels
        self.product: Product = ExactProduct()

    def forward(self, z: Tensor) -> Tensor:
        """From (..., h_u and h_v and e_uv) to (..., out_channels)."""
        heard, edge = z[..., self.node_channels : 2 * self.node_channels], z[..., 2 * self.node_channels :]
        matrix = self.matrix(edge).unflatten(-1, (self.node_channels, self.out_channels))
        product: Tensor = self.product(heard.unsqueeze(-1), matrix)
        return product.sum(-2)
