"""The propagation kernel (Neumann et al., 2016): distributions of labels, spread along edges, binned and counted."""

from collections.abc import Iterator, Sequence
from typing import Any

from bellnet.data import Graph
from experiments.methods.base import Options
from experiments.methods.kernel import Kernel


class Propagation(Kernel):
    """Varied in the number of steps."""

    title = "PK"

    def usual(self) -> dict[str, Any]:
        """One to five steps; bins of the width that GraKeL has."""
        return {"steps": [1, 2, 3, 4, 5], "width": 0.01, **super().usual()}

    def variants(self, graphs: Sequence[Graph], options: Options, seed: int) -> Iterator[tuple[dict[str, Any], Any]]:
        """A kernel for every number of steps."""
        from grakel import kernels

        for steps in options["steps"]:
            yield (
                {"steps": steps},
                kernels.Propagation(t_max=steps, w=options["width"], random_state=seed, normalize=True),
            )


METHOD = Propagation()
