"""Conversion of PyTorch Geometric models to networks of equivariant layers."""

import copy
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import Any, NoReturn

import torch
from torch import Tensor, nn

from bellnet._utils.optional import require
from bellnet.errors import ConversionError, OptionError
from bellnet.nn.inputs import check_choice
from bellnet.nn.message_passing.approximation import ACTIVATIONS, CompactSet
from bellnet.nn.message_passing.functions import ChannelAffine, EdgeConditionedMessage, MessageFunctions, linear_of
from bellnet.nn.message_passing.network import PRODUCTS, MessagePassingNet
from bellnet.nn.message_passing.state import Adjacency, Scale

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


def _build(model: Any, readout: str | None, passed: Mapping[nn.Module, MessageFunctions]) -> MessagePassingNet:
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
            functions = _functions_of(layer, passed)
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
    import torch_geometric.nn as pyg

    known = {pyg.global_add_pool: "sum", pyg.global_mean_pool: "mean", pyg.global_max_pool: "max"}
    known |= {pyg.SumAggregation: "sum", pyg.MeanAggregation: "mean", pyg.MaxAggregation: "max"}
    found = known.get(type(layer)) or (known.get(layer) if callable(layer) else None)
    if found is None and isinstance(layer, pyg.aggr.Aggregation):
        refuse(layer, "this readout is not a sum, a mean or a maximum", "Use global_add_pool, for instance.")
    return found


def _layers(model: Any) -> Iterator[tuple[Any, bool]]:
    """The layers of a model in the order of its calls, and whether it passes them the edge weights."""
    import torch_geometric.nn as pyg

    if isinstance(model, list | tuple | nn.Sequential | nn.ModuleList):
        for part in model:
            yield from _layers(part)
    elif isinstance(model, pyg.Sequential):
        yield from _layers_of_sequential(model)
    elif isinstance(model, basic := pyg.models.basic_gnn.BasicGNN) and type(model).forward is basic.forward:
        yield from ((part, True) for part in _layers_of_basic_gnn(model))
    elif isinstance(model, pyg.MessagePassing) or not isinstance(model, nn.Module):
        yield model, True
    elif any(isinstance(part, pyg.MessagePassing) for part in model.modules()):
        refuse(model, "its forward is Python code, which cannot be read", "Pass its layers as a list, in order.")
    else:
        yield model, True


def _layers_of_basic_gnn(model: Any) -> Iterator[Any]:
    if model.jk_mode not in (None, "last"):
        refuse(
            model,
            f"jk={model.jk_mode!r} joins the features of all layers, and here each layer takes those of the last one",
            'Build it with jk=None or jk="last".',
        )
    for number, (conv, norm) in enumerate(zip(model.convs, model.norms, strict=True), 1):
        yield conv
        if number < model.num_layers or model.jk_mode is not None:
            yield from in_order(model.act, norm, act_first=model.act_first)
            yield model.dropout
    if model.jk_mode is not None:
        yield model.lin


def _layers_of_sequential(model: Any) -> Iterator[tuple[Any, bool]]:
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
        yield from ((part, len(rest) > 1) for part, _ in _layers(layer))


REASONS = {
    "GATConv GATv2Conv TransformerConv SuperGATConv": "it weighs messages by a softmax over all neighbours, which is "
    "no function of h_u, h_v and e_uv alone",
    "PNAConv": "it takes maxima, minima and standard deviations over neighbours, which are not sums",
    "EdgeConv": "it takes the maximum over neighbours by default, which is not a sum",
    "ChebConv SGConv TAGConv": "it passes messages over several hops in one layer",
    "HypergraphConv": "it passes messages between nodes and hyperedges, two node sets",
}


def _reason(conv: Any, default: str) -> str:
    """Why a convolution is not supported."""
    return next((reason for names, reason in REASONS.items() if type(conv).__name__ in names.split()), default)


def _functions_of(conv: Any, passed: Mapping[nn.Module, MessageFunctions]) -> MessageFunctions:
    """M, U and the adjacency of a convolution; M and U as passed, for those that are not supported here."""
    import torch_geometric.nn as pyg

    adjacency = _adjacency(conv)
    if conv in passed:
        weighted = passed[conv].adjacency.weighted
        return replace(passed[conv], adjacency=replace(adjacency, weighted=weighted))
    # By the exact type: a subclass may have another message.
    kinds: dict[type, Callable[[Any, Adjacency], MessageFunctions]] = {
        pyg.GCNConv: _gcn,
        pyg.GINConv: _gin,
        pyg.GINEConv: partial(_gin, with_edges=True),
        pyg.NNConv: _nn,
        pyg.SAGEConv: _sage,
    }
    if type(conv) not in kinds:
        remedy = "Pass its M and U: functions={conv: MessageFunctions(M, U, node_channels=...)}, if it has them."
        refuse(conv, _reason(conv, "its M and U are Python code, which cannot be read"), remedy)
    _refuse_lazy(conv)
    return kinds[type(conv)](conv, adjacency)


def _adjacency(conv: Any) -> Adjacency:
    from torch_geometric.nn import MeanAggregation, SumAggregation

    if type(conv.aggr_module) not in (SumAggregation, MeanAggregation):
        reason = _reason(conv, f"it aggregates by {conv.aggr!r}, and a message passing layer sums")
        refuse(conv, reason, 'Message passing here adds messages up: aggr="add" or aggr="mean".')
    scale: Scale = "mean" if type(conv.aggr_module) is MeanAggregation else "none"
    return Adjacency(scale=scale, to_source=conv.flow == "target_to_source")


