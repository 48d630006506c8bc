"""A module under test: calls under equal conditions, comparison of tensors, and the error of a failed check."""

import copy
import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import isfinite
from typing import Any, TypeVar

import torch
from torch import Tensor, nn

from bellnet.errors import EquivarianceError, OptionError, ShapeError, SizesError, TensorError
from bellnet.nn import ChannelDropout, Product
from bellnet.spec import Spec
from bellnet.tensors import Padded

Module = Callable[..., Any]
"""A torch module, or any function of a tensor."""
Sizes = TypeVar("Sizes")

POSITIONAL = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
TOLERANCES = {
    torch.float64: (1e-9, 1e-9),
    torch.float32: (1e-4, 1e-5),
    torch.float16: (1e-2, 1e-2),
    torch.bfloat16: (5e-2, 5e-2),
}


@dataclass(frozen=True)
class Subject:
    """A module and the conditions under which a check calls it."""

    module: Module
    spec: Spec  # what it is claimed to do
    channels: Sequence[int]  # of every input
    dtype: torch.dtype
    device: torch.device
    seed: int  # of torch's random numbers in every call
    # The allowed rounding, relative to the largest expected entry and in any case. The largest entry sets the scale,
    # since a sum that nearly cancels has the rounding of its terms.
    tolerance: tuple[float, float]

    @classmethod
    def of(
        cls,
        module: Module,
        spec: Spec,
        *,
        in_channels: int | tuple[int, ...] | None,
        dtype: torch.dtype | None,
        device: torch.device | str | None,
        seed: int,
        rtol: float | None,
        atol: float | None,
    ) -> "Subject":
        """What is None comes from the module, or suits its dtype; the module is copied to another dtype or device."""
        in_channels = getattr(module, "in_channels", None) if in_channels is None else in_channels
        n_sources = len(spec.sources)
        channels: Any = (in_channels,) * n_sources if isinstance(in_channels, int) else in_channels
        is_sequence = isinstance(channels, tuple | list) and len(channels) == n_sources
        if not is_sequence or not all(isinstance(one, int) for one in channels):
            numbers = "the number" if n_sources == 1 else f"a tuple of the {n_sources} numbers"
            raise OptionError(
                f'The check of "{spec}" draws inputs, but {_name(module)} has no attribute in_channels.\n'
                f"Pass in_channels=..., {numbers} of channels it takes."
            )
        tensors = (*module.parameters(), *module.buffers()) if isinstance(module, nn.Module) else ()
        home = next((one for one in tensors if one.is_floating_point()), torch.empty(0))
        dtype, device = dtype or home.dtype, home.device if device is None else torch.device(device)
        if isinstance(module, nn.Module) and (dtype, device) != (home.dtype, home.device):
            module = copy.deepcopy(module).to(dtype=dtype, device=device)
        default_rtol, default_atol = TOLERANCES.get(dtype, TOLERANCES[torch.float32])
        tolerance = default_rtol if rtol is None else rtol, default_atol if atol is None else atol
        return cls(module, spec, channels, dtype, device, seed, tolerance)

    def outputs(
        self,
        inputs: Sequence[Tensor | Padded],
        batch: tuple[int, ...],
        lengths: Mapping[str, int],
        *,
        sizes: Mapping[str, int | Tensor] | None = None,
    ) -> list[Any]:
        """Call the module, and check the shapes of its outputs.

        Random numbers start from the same seed every time and continue afterwards as if nothing was drawn; buffers,
        such as the running statistics of a batch norm, are passed as copies.

        Args:
            inputs: One for each source.
            batch: The batch axes.
            lengths: For every node set the length of its axes in the outputs.
            sizes: The sizes of node sets that no input has, if they are not the lengths; outputs may then be longer.
        """
        given = {name: (lengths if sizes is None else sizes)[name] for name in self.spec.target_only}
        options = {"sizes": given} if given else {}
        args = tuple(inputs) if _takes_one_by_one(self.module, len(inputs)) else (_one_or_tuple(inputs),)
        on_cuda = self.device.type == "cuda"
        with torch.random.fork_rng([self.device] if on_cuda else []):
            torch.default_generator.manual_seed(self.seed)
            if on_cuda:
                with torch.cuda.device(self.device):
                    torch.cuda.manual_seed(self.seed)
            if isinstance(self.module, nn.Module) and any(True for _ in self.module.buffers()):
                buffers = {name: buffer.clone() for name, buffer in self.module.named_buffers()}
                found = torch.func.functional_call(self.module, buffers, args, options)
            else:
                found = self.module(*args, **options)
        n_targets = len(self.spec.targets)
        several = [found] if n_targets == 1 else found
        kinds = (Tensor,) if sizes is None else (Tensor, Padded)
        is_sequence = isinstance(several, tuple | list) and len(several) == n_targets
        if not is_sequence or not all(isinstance(one, kinds) for one in several):
            named = " or ".join(kind.__name__ for kind in kinds)
            expected = f"a {named}" if n_targets == 1 else f"a tuple with a {named} for each of {n_targets} targets"
            raise TensorError(
                f'{_name(self.module)} as "{self.spec}": expected {expected}, got {type(found).__name__}.\n'
                "Check a function that calls the module and returns that."
            )
        for one, names in zip(several, self.spec.targets, strict=True):
            self._check_shape(tuple(one.shape), batch, [lengths[name] for name in names], or_more=sizes is not None)
        return list(several)

    def _check_shape(
        self, shape: tuple[int, ...], batch: tuple[int, ...], lengths: Sequence[int], *, or_more: bool
    ) -> None:
        pairs = zip(shape[len(batch) : -1], lengths, strict=False)
        fits = len(shape) == len(batch) + len(lengths) + 1 and shape[: len(batch)] == batch
        if not fits or any(own < length if or_more else own != length for own, length in pairs):
            shown = (*map(str, batch), *(f"{length}{' or more' * or_more}" for length in lengths), "channels")
            raise ShapeError(
                f'{_name(self.module)} does not return the shape of "{self.spec}".\n\n'
                f"    expected  ({', '.join(shown)})\n    got       {shape}"
            )

    def sizes_by_set(self, sizes: Sizes | Mapping[str, Sizes]) -> dict[str, Sizes]:
        """The sizes of every node set, from those for all or a mapping."""
        names = self.spec.node_sets
        given = sizes if isinstance(sizes, Mapping) else dict.fromkeys(names, sizes)
        if missing := [name for name in names if name not in given]:
            raise SizesError(
                f'The check of "{self.spec}" needs the sizes of every node set; there are none for '
                f"{', '.join(map(repr, missing))}."
            )
        return {name: given[name] for name in names}

    def draw(self, shape: Sequence[int], generator: torch.Generator) -> Tensor:
        """A tensor of standard normal numbers, the same on every device."""
        return torch.randn(shape, generator=generator, dtype=torch.float64).to(self.device, self.dtype)

    def compare(
        self,
        found: Tensor,
        expected: Tensor,
        claim: str,
        *,
        where: str,
        names: tuple[str, str],
        exact: bool = False,
        **facts: object,
    ) -> None:
        """Raise an `EquivarianceError` if two tensors differ by more than rounding, or at all if `exact`.

        Its message has the claim that is not true, where the tensors differ most, their two entries there with these
        names, and further facts.
        """
        difference = largest_difference(found, expected, *((0.0, 0.0) if exact else self.tolerance))
        if difference is None:
            return
        position, allowed = difference
        one, other = found[position].item(), expected[position].item()
        is_finite = isfinite(one) and isfinite(other)
        size = f"{abs(one - other):.3g}, where {allowed:.3g} is allowed" if is_finite else "not finite"
        rows = {
            "largest difference": size,
            "where": f"{where}[{', '.join(map(str, position))}]",
            names[0]: f"{one:.6g}",
            names[1]: f"{other:.6g}",
            **{name.replace("_", " "): fact for name, fact in facts.items()},
        }
        width = max(map(len, rows))
        table = "\n".join(f"    {label.ljust(width)}  {fact}" for label, fact in rows.items())
        raise EquivarianceError(f"{_name(self.module)} {claim}.\n\n{table}\n{self._hint}".rstrip())

    @property
    def _hint(self) -> str:
        """A reason that is not the module's fault: noise or batch statistics in training mode."""
        modules = self.module.modules() if isinstance(self.module, nn.Module) else ()
        kinds = (ChannelDropout, nn.modules.dropout._DropoutNd, nn.modules.batchnorm._BatchNorm)
        names = dict.fromkeys(type(part).__name__ for part in modules if isinstance(part, kinds) and part.training)
        if not names:
            return ""
        return f"\nIt is in training mode and has {', '.join(names)}: check it after module.eval() as well."


