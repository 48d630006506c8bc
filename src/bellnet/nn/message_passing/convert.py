"""Conversion of PyTorch Geometric models to networks of equivariant layers."""

import copy
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

from torch import nn

from bellnet._utils.optional import require
from bellnet.errors import OptionError
from bellnet.nn.arguments import check_choice
from bellnet.nn.message_passing.functions import MessageFunctions
from bellnet.nn.message_passing.network import PRODUCTS, MessagePassingNet
from bellnet.nn.message_passing.pyg_layers import functions_of, in_order, on_channels, refuse
from bellnet.nn.message_passing.ranges import CompactSet

CALL = "from_message_passing"


def from_message_passing(
    model: Any,
    *,
    readout: str | None = None,
    product: str = "relu",
    on: CompactSet | None = None,
    depth: int = 8,
    functions: Mapping[nn.Module, MessageFunctions] | None = None,
) -> MessagePassingNet:
    """Convert a PyTorch Geometric model to a network of equivariant layers.

    Supported convolutions: GCNConv, GINConv, GINEConv, NNConv, SAGEConv. A `ConversionError` names a layer that cannot
    be converted and gives the reason. The model does not change: the network has copies of its weights.

    Args:
        model: A convolution; or a list, `torch.nn.Sequential` or `torch_geometric.nn.Sequential` of convolutions,
            modules on channels, and at most one pooling (`global_add_pool`, `SumAggregation` and so on); or one of the
            models GCN, GraphSAGE and GIN. It must be in evaluation mode if it has dropout or batch norm.
        readout: "sum", "mean" or "max" over the nodes, for a model without pooling.
        product: "relu" multiplies by the adjacency with ReLU networks, as in the proof; "exact" multiplies.
        on: The compact set for which the ReLU networks are built.
        depth: Their depth: every level divides the error by four.
        functions: M and U of other `MessagePassing` layers, by layer. Aggregation and direction are read from the
            layer.

    >>> from torch_geometric.nn import GIN, global_add_pool
    >>> model = [GIN(3, 16, num_layers=2).eval(), global_add_pool, nn.Linear(16, 2)]
    >>> net = from_message_passing(model, on=CompactSet(size=20, neighbours=5), depth=10)
    >>> net.out_channels, bool((net.error_bound < 0.01).all())
    (2, True)
    """
    require("torch_geometric", extra="pyg", call=CALL)
    check_choice(CALL, "product", product, PRODUCTS)
    if product == "relu" and on is None:
        raise OptionError(
            f'{CALL}: product="relu" needs on=..., the compact set on which products are to be right.\n'
            'Pass on=CompactSet(size=..., neighbours=...), or product="exact" to multiply exactly.'
        )
    net = _build(model, readout, functions or {})
    return net if on is None or product == "exact" else net.approximate(on, depth)


def _build(model: Any, readout: str | None, given: Mapping[nn.Module, MessageFunctions]) -> MessagePassingNet:
    from torch_geometric.nn import MessagePassing

    steps: list[MessageFunctions | nn.Module] = []
    head: list[nn.Module] = []
    pooled: str | None = None
    for layer, with_weights in _layers(model):
        name = _readout(layer)
        if name is not None:
            if pooled is not None or readout is not None:
                refuse(layer, "there is more than one readout", "Leave out readout=..., or all poolings but one.")
            pooled = name
        elif isinstance(layer, MessagePassing):
            if pooled is not None:
                refuse(layer, "it comes after the readout, where there are no nodes left", "Put it before the readout.")
            functions = functions_of(layer, given)
            weighted = functions.adjacency.weighted and with_weights
            steps.append(_own(replace(functions, adjacency=replace(functions.adjacency, weighted=weighted))))
        elif pooled is not None:
            head.append(on_channels(layer))
        else:
            _after(steps, on_channels(layer))
    return MessagePassingNet(steps, readout=pooled or readout, head=nn.Sequential(*head) if head else None)


