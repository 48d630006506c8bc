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

from bellnet.data import Graph
from experiments.cell import Record
from experiments.graph_data import GraphSet
from experiments.methods.base import Method, Options, Task
from experiments.methods.node_labels import labels_of

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Matrix = NDArray[np.float64]

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