def _gcn(conv: Any, adjacency: Adjacency) -> MessageFunctions:
    if adjacency.scale != "none":
        refuse(conv, "it normalizes by degrees and then takes a mean as well", 'Use aggr="add", its default.')
    adjacency = replace(adjacency, weighted=True)
    if conv.normalize:
        loop = (2.0 if conv.improved else 1.0) if conv.add_self_loops else 0.0
        adjacency = replace(adjacency, self_loops=loop, scale="symmetric")
    weight = conv.lin.weight
    out_channels, channels = weight.shape
    message = linear_of(torch.zeros_like(weight), weight)
    update = linear_of(torch.zeros_like(weight), _eye(out_channels, weight), bias=conv.bias)
    return MessageFunctions(message, update, channels, adjacency=adjacency)


def _gin(conv: Any, adjacency: Adjacency, *, with_edges: bool = False) -> MessageFunctions:
    module = on_channels(conv.nn)
    first = _first_linear(conv, module)
    eye = _eye(first.in_features, first.weight)
    update = nn.Sequential(linear_of((1 + conv.eps.to(eye)) * eye, eye), module)
    if not with_edges:
        message = linear_of(torch.zeros_like(eye), eye)
        return MessageFunctions(message, update, first.in_features, adjacency=adjacency)
    edge, bias = (eye, None) if conv.lin is None else (conv.lin.weight, conv.lin.bias)
    of_edges = nn.Sequential(linear_of(torch.zeros_like(eye), eye, edge, bias=bias), nn.ReLU())
    return MessageFunctions(of_edges, update, first.in_features, edge.shape[1], adjacency)


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


FUNCTIONS: dict[object, type[nn.Module]] = {torch.relu: nn.ReLU, torch.tanh: nn.Tanh, torch.sigmoid: nn.Sigmoid}
FUNCTIONS |= {Tensor.relu: nn.ReLU, nn.functional.leaky_relu: nn.LeakyReLU}
FUNCTIONS |= {getattr(nn.functional, kind.__name__.lower()): kind for kind in ACTIVATIONS if kind is not nn.LeakyReLU}


def refuse(part: object, reason: str, remedy: str) -> NoReturn:
    """Raise because a part of a model cannot be converted."""
    name = str(getattr(part, "__name__", repr(part)))
    if isinstance(part, nn.Module) and ("\n" in name or len(name) > 100):
        name = type(part).__name__
    raise ConversionError(f"from_message_passing cannot convert {name}: {reason}.\n{remedy}")


def on_channels(module: object) -> nn.Module:
    """A module on channels with the same outputs in evaluation mode, which shares no parameters with the original."""
    parts = list(_parts(module))
    if len(parts) == 1:
        return parts[0]
    return nn.Sequential(*parts) if parts else nn.Identity()


def _refuse_lazy(module: nn.Module) -> None:
    """Raise for a lazy module, whose parameters have no shape before its first call."""
    if any(nn.parameter.is_lazy(parameter) for parameter in module.parameters()):
        refuse(module, "it has no weights yet", "Call the model on a graph first.")


def _parts(module: Any) -> Iterator[nn.Module]:
    import torch_geometric.nn as pyg

    if type(module) is nn.Sequential:
        for part in module:
            yield from _parts(part)
    elif type(module) is pyg.MLP:
        for part in _parts_of_mlp(module):
            yield from _parts(part)
    elif type(module) in (nn.Linear, pyg.Linear):
        _refuse_lazy(module)
        yield linear_of(module.weight, bias=module.bias)
    elif type(module) is pyg.BatchNorm:
        yield from _parts(module.module)
    elif type(module) is nn.BatchNorm1d:
        yield _batch_norm(module)
    elif type(module) is nn.Dropout:
        if module.training and module.p:
            _refuse_training(module)
    elif type(module) in ACTIVATIONS or type(module) is nn.Identity:
        made = copy.deepcopy(module)
        if hasattr(made, "inplace"):
            made.inplace = False  # the input may still be needed
        yield made
    elif callable(module) and module in FUNCTIONS:
        yield FUNCTIONS[module]()
    else:
        known = ", ".join(["Linear", "BatchNorm", "Dropout", "MLP", *(kind.__name__ for kind in ACTIVATIONS)])
        refuse(
            module,
            "it is not known to be a linear map or an activation, on the channels of each node alone",
            f"Known are {known}, and Sequential of these.",
        )


def _parts_of_mlp(module: Any) -> Iterator[Any]:
    """The parts of PyTorch Geometric's MLP in the order of its calls."""
    if module.training and any(module.dropout):
        _refuse_training(module)
    for linear, norm in zip(module.lins, module.norms, strict=False):
        yield linear
        yield from in_order(module.act, norm, act_first=module.act_first)
    if module.plain_last:
        yield module.lins[-1]


def in_order(act: Any, norm: Any, *, act_first: bool) -> Iterator[Any]:
    """Activation and normalization in their order; there may be no activation."""
    parts = [act, norm] if act_first else [norm, act]
    yield from (part for part in parts if part is not None)


def _batch_norm(module: Any) -> ChannelAffine:
    if module.training:
        _refuse_training(module)
    if module.running_mean is None or module.running_var is None:
        refuse(
            module,
            "it takes its statistics from every batch, so graphs of one batch depend on each other",
            "Build it with track_running_stats=True.",
        )
    scale = torch.rsqrt(module.running_var + module.eps)
    if module.weight is not None:
        scale = scale * module.weight
    shift = -scale * module.running_mean
    return ChannelAffine(scale, shift if module.bias is None else shift + module.bias)


def _refuse_training(module: nn.Module) -> NoReturn:
    refuse(
        module,
        "in training mode its output depends on chance or on the other graphs of the batch",
        "Call model.eval() first: dropout is then left out, and batch normalization uses its running statistics.",
    )
