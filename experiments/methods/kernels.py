"""Graph kernels of GraKeL, with scikit-learn's support vector machine.

The kernel matrix between all graphs of a data set is computed once for all of its splits: it knows no classes. The
varied option of a kernel and the penalty C of the machine are selected by cross-validation within the training graphs
of a split; the machine is then trained on all of them.
"""

import time
import warnings
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

import torch
from torch import Tensor

from bellnet.data import Graph
from bellnet.errors import DataError
from experiments.cell import Record
from experiments.graph_data import GraphSet
from experiments.methods.base import Method, Options, Task

PENALTIES = (0.01, 0.1, 1.0, 10.0, 100.0, 1000.0)
N_SPLITS = 5
MAX_PAIRS = 2_000_000
"""Pairs of graphs that the random walk kernel is computed for: each is a system of linear equations of its own."""


class Kernel(Method):
    """A kernel.

    Args:
        title: The title of its row.
        varied: The option whose values are compared.
        make: GraKeL's kernel, whose matrix is normalised, from a value, the options, a seed and the graphs.
        defaults: The usual options.
    """

    packages = ("grakel", "sklearn")

    def __init__(self, title: str, varied: str, make: Callable[..., Any], **defaults: Any) -> None:
        self.title, self.varied, self.make, self.defaults = title, varied, make, defaults

    def usual(self, name: str, options: Options | None = None) -> dict[str, Any]:
        return {**self.defaults, "C": PENALTIES, "n_splits": N_SPLITS}

    def run(self, task: Task, options: Options, record: Record) -> dict[str, Any]:
        import numpy as np
        from sklearn.model_selection import GridSearchCV, StratifiedKFold
        from sklearn.svm import SVC

        matrices, shared = _matrices(self, task.graphs, tuple(options.items()), task.seed)
        began = time.process_time()
        train = np.array([*task.parts.train, *task.parts.validation])
        test, labels = np.array(task.parts.test), task.graphs.labels.numpy()
        splits = StratifiedKFold(int(options["n_splits"]), shuffle=True, random_state=task.seed)
        searches = {}
        for value, matrix in matrices.items():
            search = GridSearchCV(SVC(kernel="precomputed"), {"C": list(options["C"])}, cv=splits)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # a class with fewer graphs than there are splits
                searches[value] = search.fit(matrix[np.ix_(train, train)], labels[train])
        best = max(searches, key=lambda value: searches[value].best_score_)
        hits = searches[best].predict(matrices[best][np.ix_(test, train)]) == labels[test]
        return {
            "accuracy": float(hits.mean()),
            "validation": float(searches[best].best_score_),
            "selected": {self.varied: best, **searches[best].best_params_},
            "kernel_seconds": round(shared, 3),
            "seconds": round(shared + time.process_time() - began, 3),
        }


@lru_cache(maxsize=1)
def _matrices(
    kernel: Kernel, graphs: GraphSet, options: tuple[tuple[str, Any], ...], seed: int
) -> tuple[dict[Any, Any], float]:
    """The matrix for every value of the varied option, and the seconds of all; the splits of a data set share them."""
    import numpy as np

    began = time.process_time()
    given, found = dict(options), {}
    for value in given[kernel.varied]:
        made = kernel.make(value, given, seed, graphs)
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            # A graph in which a kernel finds nothing has length zero, and cannot be normalised.
            found[value] = np.nan_to_num(made.fit_transform(for_grakel(graphs.graphs)))
    return found, time.process_time() - began


def for_grakel(graphs: Sequence[Graph]) -> list[Any]:
    """Graphs with labelled nodes as GraKeL takes them."""
    import grakel

    labels = (dict(enumerate(some.tolist())) for some in labels_of(graphs))
    return [grakel.Graph(_adjacency(graph), node_labels=some) for graph, some in zip(graphs, labels, strict=True)]


def _adjacency(graph: Graph) -> Any:
    matrix = torch.zeros(graph.n, graph.n, dtype=torch.float64)
    matrix[graph.edge_index[0], graph.edge_index[1]] = 1.0
    return matrix.numpy()


def labels_of(graphs: Sequence[Graph]) -> list[Tensor]:
    """A label for each node of each graph: as published if every graph has labels, its degree otherwise."""
    if all(graph.node_labels is not None and graph.node_labels.dim() == 1 for graph in graphs):
        return [graph.node_labels for graph in graphs if graph.node_labels is not None]
    return [torch.bincount(graph.edge_index[0], minlength=graph.n) for graph in graphs]


def _weisfeiler_lehman(depth: int, options: Options, seed: int, graphs: GraphSet) -> Any:
    """The subtree kernel (Shervashidze et al., 2011): counts of 1-WL labels after so many rounds."""
    from grakel import kernels

    return kernels.WeisfeilerLehman(n_iter=depth, base_graph_kernel=kernels.VertexHistogram, normalize=True)


def _graphlet(size: int, options: Options, seed: int, graphs: GraphSet) -> Any:
    """The graphlet kernel (Shervashidze et al., 2009): counts of random subgraphs of 3 to so many nodes, unlabelled."""
    from grakel.kernels import GraphletSampling

    return GraphletSampling(k=size, sampling={"n_samples": options["samples"]}, random_state=seed, normalize=True)


def _random_walk(part: float, options: Options, seed: int, graphs: GraphSet) -> Any:
    """The geometric random walk kernel (Vishwanathan et al., 2010): common walks of two graphs, unlabelled.

    A walk of k steps counts decay^k. The sum over all walks converges if the decay is less than the inverse square of
    the largest eigenvalue of any graph; decays are parts of that.
    """
    import numpy as np
    from grakel import kernels

    count = len(graphs.graphs)
    if count * (count + 1) // 2 > MAX_PAIRS:
        raise DataError(
            f"{graphs.name}: the random walk kernel of {count:,} graphs has {count * (count + 1) // 2:,} pairs, and "
            f"each takes about a millisecond; the maximum is {MAX_PAIRS:,}.\nLeave the data set out of --set, or "
            "random-walk out of --method."
        )
    radius = max([1.0, *(np.abs(np.linalg.eigvalsh(_adjacency(graph))).max(initial=0.0) for graph in graphs.graphs)])
    return kernels.RandomWalk(lamda=float(part / radius**2), normalize=True)


def _propagation(steps: int, options: Options, seed: int, graphs: GraphSet) -> Any:
    """The propagation kernel (Neumann et al., 2016): distributions of labels, spread along edges, binned, counted."""
    from grakel.kernels import Propagation

    return Propagation(t_max=steps, w=options["width"], random_state=seed, normalize=True)


wl = Kernel("WL", "depth", _weisfeiler_lehman, depth=(1, 2, 3, 4, 5))
graphlet = Kernel("GK", "size", _graphlet, size=(3, 4, 5), samples=500)
random_walk = Kernel("RW", "part", _random_walk, part=(0.9, 0.09))
propagation = Kernel("PK", "steps", _propagation, steps=(1, 2, 3, 4, 5), width=0.01)
