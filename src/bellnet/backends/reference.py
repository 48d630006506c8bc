"""The oracle: every basis tensor written out from its definition, and nothing clever.

A basis tensor has one axis for each slot, source slots first, and holds ones and zeros: for an orbit, one where the
indices have exactly the equalities of the partition; for a diagram, one where they have at least those. Slow, and so
simple that it can be believed. It is what every executor is compared with.
"""

from collections.abc import Mapping
from itertools import permutations, product

import torch
from torch import Tensor

from bellnet.combinatorics import Partition, canonical
from bellnet.plan import Plan


def indicator(partition: Partition, lengths: tuple[int, ...], sets: tuple[int, ...], *, exact: bool) -> Tensor:
    """One where the indices agree as the partition says; `exact` forbids any further agreement.

    Args:
        partition: Which slots agree.
        lengths: The length of every slot's axis.
        sets: The node set of every slot; indices of different node sets never agree.
        exact: Whether to demand exactly these equalities (an orbit) or at least these (a diagram).
    """
    tensor = torch.zeros(lengths, dtype=torch.float64)
    for indices in product(*map(range, lengths)):
        pattern = canonical(zip(sets, indices, strict=True))
        agrees = len(set(zip(partition, pattern, strict=True))) == len(set(partition))
        if pattern == partition if exact else agrees:
            tensor[indices] = 1
    return tensor


def basis_tensors(plan: Plan, sizes: Mapping[str, int], *, basis: str) -> Tensor:
    """All basis tensors, stacked: (n_maps, one axis for each slot)."""
    lengths = tuple(sizes[name] for name in plan.spec.slots)
    sets = sum(plan.spec.set_numbers, ())
    tensors = [indicator(d.partition, lengths, sets, exact=basis == "orbit") for d in plan.diagrams]
    return _averaged(torch.stack(tensors), plan, 1 + len(plan.spec.source))


def bias_tensors(plan: Plan, sizes: Mapping[str, int], *, basis: str) -> Tensor:
    """All constant maps, stacked: (n_biases, one axis for each target slot)."""
    lengths = tuple(sizes[name] for name in plan.spec.target)
    sets = plan.spec.set_numbers[1]
    tensors = [indicator(partition, lengths, sets, exact=basis == "orbit") for partition in plan.biases]
    return _averaged(torch.stack(tensors), plan, 1)


def _averaged(tensors: Tensor, plan: Plan, first: int) -> Tensor:
    """The average over all exchanges of unordered target slots, whose axes begin at the first."""
    for group in plan.spec.constants().unordered:
        exchanged = []
        for order in permutations(group):
            axes = list(range(tensors.ndim))
            for slot, other in zip(group, order, strict=True):
                axes[first + slot] = first + other
            exchanged.append(tensors.permute(axes))
        tensors = torch.stack(exchanged).mean(0)
    return tensors


def n_terms(plan: Plan, sizes: Mapping[str, int]) -> list[int]:
    """For every diagram the number of terms it sums, counting a sum over nothing as one term."""
    by_number = [sizes[name] for name in plan.spec.node_sets]
    counts = []
    for diagram in plan.diagrams:
        terms = 1
        for block in diagram.contraction.dropped:
            terms *= max(by_number[diagram.contraction.set_of_block[block]], 1)
        counts.append(terms)
    return counts


def apply(
    plan: Plan,
    tensor: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    sizes: Mapping[str, int],
    *,
    basis: str = "diagram",
    normalize: str = "sum",
) -> Tensor:
    """The layer on a tensor (*batch, *source, in_channels), by contracting with the basis tensors."""
    maps = basis_tensors(plan, sizes, basis=basis).to(tensor)
    if normalize == "mean":
        terms = torch.tensor(n_terms(plan, sizes)).to(tensor)
        maps = maps / terms.reshape(-1, *[1] * (maps.ndim - 1))
    source = maps.shape[1 : 1 + len(plan.spec.source)]
    target = maps.shape[1 + len(plan.spec.source) :]
    batch = tensor.shape[: tensor.ndim - len(source) - 1]
    maps = maps.reshape(plan.n_maps, source.numel(), target.numel())
    flat = tensor.reshape(*batch, source.numel(), tensor.shape[-1])
    result = torch.einsum("...ai,mab,mio->...bo", flat, maps, weight)
    result = result.reshape(*batch, *target, weight.shape[-1])
    if bias is not None:
        result = result + torch.einsum("m...,mo->...o", bias_tensors(plan, sizes, basis=basis).to(bias), bias)
    return result
