"""Graphs and models for the tests of message passing: all kinds of graphs that PyTorch Geometric knows."""

from collections.abc import Callable
from dataclasses import dataclass

import pytest
import torch
from torch import Tensor, nn

pytest.importorskip("torch_geometric")

from torch_geometric.data import Batch, Data
from torch_geometric.nn import GCNConv, GINConv, GINEConv, NNConv, SAGEConv

NODE, EDGE, OUT = 3, 2, 4
SIZES = (5, 9, 1, 1, 6, 12)
"""Among them a node alone, a node with a self-loop, and nodes without any edge."""

N_EDGES = (8, 20, 0, 1, 0, 40)


def graph(n: int, n_edges: int, *, weights: bool = False, parallel: bool = False) -> Data:
    """A random directed graph with self-loops, node features and edge features; edges are distinct or repeated."""
    pairs = torch.randperm(n * n)[:n_edges]
    if parallel:
        pairs = torch.cat([pairs, pairs[::2], pairs[::4]])
    made = Data(
        x=2 * torch.rand(n, NODE) - 1,
        edge_index=torch.stack([pairs // n, pairs % n]),
        edge_attr=2 * torch.rand(len(pairs), EDGE) - 1,
    )
    if weights:
        made.edge_weight = 2 * torch.rand(len(pairs))
    return made


def graphs(dtype: torch.dtype = torch.float64, **options: bool) -> Batch:
    """Graphs of different sizes as one batch."""
    made = Batch.from_data_list([graph(n, m, **options) for n, m in zip(SIZES, N_EDGES, strict=True)])
    return made.apply(lambda tensor: tensor.to(dtype) if tensor.is_floating_point() else tensor)


def mlp(before: int, after: int) -> nn.Sequential:
    """A small network with batch norm whose statistics have moved."""
    norm = nn.BatchNorm1d(8)
    nn.init.uniform_(norm.running_mean, -0.5, 0.5)
    nn.init.uniform_(norm.running_var, 0.5, 2)
    nn.init.uniform_(norm.weight, 0.5, 2)
    nn.init.uniform_(norm.bias, -0.5, 0.5)
    return nn.Sequential(nn.Linear(before, 8), norm, nn.ReLU(inplace=True), nn.Linear(8, after))


@dataclass(frozen=True)
class Conv:
    """How to make a convolution, and what it takes besides x and the edges."""

    make: Callable[..., nn.Module]
    takes: tuple[str, ...] = ()

    def __call__(self, dtype: torch.dtype = torch.float64, **options: object) -> nn.Module:
        return self.make(**options).to(dtype).eval()

    def output(self, conv: nn.Module, batch: Data) -> Tensor:
        return conv(batch.x, batch.edge_index, *(batch[name] for name in self.takes))


def with_bias(conv: nn.Module) -> nn.Module:
    """Biases begin at zero, where a forgotten one is not missed."""
    if getattr(conv, "bias", None) is not None:
        nn.init.normal_(conv.bias)
    return conv


CONVS = {
    "GCNConv": Conv(lambda **options: with_bias(GCNConv(NODE, OUT, **options))),
    "GINConv": Conv(lambda **options: GINConv(mlp(NODE, OUT), eps=0.3, train_eps=True, **options)),
    "GINEConv": Conv(lambda **options: GINEConv(mlp(NODE, OUT), eps=0.2, edge_dim=EDGE, **options), ("edge_attr",)),
    "NNConv": Conv(lambda **options: with_bias(NNConv(NODE, OUT, mlp(EDGE, NODE * OUT), **options)), ("edge_attr",)),
    "SAGEConv": Conv(lambda **options: SAGEConv(NODE, OUT, **options)),
}
