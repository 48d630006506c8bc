"""Whether a module commutes with renumbering the nodes.

Renumber the input and call the module, or call the module and renumber its output: it must not matter. A node set
that only the target has cannot be renumbered in the input, so there the output alone must not change.
"""

from collections.abc import Mapping

import torch

from bellnet.errors import SpecError
from bellnet.spec import Spec, parse_spec, text_of
from bellnet.testing.compare import Tolerance
from bellnet.testing.renumber import check_renumbering
from bellnet.testing.subject import Module, Subject


def assert_equivariant(
    module: Module,
    spec: str | Spec,
    *,
    in_channels: int | tuple[int, ...] | None = None,
    sizes: int | Mapping[str, int] | None = None,
    batch: tuple[int, ...] = (2,),
    trials: int = 3,
    seed: int = 0,
    rtol: float | None = None,
    atol: float | None = None,
    dtype: torch.dtype | None = None,
    device: torch.device | str | None = None,
) -> None:
    """Raise an `EquivarianceError` if a module does not commute with renumbering the nodes.

    Torch's random numbers start from the same seed in every call of the module and are put back afterwards; buffers
    are left as they were. Noise that is drawn for each node (dropout in training mode) is not renumbered with the
    nodes, so check such a module after `module.eval()`.

    Args:
        module: Takes (*batch, one axis for each source slot, channels) to (*batch, one axis for each target slot,
            channels). It is called with `sizes={...}` if the target has node sets that the source has not.
        spec: The node sets of source and target, for instance "n n -> n". Of several tensors, "n n, n -> n n, n", the
            module takes, and returns, a tuple; one with an argument for each of them, as `Product`, gets them apart.
        in_channels: The number of channels of the input, or a tuple of them; `module.in_channels` if not given.
        sizes: The number of nodes, of all node sets or of each. If not given, a different small number for each
            node set, and then a single node for each.
        batch: The batch axes of the input.
        trials: How many renumberings to try: a cycle through all nodes, an exchange of two nodes, then any.
        seed: Where the random inputs and renumberings come from.
        rtol: The rounding that is allowed, relative to the largest entry of the output; by default as suits dtype.
        atol: The rounding that is allowed in any case; by default as suits dtype.
        dtype: The type to check in; the module's own if not given, otherwise a copy of the module is converted.
            float64 makes the check sharper.
        device: The device to check on; the module's own if not given, otherwise a copy of the module is moved.

    >>> assert_equivariant(lambda x: x - x.mean(-2, keepdim=True), "n -> n", in_channels=3)
    >>> assert_equivariant(lambda x: x.cumsum(-2), "n -> n", in_channels=3)  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ...
    bellnet.errors.EquivarianceError: <lambda> is not equivariant as "n -> n".
    ...
    """
    spec = parse_spec(spec)
    subject = Subject.of(
        "assert_equivariant", module, spec, in_channels=in_channels, dtype=dtype, device=device, seed=seed
    )
    tolerance = Tolerance.choose(subject.dtype, rtol, atol)
    check_renumbering(
        subject, f'is not equivariant as "{spec}"', sizes=sizes, batch=batch, trials=trials, tolerance=tolerance
    )


def assert_invariant(
    module: Module,
    shape: str | Spec,
    *,
    in_channels: int | tuple[int, ...] | None = None,
    sizes: int | Mapping[str, int] | None = None,
    batch: tuple[int, ...] = (2,),
    trials: int = 3,
    seed: int = 0,
    rtol: float | None = None,
    atol: float | None = None,
    dtype: torch.dtype | None = None,
    device: torch.device | str | None = None,
) -> None:
    """Raise an `EquivarianceError` if what a module says of a graph changes when its nodes are renumbered.

    Args:
        module: Takes (*batch, one axis for each slot, channels) to (*batch, channels).
        shape: The node set of every slot of the input, "n n", or the same as a spec, "n n ->".
        in_channels: As for `assert_equivariant`, like all that follow.
        sizes: The number of nodes.
        batch: The batch axes of the input.
        trials: How many renumberings to try.
        seed: Where the random inputs and renumberings come from.
        rtol: The rounding that is allowed, relative to the largest entry of the output.
        atol: The rounding that is allowed in any case.
        dtype: The type to check in.
        device: The device to check on.

    >>> assert_invariant(lambda x: x.amax((-3, -2)), "n n", in_channels=3)
    """
    is_shape = isinstance(shape, str) and "->" not in shape
    spec = parse_spec(f"{shape} ->" if is_shape else shape)
    source, target = text_of(spec.sources), text_of(spec.targets)
    if spec.targets != ((),):
        raise SpecError(
            f'assert_invariant(module, "{spec}"): an invariant module has no nodes in its output, but this target is '
            f'"{target}".\nWrite "{source}", or call assert_equivariant.'
        )
    subject = Subject.of(
        "assert_invariant", module, spec, in_channels=in_channels, dtype=dtype, device=device, seed=seed
    )
    tolerance = Tolerance.choose(subject.dtype, rtol, atol)
    check_renumbering(
        subject,
        f'is not invariant over "{source}"',
        sizes=sizes,
        batch=batch,
        trials=trials,
        tolerance=tolerance,
    )
