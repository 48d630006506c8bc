"""Large tensors a piece at a time, along their first node axis.

Chunks of graphs stay in the cache while they are walked through. A graph that is larger than a chunk cannot; but what
is added up in one tensor can at least be begun, multiplied into and finished for some of its rows before the next.
"""

from collections.abc import Sequence
from math import gcd

from torch import Tensor

PIECE_BYTES = 2**21
ROWS_TOGETHER = 8
"""Pieces have a multiple of so many rows, but perhaps the last: narrow products take several rows for one."""


def pieces(whole: Tensor, *others: Tensor) -> Sequence[tuple[Tensor, ...]]:
    """Tensors (1, nodes, ...) cut at the same nodes, or (graphs, nodes, ...) as they are.

    Args:
        whole: The first of them; its size says how many pieces there are.
        others: What is cut with it; axes of length one, which are repeated, are left as they are.
    """
    n_graphs, n_nodes = whole.shape[:2]
    n_bytes = whole.numel() * whole.element_size()
    if n_graphs != 1 or n_bytes <= 2 * PIECE_BYTES:
        return ((whole, *others),)
    rows_of_node = whole.numel() // (n_nodes * whole.shape[-1])
    several = ROWS_TOGETHER // gcd(ROWS_TOGETHER, rows_of_node)
    step = -(-PIECE_BYTES * n_nodes // (n_bytes * several)) * several
    return [
        tuple(one if one.shape[1] == 1 else one[:, start : start + step] for one in (whole, *others))
        for start in range(0, n_nodes, step)
    ]
