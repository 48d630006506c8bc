"""Renumbering the nodes of a tensor, and the renumberings that a check tries."""

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor

from bellnet.errors import ShapeError
from bellnet.spec import parse_shape

Permutation = Sequence[int] | Tensor
"""Where every node goes: node i becomes node permutation[i]."""


def relabel(x: Tensor, shape: str | tuple[str, ...], permutations: Permutation | Mapping[str, Permutation]) -> Tensor:
    """Renumber the nodes of a tensor: what stood at node i stands at node permutation[i] afterwards.

    Args:
        x: (*batch, one axis for each slot, channels), any number of batch axes.
        shape: The node set of every slot: "n n", or one side of a spec, `spec.source`.
        permutations: A permutation for each node set, or just one if there is one node set. Node sets without a
            permutation stay as they are.

    >>> relabel(torch.tensor([[10.0], [11.0], [12.0]]), "n", [2, 0, 1]).flatten()
    tensor([11., 12., 10.])
    >>> relabel(torch.tensor([[1.0, 2.0], [3.0, 4.0]]).unsqueeze(-1), "u i", {"i": [1, 0]}).squeeze(-1)
    tensor([[2., 1.],
            [4., 3.]])
    """
    names = parse_shape(shape) if isinstance(shape, str) else shape
    n_batch = x.ndim - len(names) - 1
    if n_batch < 0:
        raise ShapeError(
            f'relabel(x, "{" ".join(names)}", ...): {len(names)} node axes and the channels need at least '
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
            f'relabel(x, "{" ".join(names)}", ...): there are several node sets, so say which of them the permutation '
            f"renumbers: {{{', '.join(f'{name!r}: ...' for name in dict.fromkeys(names))}}}."
        )
    return dict.fromkeys(names, permutations)


def _inverse(names: tuple[str, ...], name: str, permutation: Permutation, length: int) -> Tensor:
    target = torch.as_tensor(permutation, dtype=torch.long).cpu()
    if target.ndim != 1 or not torch.equal(target.sort().values, torch.arange(length)):
        raise ShapeError(
            f'relabel(x, "{" ".join(names)}", ...): node set {name!r} has {length} nodes, so its permutation must hold '
            f"each of 0, ..., {length - 1} once, but it is {target.tolist()}."
        )
    return target.argsort()
