"""Kernels of graphs by GraKeL, with scikit-learn's support vector machine.

The kernel between all graphs of a data set is computed once and serves all of its splits: it knows no classes. What a
kernel can be varied in, and the penalty C of the machine, are chosen by cross-validation within the training graphs of
a split; the machine then learns from all of them.
"""

import time
import warnings
from abc import abstractmethod
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from bellnet.data import Graph
from bellnet.errors import DataError
from experiments.cell import Record
from experiments.graph_data import GraphSet
from experiments.methods.base import Method, Options, Task

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Matrix = NDArray[np.float64]


def labels_of(graphs: Sequence[Graph]) -> list[Tensor]:
    """A label for each node of each graph: as published if every graph has labels, its degree otherwise."""
    if all(graph.node_labels is not None and graph.node_labels.dim() == 1 for graph in graphs):
        return [graph.node_labels for graph in graphs if graph.node_labels is not None]
    return [torch.bincount(graph.edge_index[0], minlength=graph.n) for graph in graphs]


PENALTIES = (0.01, 0.1, 1.0, 10.0, 100.0, 1000.0)
CHOSEN_BY = 5
"""Parts of the training graphs between which is chosen."""


class Kernel(Method):
    """A kernel; its variants are what `variants` has, each a word for the options and one of GraKeL's kernels."""

    packages = ("grakel", "sklearn")

    def usual(self) -> dict[str, Any]:
        """The options of the machine; kernels add theirs."""
        return {"C": list(PENALTIES), "chosen_by": CHOSEN_BY}

    @abstractmethod
    def variants(self, graphs: Sequence[Graph], options: Options, seed: int) -> Iterator[tuple[dict[str, Any], Any]]:
        """What is compared: the options of each, and GraKeL's kernel, whose matrix must be normalised."""

    def check(self, graphs: GraphSet) -> None:
        """Refuse a data set that would take too long."""

    def run(self, task: Task, options: Options, record: Record) -> dict[str, Any]:
        """Choose within the training graphs, learn from all of them, classify the test graphs."""
        import numpy as np
        from sklearn.model_selection import StratifiedKFold, cross_val_score
        from sklearn.svm import SVC

        self.check(task.graphs)
        matrices, shared = _matrices(self, task.graphs, _frozen(options), task.seed)
        began = time.process_time()
        train, test = (np.array(places) for places in ([*task.parts.train, *task.parts.validation], task.parts.test))
        labels = task.graphs.labels.numpy()
        parts = StratifiedKFold(int(options["chosen_by"]), shuffle=True, random_state=task.seed)
        best: tuple[float, Any, dict[str, Any]] | None = None
        for variant, matrix in matrices:
            known = matrix[np.ix_(train, train)]
            for penalty in options["C"]:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")  # a class with fewer graphs than there are parts
                    machine = SVC(C=penalty, kernel="precomputed")
                    score = float(cross_val_score(machine, known, labels[train], cv=parts).mean())
                if best is None or score > best[0]:
                    best = (score, matrix, {**variant, "C": penalty})
        assert best is not None
        score, matrix, chosen = best
        machine = SVC(C=chosen["C"], kernel="precomputed").fit(matrix[np.ix_(train, train)], labels[train])
        hits = machine.predict(matrix[np.ix_(test, train)]) == labels[test]
        return {
            "accuracy": float(hits.mean()),
            "validation": score,
            "chosen": chosen,
            "kernel_seconds": round(shared, 3),
            "seconds": round(shared + time.process_time() - began, 3),
        }


def for_grakel(graphs: Sequence[Graph]) -> list[Any]:
    """Graphs with labelled nodes as GraKeL wants them."""
    import grakel
    import numpy as np

    found = []
    for graph, labels in zip(graphs, labels_of(graphs), strict=True):
        adjacency = np.zeros((graph.n, graph.n))
        adjacency[tuple(graph.edge_index.numpy())] = 1.0
        found.append(grakel.Graph(adjacency, node_labels=dict(enumerate(labels.tolist()))))
    return found


@lru_cache(maxsize=1)
def _matrices(
    method: Kernel, graphs: GraphSet, options: tuple[tuple[str, Any], ...], seed: int
) -> tuple[list[tuple[dict[str, Any], Any]], float]:
    """The matrix of every variant, and the seconds that all took; the last are kept, since all splits share them."""
    import numpy as np

    began = time.process_time()
    found = []
    for variant, kernel in method.variants(graphs.graphs, dict(options), seed):
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            # A graph in which a kernel finds nothing has length zero, and cannot be normalised.
            found.append((variant, np.nan_to_num(kernel.fit_transform(for_grakel(graphs.graphs)))))
    return found, time.process_time() - began


def _frozen(options: Options) -> tuple[tuple[str, Any], ...]:
    return tuple((name, tuple(value) if isinstance(value, list) else value) for name, value in options.items())


class WeisfeilerLehman(Kernel):
    """The subtree kernel (Shervashidze et al., 2011): counts of 1-WL labels; varied in the number of rounds."""

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


class Graphlet(Kernel):
    """The graphlet kernel (Shervashidze et al., 2009): small subgraphs, drawn at random, counted, without labels.

    Varied in the largest size: of size k, subgraphs of 3 to k nodes are drawn.
    """

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


MOST_PAIRS = 2_000_000


class RandomWalk(Kernel):
    """The geometric random walk kernel (Vishwanathan et al., 2010): common walks of two graphs, without labels.

    Varied in how much longer walks count.

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


class Propagation(Kernel):
    """The propagation kernel (Neumann et al., 2016): distributions of labels, spread along edges, binned and counted.

    Varied in the number of steps.
    """

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