def _name(module: Module) -> str:
    """A module in one line, for messages."""
    if isinstance(module, nn.Module):
        text = repr(module)
        return text if "\n" not in text and len(text) <= 100 else type(module).__name__
    return str(getattr(module, "__name__", type(module).__name__))


def _one_or_tuple(inputs: Sequence[Any]) -> Any:
    return inputs[0] if len(inputs) == 1 else tuple(inputs)


def _takes_one_by_one(module: Module, n_tensors: int) -> bool:
    """Whether a module must have an argument for each of several tensors, as `Product` and `torch.nn.Bilinear`."""
    if isinstance(module, Product):  # it can be called with one, to raise an error about the other
        return n_tensors == 2
    try:
        parameters = inspect.signature(module.forward if isinstance(module, nn.Module) else module).parameters
    except (TypeError, ValueError):  # some functions written in C have none
        return False
    required = [one for one in parameters.values() if one.default is one.empty and one.kind in POSITIONAL]
    return len(required) == n_tensors > 1


def largest_difference(
    found: Tensor, expected: Tensor, rtol: float, atol: float
) -> tuple[tuple[int, ...], float] | None:
    """The position of the largest difference, and the allowed one; None if it is allowed, as NaN never is.

    >>> largest_difference(torch.tensor([1.0, 2.0]), torch.tensor([1.0, 2.5]), rtol=0.1, atol=0.0)
    ((1,), 0.25)
    """
    if found.numel() == 0:
        return None
    found, expected = found.detach().double().cpu(), expected.detach().double().cpu()
    apart = (found - expected).abs().nan_to_num(nan=torch.inf)
    scale = expected.nan_to_num(nan=0.0, posinf=0.0, neginf=0.0).abs().amax()
    allowed = float(atol + rtol * scale)
    if float(apart.max()) <= allowed:
        return None
    return tuple((apart == apart.max()).nonzero()[0].tolist()), allowed
