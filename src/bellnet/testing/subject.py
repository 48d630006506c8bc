"""A module under test, and what every check needs: calls under equal conditions, tolerances, and the error."""

import copy
import inspect
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from bellnet.errors import EquivarianceError, OptionError
from bellnet.nn import ChannelDropout, Product
from bellnet.spec import Spec
from bellnet.tensors import Padded

Module = Callable[..., Any]
"""A torch module, or any function of a tensor."""

BY_PLACE = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


@dataclass(frozen=True)
class Subject:
    """A module with what a check has to know of it.

    Attributes:
        module: What is called.
        spec: What it is claimed to do.
        in_channels: The number of channels of its input, or of each of several.
        dtype: The type of its input.
        device: Where its input lives.
        seed: What torch's random numbers start from in every call.
    """

    module: Module
    spec: Spec
    in_channels: int | tuple[int, ...]
    dtype: torch.dtype
    device: torch.device
    seed: int

    @classmethod
    def of(
        cls,
        check: str,
        module: Module,
        spec: Spec,
        *,
        in_channels: int | tuple[int, ...] | None,
        dtype: torch.dtype | None,
        device: torch.device | str | None,
        seed: int,
    ) -> "Subject":
        """Find out what was not given; `check` is how a message names the check."""
        if in_channels is None:
            in_channels = getattr(module, "in_channels", None)
        if not isinstance(in_channels, int) and not _are_numbers(in_channels, len(spec.sources)):
            numbers = "the number" if len(spec.sources) == 1 else f"a tuple of the {len(spec.sources)} numbers"
            raise OptionError(
                f'{check}(module, "{spec}"): {name_of(module)} has no attribute in_channels, so its inputs cannot be '
                f"made up.\nPass in_channels=..., {numbers} of channels it takes."
            )
        parameter = _first_parameter(module)
        home_dtype = torch.get_default_dtype() if parameter is None else parameter.dtype
        home = torch.device("cpu") if parameter is None else parameter.device
        dtype, device = dtype or home_dtype, home if device is None else torch.device(device)
        if isinstance(module, nn.Module) and (dtype, device) != (home_dtype, home):
            module = copy.deepcopy(module).to(dtype=dtype, device=device)
        channels = in_channels if isinstance(in_channels, int) else tuple(in_channels)  # type: ignore[arg-type]
        return cls(module, spec, channels, dtype, device, seed)

    @property
    def channels(self) -> tuple[int, ...]:
        """The number of channels of every input."""
        several = self.in_channels
        return (several,) * len(self.spec.sources) if isinstance(several, int) else several

    def __call__(self, x: Tensor | Padded | tuple[Tensor, ...], sizes: Mapping[str, int | Tensor]) -> Any:
        """Call the module; `sizes` are those of the node sets that its input does not have.

        Random numbers start from the same seed every time and go on afterwards as if nothing had happened; buffers,
        such as the running statistics of a batch norm, are handed in as copies.
        """
        options = {"sizes": sizes} if sizes else {}
        args = x if isinstance(x, tuple) and _takes_one_by_one(self.module, len(x)) else (x,)
        on_cuda = self.device.type == "cuda"
        with torch.random.fork_rng([self.device] if on_cuda else []):
            torch.default_generator.manual_seed(self.seed)
            if on_cuda:
                with torch.cuda.device(self.device):
                    torch.cuda.manual_seed(self.seed)
            if isinstance(self.module, nn.Module) and any(True for _ in self.module.buffers()):
                buffers = {name: buffer.clone() for name, buffer in self.module.named_buffers()}
                return torch.func.functional_call(self.module, buffers, args, options)
            return self.module(*args, **options)

    def draw(self, shape: tuple[int, ...], generator: torch.Generator) -> Tensor:
        """A tensor of standard normal numbers, the same on every device."""
        return torch.randn(shape, generator=generator, dtype=torch.float64).to(self.device, self.dtype)

    @property
    def parameters(self) -> dict[str, nn.Parameter]:
        """The parameters that are learned, by name."""
        named = self.module.named_parameters() if isinstance(self.module, nn.Module) else ()
        return {name: parameter for name, parameter in named if parameter.requires_grad}

    @property
    def hint(self) -> str:
        """What may have led the check astray: noise or batch statistics of a module in training mode."""
        modules = self.module.modules() if isinstance(self.module, nn.Module) else ()
        kinds = (ChannelDropout, nn.modules.dropout._DropoutNd, nn.modules.batchnorm._BatchNorm)
        names = dict.fromkeys(type(part).__name__ for part in modules if isinstance(part, kinds) and part.training)
        if not names:
            return ""
        return f"\nIt is in training mode and holds {', '.join(names)}: check it after module.eval() as well."


