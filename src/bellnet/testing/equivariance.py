"""Whether a module commutes with permutations of the nodes.

Permute the nodes of the input and call the module, or call the module and permute the nodes of its output: the results
must agree. Nodes of a set that only the target has cannot be permuted in the input, so there the output itself must not
change.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from bellnet.errors import OptionError, ShapeError, SizesError, SpecError, TensorError
from bellnet.spec import Spec, parse_shape, parse_spec, text_of
from bellnet.testing.subject import Module, Subject, Tolerance, difference, failure, name_of

Permutation = Sequence[int] | Tensor
"""Where every node goes: node i becomes node permutation[i]."""


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


def permute_nodes(
    x: Tensor, shape: str | tuple[str, ...], permutations: Permutation | Mapping[str, Permutation]
) -> Tensor:
    """Renumber the nodes of a tensor: what stood at node i stands at node permutation[i] afterwards.

    Args:
        x: (*batch, one axis for each slot, channels), any number of batch axes.
        shape: The node set of every slot: "n n", or one side of a spec, `spec.source`.
        permutations: A permutation for each node set, or just one if there is one node set. Node sets without a
            permutation stay as they are.

    >>> permute_nodes(torch.tensor([[10.0], [11.0], [12.0]]), "n", [2, 0, 1]).flatten()
    tensor([11., 12., 10.])
    >>> permute_nodes(torch.tensor([[1.0, 2.0], [3.0, 4.0]]).unsqueeze(-1), "u i", {"i": [1, 0]}).squeeze(-1)
    tensor([[2., 1.],
            [4., 3.]])
    """
    names = parse_shape(shape) if isinstance(shape, str) else shape
    n_batch = x.ndim - len(names) - 1
    if n_batch < 0:
        raise ShapeError(
            f'permute_nodes(x, "{" ".join(names)}", ...): {len(names)} node axes and the channels need at least '
            f"{len(names) + 1} axes, but the shape of x is {tuple(x.shape)}."
        )
    by_name = _by_name(names, permutations)
    for axis, name in enumerate(names, n_batch):
        if name in by_name:
            x = x.index_select(axis, _inverse(names, name, by_name[name], x.shape[axis]).to(x.device))
    return x


def draw_renumbering(sizes: Mapping[str, int], trial: int, generator: torch.Generator) -> dict[str, Tensor]:
    """A permutation for each node set: first a cycle through all nodes, then an exchange of two, then any.

    The first two generate all permutations, so what commutes with them commutes with every renumbering; and the
    cycle moves every node, so a module that singles out one node is found by it.
    """
    return {name: _draw(size, trial, generator) for name, size in sizes.items()}


def _draw(size: int, trial: int, generator: torch.Generator) -> Tensor:
    order = torch.randperm(size, generator=generator)
    permutation = torch.arange(size)
    if size < 2:
        return permutation
    if trial == 0:
        permutation[order] = order.roll(-1)
    elif trial == 1 or bool((order == permutation).all()):
        permutation[order[:2]] = order[:2].flip(0)
    else:
        permutation = order
    return permutation


def _by_name(
    names: tuple[str, ...], permutations: Permutation | Mapping[str, Permutation]
) -> Mapping[str, Permutation]:
    if isinstance(permutations, Mapping):
        return permutations
    if len(set(names)) > 1:
        raise ShapeError(
            f'permute_nodes(x, "{" ".join(names)}", ...): there are several node sets, so pass a permutation for '
            f"each: {{{', '.join(f'{name!r}: ...' for name in dict.fromkeys(names))}}}."
        )
    return dict.fromkeys(names, permutations)


def _inverse(names: tuple[str, ...], name: str, permutation: Permutation, length: int) -> Tensor:
    target = torch.as_tensor(permutation, dtype=torch.long).cpu()
    if target.ndim != 1 or not torch.equal(target.sort().values, torch.arange(length)):
        raise ShapeError(
            f'permute_nodes(x, "{" ".join(names)}", ...): node set {name!r} has {length} nodes, so its permutation '
            f"must hold each of 0, ..., {length - 1} once, but it is {target.tolist()}."
        )
    return target.argsort()


def check_renumbering(
    subject: Subject,
    claim: str,
    *,
    sizes: int | Mapping[str, int] | None,
    batch: tuple[int, ...],
    trials: int,
    tolerance: Tolerance,
) -> None:
    """Raise an error that says `claim` if the subject does not commute with some renumbering."""
    if trials < 1:
        raise OptionError(f"trials must be 1 or more, not {trials!r}: without a trial nothing is checked.")
    spec = subject.spec
    generator = torch.Generator().manual_seed(subject.seed)
    for case in _cases(subject, sizes):
        pairs = zip(spec.sources, subject.channels, strict=True)
        shapes = [(*batch, *(case[name] for name in shape), channels) for shape, channels in pairs]
        for trial in range(trials):
            x = [subject.draw(shape, generator) for shape in shapes]
            permutations = draw_renumbering(case, trial, generator)
            before = _outputs(subject, x, case, batch)
            moved = [permute_nodes(one, shape, permutations) for one, shape in zip(x, spec.sources, strict=True)]
            found = _outputs(subject, moved, case, batch)
            for number, (one, was) in enumerate(zip(found, before, strict=True)):
                wrong = difference(one, permute_nodes(was, spec.targets[number], permutations), tolerance)
                if wrong is None:
                    continue
                place = f"[{number}]" * (len(found) > 1) + f"[{', '.join(map(str, wrong.place))}]"
                facts = [
                    ("largest difference", str(wrong)),
                    ("where", f"output{place}"),
                    ("renumbered, then called", f"{wrong.found:.6g}"),
                    ("called, then renumbered", f"{wrong.expected:.6g}"),
                    ("sizes", str(case)),
                    ("renumbering", str({name: one.tolist() for name, one in permutations.items()})),
                    ("to reproduce", f"seed={subject.seed}, trial {trial + 1} of {trials}"),
                ]
                raise failure(subject, claim, facts)


def _cases(subject: Subject, sizes: int | Mapping[str, int] | None) -> list[dict[str, int]]:
    names = subject.spec.node_sets
    if sizes is None:
        different = {name: 5 + number for number, name in enumerate(names)}
        return [different, dict.fromkeys(names, 1)]
    given = dict.fromkeys(names, sizes) if isinstance(sizes, int) else dict(sizes)
    if missing := [name for name in names if name not in given]:
        raise SizesError(
            f'The check of "{subject.spec}" needs the size of every node set; there is none for '
            f"{', '.join(map(repr, missing))}."
        )
    return [{name: given[name] for name in names}]


def _outputs(subject: Subject, x: list[Tensor], sizes: dict[str, int], batch: tuple[int, ...]) -> list[Tensor]:
    targets = subject.spec.targets
    given = x[0] if len(x) == 1 else tuple(x)
    found: Any = subject(given, {name: sizes[name] for name in subject.spec.target_only})
    several = [found] if len(targets) == 1 else found
    if not isinstance(several, tuple | list) or not all(isinstance(one, Tensor) for one in several):
        wanted = "the one tensor" if len(targets) == 1 else f"a tuple of the {len(targets)} tensors"
        raise TensorError(
            f"{name_of(subject.module)} returned a {type(found).__name__}, but the check compares tensors.\n"
            f"Wrap the module in a function that returns {wanted} to check."
        )
    expected = [(*batch, *(sizes[name] for name in shape)) for shape in targets]
    fits = len(several) == len(targets) and all(
        one.ndim == len(shape) + 1 and tuple(one.shape[:-1]) == shape
        for one, shape in zip(several, expected, strict=True)
    )
    if not fits:
        raise ShapeError(
            f'{name_of(subject.module)} does not return what "{subject.spec}" says.\n\n'
            f"    given     {', '.join(str(tuple(one.shape)) for one in x)}\n"
            f"    expected  {', '.join(_shown(shape) for shape in expected)}\n"
            f"    got       {', '.join(str(tuple(one.shape)) for one in several)}"
        )
    return list(several)


def _shown(shape: tuple[int, ...]) -> str:
    return f"({', '.join([*map(str, shape), 'channels'])})"