def _own(functions: MessageFunctions) -> MessageFunctions:
    """The same functions with copies of their modules: those of the caller must not change."""
    return replace(functions, message=copy.deepcopy(functions.message), update=copy.deepcopy(functions.update))


def _after(steps: list[MessageFunctions | nn.Module], module: nn.Module) -> None:
    """Append a module on channels, to U of the last step if that has one."""
    if isinstance(module, nn.Identity):
        return
    if steps and isinstance(last := steps[-1], MessageFunctions):
        steps[-1] = replace(last, update=nn.Sequential(last.update, module))
    else:
        steps.append(module)


def _readout(layer: Any) -> str | None:
    from torch_geometric.nn import (
        MaxAggregation,
        MeanAggregation,
        SumAggregation,
        aggr,
        global_add_pool,
        global_max_pool,
        global_mean_pool,
    )

    known = {
        global_add_pool: "sum",
        global_mean_pool: "mean",
        global_max_pool: "max",
        SumAggregation: "sum",
        MeanAggregation: "mean",
        MaxAggregation: "max",
    }
    found = known.get(type(layer)) or (known.get(layer) if callable(layer) else None)
    if found is None and isinstance(layer, aggr.Aggregation):
        refuse(layer, "this readout is not a sum, a mean or a maximum", "Use global_add_pool, for instance.")
    return found


class Called(NamedTuple):
    """A layer, and whether the model passes it the edge weights if there are any."""

    layer: Any
    with_weights: bool = True


def _layers(model: Any) -> Iterator[Called]:
    """The layers of a model in the order of its calls."""
    from torch_geometric.nn import MessagePassing, Sequential
    from torch_geometric.nn.models.basic_gnn import BasicGNN

    if isinstance(model, list | tuple | nn.Sequential | nn.ModuleList):
        for part in model:
            yield from _layers(part)
    elif isinstance(model, Sequential):
        yield from _layers_of_sequential(model)
    elif isinstance(model, BasicGNN) and type(model).forward is BasicGNN.forward:
        for part in _layers_of_basic_gnn(model):
            yield Called(part)
    elif isinstance(model, nn.Module) and not isinstance(model, MessagePassing) and _holds_convolutions(model):
        refuse(model, "its forward is Python code, which cannot be read", "Pass its layers as a list, in order.")
    else:
        yield Called(model)


def _holds_convolutions(model: nn.Module) -> bool:
    from torch_geometric.nn import MessagePassing

    return any(isinstance(part, MessagePassing) for part in model.modules())


def _layers_of_basic_gnn(model: Any) -> Iterator[Any]:
    if model.jk_mode not in (None, "last"):
        refuse(
            model,
            f"jk={model.jk_mode!r} joins the features of all layers, and here each layer sees the one before it",
            'Build it with jk=None or jk="last".',
        )
    for number, (conv, norm) in enumerate(zip(model.convs, model.norms, strict=True), 1):
        yield conv
        if number < model.num_layers or model.jk_mode is not None:
            yield from in_order(model.act, norm, act_first=model.act_first)
            yield model.dropout
    if model.jk_mode is not None:
        yield model.lin


def _layers_of_sequential(model: Any) -> Iterator[Called]:
    """The layers, if each takes the output of the one before it, and all convolutions take the same edges."""
    from torch_geometric.nn import MessagePassing

    features = next(iter(model.signature.param_dict))
    edges: str | None = None
    for child in model._children:
        layer, (first, *rest) = getattr(model, child.name), child.param_names
        if isinstance(layer, MessagePassing):
            edges = edges or rest[0]
        is_next = first == features and len(child.return_names) == 1
        if not is_next or (isinstance(layer, MessagePassing) and rest[0] != edges):
            header = f"{', '.join(child.param_names)} -> {', '.join(child.return_names)}"
            refuse(
                layer,
                f"it is called as '{header}', not on what the layer before it returns and the edges of the model",
                f"Each layer must take what the last one returned, here {features!r}.",
            )
        features = child.return_names[0]
        for called in _layers(layer):
            yield called._replace(with_weights=len(rest) > 1)