def name_of(module: Module) -> str:
    """A module in one line, as a message names it."""
    if isinstance(module, nn.Module):
        text = repr(module)
        return text if "\n" not in text and len(text) <= 100 else type(module).__name__
    return str(getattr(module, "__name__", type(module).__name__))


def _takes_one_by_one(module: Module, n_tensors: int) -> bool:
    """Whether a module must have an argument for each of several tensors, as `Product` and `torch.nn.Bilinear`."""
    if isinstance(module, Product):  # it can be called with one, to say what it takes
        return n_tensors == 2
    try:
        parameters = inspect.signature(module.forward if isinstance(module, nn.Module) else module).parameters
    except (TypeError, ValueError):  # some functions written in C have none
        return False
    required = [one for one in parameters.values() if one.default is one.empty and one.kind in BY_PLACE]
    return len(required) == n_tensors > 1


def _first_parameter(module: Module) -> Tensor | None:
    if not isinstance(module, nn.Module):
        return None
    tensors = (*module.parameters(), *module.buffers())
    return next((tensor for tensor in tensors if tensor.is_floating_point()), None)


def _are_numbers(channels: object, n_tensors: int) -> bool:
    if not isinstance(channels, tuple | list) or n_tensors == 1 or len(channels) != n_tensors:
        return False
    return all(isinstance(one, int) for one in channels)


_DEFAULTS = {
    torch.float64: (1e-9, 1e-9),
    torch.float32: (1e-4, 1e-5),
    torch.float16: (1e-2, 1e-2),
    torch.bfloat16: (5e-2, 5e-2),
}


@dataclass(frozen=True)
class Tolerance:
    """How much rounding is allowed: `atol`, and `rtol` for each unit of the largest expected value.

    The largest value, and not each value, sets the scale: a sum that nearly cancels carries the rounding of its terms.
    """

    rtol: float
    atol: float

    @classmethod
    def choose(cls, dtype: torch.dtype, rtol: float | None, atol: float | None) -> "Tolerance":
        """What was given, and for the rest what suits the dtype."""
        default_rtol, default_atol = _DEFAULTS.get(dtype, _DEFAULTS[torch.float32])
        return cls(default_rtol if rtol is None else rtol, default_atol if atol is None else atol)


NO_ROUNDING = Tolerance(rtol=0.0, atol=0.0)


@dataclass(frozen=True)
class Difference:
    """The entry in which two tensors differ most, where that is more than is allowed."""

    place: tuple[int, ...]
    found: float
    expected: float
    allowed: float

    def __str__(self) -> str:
        size = abs(self.found - self.expected)
        return f"{size:.3g}, where {self.allowed:.3g} is allowed" if size < torch.inf else "not finite"


def difference(found: Tensor, expected: Tensor, tolerance: Tolerance) -> Difference | None:
    """Where two tensors of one shape differ most, if by more than the tolerance; what is not finite always differs.

    >>> difference(torch.tensor([1.0, 2.0]), torch.tensor([1.0, 2.5]), Tolerance(rtol=0.1, atol=0.0)).place
    (1,)
    """
    if found.numel() == 0:
        return None
    found, expected = found.detach().double().cpu(), expected.detach().double().cpu()
    apart = (found - expected).abs().nan_to_num(nan=torch.inf)
    scale = expected.nan_to_num(nan=0.0, posinf=0.0, neginf=0.0).abs().amax()
    allowed = float(tolerance.atol + tolerance.rtol * scale)
    if float(apart.max()) <= allowed:
        return None
    place = tuple((apart == apart.max()).nonzero()[0].tolist())
    return Difference(place, float(found[place]), float(expected[place]), allowed)


def failure(subject: Subject, claim: str, facts: Iterable[tuple[str, str]]) -> EquivarianceError:
    """An error that names the module and what it was claimed to be, and lists the facts one a line."""
    rows = list(facts)
    width = max(len(label) for label, _ in rows)
    table = "\n".join(f"    {label.ljust(width)}  {text}" for label, text in rows)
    return EquivarianceError(f"{name_of(subject.module)} {claim}.\n\n{table}\n{subject.hint}".rstrip())
