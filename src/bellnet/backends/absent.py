"""Maps that a pair of supports leaves nothing to do for: most graphs list no tuple on the diagonal.

What would be read there is zero, and what would be written there nobody asked for. The maps that are left make a
smaller plan; the gradients of the others are zero, as they would be anyway.
"""

from collections.abc import Sequence

import torch
from torch import Tensor

from bellnet.combinatorics import Partition, blocks_of
from bellnet.plan import Plan, RestrictedPlan, restrict
from bellnet.tensors import Support


def what_is_left(plan: Plan, sources: Sequence[Support], targets: Sequence[Support]) -> RestrictedPlan:
    """The maps of a plan that have something to do between these supports."""
    absent_source, absent_target = (
        tuple(absent(support, patterns) for support, patterns in zip(supports, known, strict=True))
        for supports, known in ((sources, plan.source_patterns), (targets, plan.bias_patterns))
    )
    return restrict(plan, absent_source, absent_target)


def absent(support: Support, patterns: tuple[Partition, ...]) -> frozenset[Partition]:
    """Which of these equality patterns no listed tuple has; none where nothing at all is listed."""

    def find() -> frozenset[Partition]:
        if not support.nnz:
            return frozenset()
        return frozenset(pattern for pattern in patterns if not _is_met(support.nodes, pattern))

    return support.cached(("absent", patterns), find)


def _is_met(nodes: Tensor, pattern: Partition) -> bool:
    """Whether the nodes of some tuple agree at least as the pattern says."""
    agree = torch.ones(nodes.shape[1], dtype=torch.bool, device=nodes.device)
    for first, *others in blocks_of(pattern):
        for slot in others:
            agree &= nodes[first] == nodes[slot]
    return bool(agree.any())
