"""Modules on channels, as they stand inside models: copied, or written as linear maps and activations."""

import copy
from collections.abc import Iterator
from typing import Any, NoReturn

import torch
from torch import Tensor, nn

from bellnet.errors import ConversionError
from bellnet.nn.message_passing.affine import ChannelAffine, linear_of
from bellnet.nn.message_passing.ranges import ACTIVATIONS

FUNCTIONS: dict[object, type[nn.Module]] = {
    torch.relu: nn.ReLU,
    nn.functional.relu: nn.ReLU,
    Tensor.relu: nn.ReLU,
    torch.tanh: nn.Tanh,
    nn.functional.tanh: nn.Tanh,
    torch.sigmoid: nn.Sigmoid,
    nn.functional.sigmoid: nn.Sigmoid,
    nn.functional.elu: nn.ELU,
    nn.functional.leaky_relu: nn.LeakyReLU,
    nn.functional.gelu: nn.GELU,
    nn.functional.silu: nn.SiLU,
    nn.functional.softplus: nn.Softplus,
}


def refuse(part: object, reason: str, remedy: str) -> NoReturn:
    """Say that a part of a model cannot be converted, why, and what can be done."""
    raise ConversionError(f"from_message_passing cannot convert {name_of(part)}: {reason}.\n{remedy}")


def name_of(part: object) -> str:
    """A part of a model in one line."""
    if isinstance(part, nn.Module):
        text = repr(part)
        return text if "\n" not in text and len(text) <= 100 else type(part).__name__
    return str(getattr(part, "__name__", repr(part)))


def on_channels(module: object) -> nn.Module:
    """A module on channels with the same values in evaluation mode, which shares nothing with the original."""
    parts = list(_parts(module))
    if len(parts) == 1:
        return parts[0]
    return nn.Sequential(*parts) if parts else nn.Identity()


def is_initialized(module: nn.Module) -> bool:
    """Whether all parameters have their shapes; a lazy module gets them when it is first called."""
    return not any(nn.parameter.is_lazy(parameter) for parameter in module.parameters())


def _parts(module: Any) -> Iterator[nn.Module]:
    from torch_geometric.nn import MLP, BatchNorm
    from torch_geometric.nn import Linear as PygLinear

    if type(module) is nn.Sequential:
        for part in module:
            yield from _parts(part)
    elif type(module) is MLP:
        for part in _parts_of_mlp(module):
            yield from _parts(part)
    elif type(module) in (nn.Linear, PygLinear):
        if not is_initialized(module):
            refuse(module, "it has no weights yet", "Call the model on a graph first.")
        yield linear_of(module.weight, bias=module.bias)
    elif type(module) is BatchNorm:
        yield from _parts(module.module)
    elif type(module) is nn.BatchNorm1d:
        yield _batch_norm(module)
    elif type(module) is nn.Dropout:
        if module.training and module.p:
            _refuse_training(module)
    elif type(module) in ACTIVATIONS or type(module) is nn.Identity:
        made = copy.deepcopy(module)
        if hasattr(made, "inplace"):
            made.inplace = False  # what it is given may still be needed
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
    """The parts of PyTorch Geometric's MLP in the order in which it calls them."""
    if module.training and any(module.dropout):
        _refuse_training(module)
    for linear, norm in zip(module.lins, module.norms, strict=False):
        yield linear
        yield from in_order(module.act, norm, act_first=module.act_first)
    if module.plain_last:
        yield module.lins[-1]


def in_order(act: Any, norm: Any, *, act_first: bool) -> Iterator[Any]:
    """Activation and normalisation, whichever comes first; there may be no activation."""
    parts = [act, norm] if act_first else [norm, act]
    yield from (part for part in parts if part is not None)


def _batch_norm(module: Any) -> ChannelAffine:
    if module.training:
        _refuse_training(module)
    if module.running_mean is None or module.running_var is None:
        refuse(
            module,
            "it takes its statistics from every batch, so graphs of one batch see each other",
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
        "Call model.eval() first: dropout is then left out, and batch normalisation keeps its statistics.",
    )
