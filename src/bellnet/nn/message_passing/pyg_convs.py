"""The convolutions of PyTorch Geometric, each as its M, its U and its adjacency."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn

from bellnet.nn.message_passing.adjacency import Adjacency, Scale
from bellnet.nn.message_passing.affine import linear_of
from bellnet.nn.message_passing.functions import EdgeConditionedMessage, MessageFunctions
from bellnet.nn.message_passing.pyg_modules import is_initialized, on_channels, refuse

SOFTMAX = "it weighs messages by a softmax over all neighbours, which is no function of h_u, h_v and e_uv alone"
REASONS = {
    "GATConv": SOFTMAX,
    "GATv2Conv": SOFTMAX,
    "TransformerConv": SOFTMAX,
    "SuperGATConv": SOFTMAX,
    "PNAConv": "it takes maxima, minima and standard deviations over neighbours, which are not sums",
    "EdgeConv": "it takes the maximum over neighbours by default, which is not a sum",
    "ChebConv": "it hears of nodes several steps away in one layer",
    "SGConv": "it hears of nodes several steps away in one layer",
    "TAGConv": "it hears of nodes several steps away in one layer",
    "HypergraphConv": "it passes messages between nodes and hyperedges, two node sets",
}
GIVE_FUNCTIONS = "Pass its M and U: functions={conv: MessageFunctions(M, U, node_channels=...)}, if it has them."


def functions_of(conv: Any, given: Mapping[nn.Module, MessageFunctions]) -> MessageFunctions:
    """M, U and the adjacency of a convolution.

    Args:
        conv: A `torch_geometric.nn.MessagePassing`.
        given: M and U for convolutions that are not known here.
    """
    adjacency = _adjacency(conv)
    if conv in given:
        weighted = given[conv].adjacency.weighted
        return replace(given[conv], adjacency=replace(adjacency, weighted=weighted))
    kind = _kinds().get(type(conv))
    if kind is None:
        reason = REASONS.get(type(conv).__name__, "its M and U are Python code, which cannot be read")
        refuse(conv, reason, GIVE_FUNCTIONS)
    if not is_initialized(conv):
        refuse(conv, "it has no weights yet", "Call the model on a graph first.")
    return kind(conv, adjacency)


def _kinds() -> dict[type, Callable[[Any, Adjacency], MessageFunctions]]:
    # By the very type: a subclass may have another message.
    from torch_geometric.nn import GCNConv, GINConv, GINEConv, NNConv, SAGEConv

    return {GCNConv: _gcn, GINConv: _gin, GINEConv: _gine, NNConv: _nn, SAGEConv: _sage}


def _adjacency(conv: Any) -> Adjacency:
    from torch_geometric.nn import MeanAggregation, SumAggregation

    if type(conv.aggr_module) not in (SumAggregation, MeanAggregation):
        refuse(
            conv,
            REASONS.get(type(conv).__name__, f"it aggregates by {conv.aggr!r}, and a message passing layer sums"),
            'Message passing here adds messages up: aggr="add" or aggr="mean".',
        )
    scale: Scale = "mean" if type(conv.aggr_module) is MeanAggregation else "none"
    return Adjacency(scale=scale, to_source=conv.flow == "target_to_source")


def _gcn(conv: Any, adjacency: Adjacency) -> MessageFunctions:
    if adjacency.scale != "none":
        refuse(conv, "it normalises by degrees and then takes a mean as well", 'Use aggr="add", its default.')
    adjacency = replace(adjacency, weighted=True)
    if conv.normalize:
        loop = (2.0 if conv.improved else 1.0) if conv.add_self_loops else 0.0
        adjacency = replace(adjacency, self_loops=loop, scale="symmetric")
    weight = conv.lin.weight
    out_channels, channels = weight.shape
    message = linear_of(torch.zeros_like(weight), weight)
    update = linear_of(torch.zeros_like(weight), _eye(out_channels, weight), bias=conv.bias)
    return MessageFunctions(message, update, channels, adjacency=adjacency)


def _gin(conv: Any, adjacency: Adjacency) -> MessageFunctions:
    module = on_channels(conv.nn)
    first = _first_linear(conv, module)
    eye = _eye(first.in_features, first.weight)
    message = linear_of(torch.zeros_like(eye), eye)
    return MessageFunctions(message, _gin_update(conv, eye, module), first.in_features, adjacency=adjacency)


def _gine(conv: Any, adjacency: Adjacency) -> MessageFunctions:
    module = on_channels(conv.nn)
    first = _first_linear(conv, module)
    eye = _eye(first.in_features, first.weight)
    edge, bias = (eye, None) if conv.lin is None else (conv.lin.weight, conv.lin.bias)
    message = nn.Sequential(linear_of(torch.zeros_like(eye), eye, edge, bias=bias), nn.ReLU())
    update = _gin_update(conv, eye, module)
    return MessageFunctions(message, update, first.in_features, edge.shape[1], adjacency)


def _gin_update(conv: Any, eye: Tensor, module: nn.Module) -> nn.Module:
    return nn.Sequential(linear_of((1 + conv.eps.to(eye)) * eye, eye), module)


def _nn(conv: Any, adjacency: Adjacency) -> MessageFunctions:
    matrix = on_channels(conv.nn)
    first = _first_linear(conv, matrix)
    channels, out_channels = conv.in_channels_l, conv.out_channels
    own = conv.lin.weight if conv.root_weight else first.weight.new_zeros(out_channels, channels)
    if own.shape[1] != channels:
        _refuse_bipartite(conv)
    message = EdgeConditionedMessage(matrix, channels, out_channels)
    update = linear_of(own, _eye(out_channels, own), bias=conv.bias)
    return MessageFunctions(message, update, channels, first.in_features, adjacency)


def _sage(conv: Any, adjacency: Adjacency) -> MessageFunctions:
    if conv.normalize:
        refuse(
            conv,
            "normalize=True divides by the length of the features, which no linear map and activation does",
            "Build it with normalize=False.",
        )
    total = conv.lin_l.weight
    channels = total.shape[1]
    own = conv.lin_r.weight if conv.root_weight else torch.zeros_like(total)
    if own.shape[1] != channels:
        _refuse_bipartite(conv)
    eye = _eye(channels, total)
    message: nn.Module = linear_of(torch.zeros_like(eye), eye)
    if conv.project:
        message = nn.Sequential(linear_of(torch.zeros_like(eye), conv.lin.weight, bias=conv.lin.bias), nn.ReLU())
    return MessageFunctions(message, linear_of(own, total, bias=conv.lin_l.bias), channels, adjacency=adjacency)


def _first_linear(conv: Any, module: nn.Module) -> nn.Linear:
    found = [part for part in module.modules() if isinstance(part, nn.Linear)]
    if not found:
        refuse(conv, "its nn has no Linear, so the number of its channels is not known", "Give it one.")
    return found[0]


def _refuse_bipartite(conv: Any) -> None:
    refuse(conv, "its sources and targets are two node sets", "Here all nodes have the same number of channels.")


def _eye(size: int, like: Tensor) -> Tensor:
    return torch.eye(size, dtype=like.dtype, device=like.device)
