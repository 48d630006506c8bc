"""The graphlet kernel (Shervashidze et al., 2009): small subgraphs, drawn at random, counted; labels are not used."""

from collections.abc import Iterator, Sequence
from typing import Any

from bellnet.data import Graph
from experiments.methods.base import Options
from experiments.methods.kernel import Kernel


class Graphlet(Kernel):
    """Varied in the largest size: of size k, subgraphs of 3 to k nodes are drawn."""

    title = "GK"

    def usual(self) -> dict[str, Any]:
        """Up to three, four or five nodes; 500 subgraphs of each graph."""
        return {"size": [3, 4, 5], "samples": 500, **super().usual()}

    def variants(self, graphs: Sequence[Graph], options: Options, seed: int) -> Iterator[tuple[dict[str, Any], Any]]:
        """A kernel for every largest size."""
        from grakel.kernels import GraphletSampling

        for size in options["size"]:
            sampling = {"n_samples": options["samples"]}
            yield {"size": size}, GraphletSampling(k=size, sampling=sampling, random_state=seed, normalize=True)


METHOD = Graphlet()
