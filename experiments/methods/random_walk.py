"""The geometric random walk kernel (Vishwanathan et al., 2010): common walks of two graphs; labels are not used."""

from collections.abc import Iterator, Sequence
from typing import Any

from bellnet.data import Graph
from bellnet.errors import DataError
from experiments.graph_data import GraphSet
from experiments.methods.base import Options
from experiments.methods.kernel import Kernel

MOST_PAIRS = 2_000_000


class RandomWalk(Kernel):
    """Varied in how much longer walks count.

    A walk of k steps counts decay^k. The sum over all walks converges if the decay is less than the inverse square of
    the largest eigenvalue of any graph; decays are parts of that.
    """

    title = "RW"

    def usual(self) -> dict[str, Any]:
        """Nearly the largest decay, and a tenth of that."""
        return {"part": [0.9, 0.09], **super().usual()}

    def check(self, graphs: GraphSet) -> None:
        """Refuse data sets with too many pairs: each of them is a system of linear equations of its own."""
        count = len(graphs.graphs)
        pairs = count * (count + 1) // 2
        if pairs > MOST_PAIRS:
            raise DataError(
                f"{graphs.name}: the random walk kernel of {count:,} graphs has {pairs:,} pairs, and each takes about "
                f"a millisecond; more than {MOST_PAIRS:,} are not begun.\nLeave the data set out of --set, or "
                "random-walk out of --method."
            )

    def variants(self, graphs: Sequence[Graph], options: Options, seed: int) -> Iterator[tuple[dict[str, Any], Any]]:
        """A kernel for every decay."""
        import numpy as np
        from grakel import kernels

        radius = 1.0
        for graph in graphs:
            adjacency = np.zeros((graph.n, graph.n))
            adjacency[tuple(graph.edge_index.numpy())] = 1.0
            radius = max([radius, *np.abs(np.linalg.eigvalsh(adjacency))])
        for part in options["part"]:
            yield {"part": part}, kernels.RandomWalk(lamda=float(part / radius**2), normalize=True)


METHOD = RandomWalk()
