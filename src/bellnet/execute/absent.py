"""Maps that a pair of supports leaves nothing to do for: most graphs list no tuple on the diagonal.

What would be read there is zero, and what would be written there nobody asked for. The maps that are left make a
smaller plan; the gradients of the others are zero, as they would be anyway.
"""

import torch
from torch import Tensor

from bellnet.combinatorics import Partition, blocks_of
from bellnet.execute.sparse import Supports
from bellnet.execute.weights import constant
from bellnet.plan import Plan, present
from bellnet.tensors import Support
from bellnet.tensors.keeping import making_constants


def leave_out(
    plan: Plan, supports: Supports, weight: Tensor, bias: Tensor | None
) -> tuple[Plan, Tensor, Tensor | None]:
    """The plan, the weights (n_maps, in, out) and the biases (n_biases, out) without the maps that do nothing."""
    reads, writes = absent(supports.source, plan.read_patterns), absent(supports.target, plan.biases)
    if not reads and not writes:
        return plan, weight, bias
    left, maps, biases = present(plan, reads, writes)
    index = constant(("present maps", left), weight, lambda: torch.tensor(maps, device=weight.device))
    weight = weight.index_select(0, index)
    if bias is not None:
        index = constant(("present biases", left), bias, lambda: torch.tensor(biases, device=weight.device))
        bias = bias.index_select(0, index)
    return left, weight, bias


def absent(support: Support, patterns: tuple[Partition, ...]) -> frozenset[Partition]:
    """Which of these equality patterns no listed tuple has; none where nothing at all is listed."""

    def find() -> frozenset[Partition]:
        if not support.n_tuples:
            return frozenset()
        with making_constants():
            return frozenset(pattern for pattern in patterns if not _is_met(support.nodes, pattern))

    return support.once(("absent", patterns), find)


def _is_met(nodes: Tensor, pattern: Partition) -> bool:
    """Whether the nodes of some tuple agree at least as the pattern says."""
    agree = torch.ones(nodes.shape[1], dtype=torch.bool, device=nodes.device)
    for first, *others in blocks_of(pattern):
        for slot in others:
            agree &= nodes[first] == nodes[slot]
    return bool(agree.any())
