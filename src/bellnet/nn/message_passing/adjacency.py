"""Adjacency matrices as the layers want them: counted or weighted, with self-loops, divided by degrees.

To divide by a degree is not linear, so no equivariant linear layer does it. What a graph convolution multiplies its
messages by depends on the graph alone, not on the features. So it is prepared once, outside the network, and handed
in as the adjacency channel: the authors of the paper give their network a normalised adjacency in the same way.
"""

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

SCALES = ("none", "mean", "symmetric")
Scale = Literal["none", "mean", "symmetric"]


@dataclass(frozen=True)
class Adjacency:
    """Which matrix a layer multiplies its messages by; entry (u, v) is for what u hears of v.

    Attributes:
        weighted: Whether edges count by their weights, where the graph has weights, or each as one.
        self_loops: The weight of the loop that is added at every node without one; 0 adds none. Where the graph has
            no weights all loops weigh one, and so they do in PyTorch Geometric.
        scale: "none"; "mean" divides by the number of edges that arrive at u; "symmetric" by the square root of the
            degrees of u and of v, where the degree is the sum of the weights that arrive.
        to_source: Whether messages go against the edges, from target to source.
    """

    weighted: bool = False
    self_loops: float = 0.0
    scale: Scale = "none"
    to_source: bool = False

    def matrix(self, counts: Tensor, weights: Tensor | None, is_node: Tensor) -> Tensor:
        """The matrices of a batch of graphs.

        Args:
            counts: (batch, n, n), how many edges go from v to u.
            weights: (batch, n, n), the sums of their weights, or None for a graph without weights.
            is_node: (batch, n), which nodes are there.

        >>> edge = torch.tensor([[[0.0, 1.0], [0.0, 0.0]]])
        >>> Adjacency(self_loops=1.0, scale="symmetric").matrix(edge, None, torch.ones(1, 2, dtype=torch.bool))
        tensor([[[0.5000, 0.7071],
                 [0.0000, 1.0000]]])
        """
        has_weights = self.weighted and weights is not None
        matrix = weights if self.weighted and weights is not None else counts
        if self.to_source:
            matrix, counts = matrix.mT, counts.mT
        if self.self_loops:
            loop = torch.where(
                counts.diagonal(0, -2, -1) > 0 if has_weights else torch.zeros_like(is_node),
                matrix.diagonal(0, -2, -1),
                self.self_loops if has_weights else 1.0,
            )
            matrix = torch.diagonal_scatter(matrix, loop * is_node, 0, -2, -1)
        if self.scale == "mean":
            matrix = matrix / counts.sum(-1, keepdim=True).clamp(min=1)
        elif self.scale == "symmetric":
            root = matrix.sum(-1).rsqrt()
            root = root.masked_fill(torch.isinf(root), 0)
            matrix = root.unsqueeze(-1) * matrix * root.unsqueeze(-2)
        return matrix.mT if self.to_source else matrix

    def __str__(self) -> str:
        words = ["weights" if self.weighted else "edges"]
        words += ["with self-loops"] if self.self_loops else []
        words += [] if self.scale == "none" else [f"scaled: {self.scale}"]
        words += ["against the edges"] if self.to_source else []
        return ", ".join(words)
