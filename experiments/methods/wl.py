"""The Weisfeiler-Lehman subtree kernel (Shervashidze et al., 2011): labels that colour refinement finds, counted."""

from collections.abc import Iterator, Sequence
from typing import Any

from bellnet.data import Graph
from experiments.methods.base import Options
from experiments.methods.kernel import Kernel


class WeisfeilerLehman(Kernel):
    """Varied in the number of rounds."""

    title = "WL"

    def usual(self) -> dict[str, Any]:
        """One to five rounds."""
        return {"depth": [1, 2, 3, 4, 5], **super().usual()}

    def variants(self, graphs: Sequence[Graph], options: Options, seed: int) -> Iterator[tuple[dict[str, Any], Any]]:
        """A kernel for every number of rounds."""
        from grakel import kernels

        for depth in options["depth"]:
            base = kernels.VertexHistogram
            yield {"depth": depth}, kernels.WeisfeilerLehman(n_iter=depth, base_graph_kernel=base, normalize=True)


METHOD = WeisfeilerLehman()
