"""Whether a module commutes with permutations of the nodes.

Permute the nodes of the input and call the module, or call the module and permute the nodes of its output: the results
must agree. Nodes of a set that only the target has cannot be permuted in the input, so there the output itself must not
change.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from bellnet.errors import OptionError, ShapeError, SpecError
from bellnet.spec import Spec, parse_shape, parse_spec, text_of
from bellnet.testing.subject import Module, Subject

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
    """Raise an `EquivarianceError` if a module does not commute with permutations of the nodes.

    Torch's random numbers start from the same seed in every call of the module and are restored afterwards; buffers
    are left as they were. Noise that is drawn for each node (dropout in training mode) is not permuted with the nodes,
    so check such a module after `module.eval()`.

    Args:
        module: Takes (*batch, one axis for each source slot, channels) to (*batch, one axis for each target slot,
            channels). It is called with `sizes={...}` if the target has node sets that the source has not.
        spec: The node sets of source and target, for instance "n n -> n". Of several tensors, "n n, n -> n n, n", the
            module takes, and returns, a tuple; one with an argument for each of them, as `Product`, gets them apart.
        in_channels: The number of channels of the input, or a tuple of them; `module.in_channels` if not given.
        sizes: The number of nodes, of all node sets or of each. If not given, a different small number for each
            node set, and then a single node for each.
        batch: The batch axes of the input.
        trials: The number of permutations: a cycle through all nodes, an exchange of two nodes, then any.
        seed: The seed of the random inputs and permutations.
        rtol: The allowed rounding, relative to the largest entry of the output; by default as suits dtype.
        atol: The rounding that is allowed in any case; by default as suits dtype.
        dtype: The dtype of the check; the module's own if not given, otherwise a copy of the module is converted.
            float64 makes the check sharper.
        device: The device of the check; the module's own if not given, otherwise a copy of the module is moved.

    >>> assert_equivariant(lambda x: x - x.mean(-2, keepdim=True), "n -> n", in_channels=3)
    >>> assert_equivariant(lambda x: x.cumsum(-2), "n -> n", in_channels=3)  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ...
    bellnet.errors.EquivarianceError: <lambda> is not equivariant as "n -> n".
    ...
    """
    spec = parse_spec(spec)
    subject = Subject.of(
        module, spec, in_channels=in_channels, dtype=dtype, device=device, seed=seed, rtol=rtol, atol=atol
    )
    if trials < 1:
        raise OptionError(f"trials must be 1 or more, not {trials!r}: without a trial nothing is checked.")
    is_invariant = spec.targets == ((),)
    claim = f'is not invariant over "{text_of(spec.sources)}"' if is_invariant else f'is not equivariant as "{spec}"'
    different = {name: 5 + number for number, name in enumerate(spec.node_sets)}
    cases = [different, dict.fromkeys(different, 1)] if sizes is None else [subject.sizes_by_set(sizes)]
    generator = torch.Generator().manual_seed(seed)
    for case in cases:
        pairs = zip(spec.sources, subject.channels, strict=True)
        shapes = [(*batch, *(case[name] for name in shape), channels) for shape, channels in pairs]
        for trial in range(trials):
            x = [subject.draw(shape, generator) for shape in shapes]
            permutations = draw_permutations(case, trial, generator)
            permuted = [permute_nodes(one, shape, permutations) for one, shape in zip(x, spec.sources, strict=True)]
            before, after = (subject.outputs(inputs, batch, case) for inputs in (x, permuted))
            for number, (found, was, shape) in enumerate(zip(after, before, spec.targets, strict=True)):
                subject.compare(
                    found,
                    permute_nodes(was, shape, permutations),
                    claim,
                    where="output" + f"[{number}]" * (len(after) > 1),
                    names=("permuted, then called", "called, then permuted"),
                    sizes=case,
                    permutation={name: one.tolist() for name, one in permutations.items()},
                    to_reproduce=f"seed={seed}, trial {trial + 1} of {trials}",
                )


def assert_invariant(module: Module, shape: str | Spec, **options: Any) -> None:
    """Raise an `EquivarianceError` if the output of a module changes when the nodes are permuted.

    Args:
        module: Takes (*batch, one axis for each slot, channels) to (*batch, channels).
        shape: The node set of every slot of the input, "n n", or the same as a spec, "n n ->".
        options: Those of `assert_equivariant`.

    >>> assert_invariant(lambda x: x.amax((-3, -2)), "n n", in_channels=3)
    """
    spec = parse_spec(f"{shape} ->" if isinstance(shape, str) and "->" not in shape else shape)
    if spec.targets != ((),):
        raise SpecError(
            f'assert_invariant(module, "{spec}"): an invariant module has no nodes in its output, but this target is '
            f'"{text_of(spec.targets)}".\nWrite "{text_of(spec.sources)}", or call assert_equivariant.'
        )
    assert_equivariant(module, spec, **options)


def permute_nodes(
    x: Tensor, shape: str | tuple[str, ...], permutations: Permutation | Mapping[str, Permutation]
) -> Tensor:
    """Permute the nodes of a tensor: what stood at node i stands at node permutation[i] afterwards.

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
    call, n_batch = f'permute_nodes(x, "{" ".join(names)}", ...)', x.ndim - len(names) - 1
    if n_batch < 0:
        raise ShapeError(
            f"{call}: {len(names)} node axes and the channels need at least {len(names) + 1} axes, but the shape of x "
            f"is {tuple(x.shape)}."
        )
    if not isinstance(permutations, Mapping):
        if len(set(names)) > 1:
            raise ShapeError(
                f"{call}: there are several node sets, so pass a permutation for each: "
                f"{{{', '.join(f'{name!r}: ...' for name in dict.fromkeys(names))}}}."
            )
        permutations = dict.fromkeys(names, permutations)
    for axis, name in enumerate(names, n_batch):
        if name in permutations:
            target, length = torch.as_tensor(permutations[name], dtype=torch.long).cpu(), x.shape[axis]
            if target.ndim != 1 or not torch.equal(target.sort().values, torch.arange(length)):
                raise ShapeError(
                    f"{call}: node set {name!r} has {length} nodes, so its permutation must hold each of 0, ..., "
                    f"{length - 1} once, but it is {target.tolist()}."
                )
            x = x.index_select(axis, target.argsort().to(x.device))
    return x


def draw_permutations(sizes: Mapping[str, int], trial: int, generator: torch.Generator) -> dict[str, Tensor]:
    """A permutation for each node set: first a cycle through all nodes, then an exchange of two, then any.

    The first two generate all permutations, so what commutes with them commutes with every permutation; and the
    cycle moves every node, so a module that singles out one node is found by it.
    """
    permutations = {}
    for name, size in sizes.items():
        order, permutation = torch.randperm(size, generator=generator), torch.arange(size)
        if size > 1 and trial == 0:
            permutation[order] = order.roll(-1)
        elif size > 1 and (trial == 1 or bool((order == permutation).all())):
            permutation[order[:2]] = order[:2].flip(0)
        else:
            permutation = order
        permutations[name] = permutation
    return permutations
