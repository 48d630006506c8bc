"""1-WL (colour refinement) features: the counts of colours in a graph, and a linear model on them.

A colour is a 64-bit hash. At depth 0 it is that of a node's labels, or of its degrees where nodes have no labels; at
depth d + 1 that of a node's colour and the multiset of its edges' labels and their ends' colours. A multiset is hashed
by the wrapped sum of the mixed hashes of its elements, so all nodes of all graphs are refined in one array operation,
and the colours of a graph depend on nothing but that graph. The columns are the colours of the training graphs.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.special import log_softmax
from sklearn.linear_model import LogisticRegression, Ridge

from bellnet.data import Graph

Ints = NDArray[np.int64]
Hashes = NDArray[np.uint64]
Floats = NDArray[np.float64]

DEPTHS = (2, 3, 4, 5)
PENALTIES = (1.0, 3.0, 10.0, 30.0, 100.0)
"""The inverse of the strength of regularisation, between which cross-validation chooses."""
N_SPLITS = 3
ABSENT = -20.0
"""The logit of a class that a part of the graphs lacks."""
MAX_VALUES = 16
"""A feature with at most so many values in the training graphs is a label."""
N_BINS = 4
"""Quantile bins of any other feature."""
CHUNK = 2**21
"""Edges and nodes that are refined at once."""
_STEP, _FIRST, _SECOND = (np.uint64(value) for value in (0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB))


@dataclass(frozen=True)
class Alphabet:
    """What the colours of depth 0 and the kinds of edges are made from.

    Attributes:
        node_labels: The number of columns of node labels.
        edge_labels: The same of edge labels.
        node_bins: For every node feature the sorted boundaries between its bins, or None where it is not used.
        edge_bins: The same for every edge feature.
        directed: Whether an edge looks different from its two ends.
    """

    node_labels: int
    edge_labels: int
    node_bins: tuple[Floats | None, ...]
    edge_bins: tuple[Floats | None, ...]
    directed: bool

    @classmethod
    def fit(cls, graphs: Sequence[Graph], *, continuous: bool) -> "Alphabet":
        """That of the training graphs; features with many values are put into bins if `continuous`, or not used."""
        node_bins, edge_bins = (
            tuple(_boundaries(column, continuous) for column in _rows(graphs, name, _width(graphs, name)).T)
            for name in ("node_features", "edge_features")
        )
        return cls(
            node_labels=_width(graphs, "node_labels"),
            edge_labels=_width(graphs, "edge_labels"),
            node_bins=node_bins,
            edge_bins=edge_bins,
            directed=any(graph.directed for graph in graphs),
        )

    def labels(self, graphs: Sequence[Graph], owner: str) -> Ints:
        """The labels of all nodes or edges, and the bins of their features: a row for each."""
        n_labels, bins = (self.node_labels, self.node_bins) if owner == "node" else (self.edge_labels, self.edge_bins)
        features = _rows(graphs, f"{owner}_features", len(bins)).T
        binned = [np.searchsorted(each, row) for each, row in zip(bins, features, strict=True) if each is not None]
        return np.column_stack([_rows(graphs, f"{owner}_labels", n_labels), *binned]).astype(np.int64)


@dataclass(frozen=True)
class Colours:
    """The colours of all nodes of some graphs at every depth.

    Attributes:
        hashes: (depth + 1, nodes); the bits of the hashes as int64.
        graph: The graph of every node.
        n_graphs: The number of graphs.
    """

    hashes: Ints
    graph: Ints
    n_graphs: int

    @classmethod
    def of(cls, graphs: Sequence[Graph], depth: int, alphabet: Alphabet) -> "Colours":
        """The colours of some graphs after each of `depth` rounds."""
        parts = [_refined(chunk, depth, alphabet) for chunk in _chunks(graphs)]
        hashes = np.concatenate([np.empty((depth + 1, 0), dtype=np.int64), *parts], axis=1)
        return cls(hashes, np.repeat(np.arange(len(graphs)), [graph.n for graph in graphs]), len(graphs))

    def vocabulary(self) -> list[Ints]:
        """The colours that occur at each depth, sorted."""
        return [np.unique(row) for row in self.hashes]

    def counts(self, vocabulary: Sequence[Ints]) -> sparse.csr_array:
        """log(1 + count) of the colours of a vocabulary, a row for each graph; other colours are not counted.

        Args:
            vocabulary: Sorted colours for depth 0 and some depths after it.
        """
        parts = []
        for row, known in zip(self.hashes, vocabulary, strict=False):
            found = np.searchsorted(known, row)
            is_known = np.take(known, found, mode="clip") == row if len(known) else np.zeros(len(row), dtype=np.bool_)
            ones = np.ones(int(is_known.sum()))
            shape = self.n_graphs, len(known)
            parts.append(sparse.coo_array((ones, (self.graph[is_known], found[is_known])), shape=shape).tocsr())
        counted = sparse.hstack(parts, format="csr")
        counted.data = np.log1p(counted.data)
        return counted


def _chunks(graphs: Sequence[Graph]) -> Iterator[list[Graph]]:
    chunk: list[Graph] = []
    size = 0
    for graph in graphs:
        chunk.append(graph)
        size += graph.n + graph.n_edges
        if size >= CHUNK:
            yield chunk
            chunk, size = [], 0
    if chunk:
        yield chunk


def _refined(graphs: Sequence[Graph], depth: int, alphabet: Alphabet) -> Ints:
    """The colours of all nodes at every depth."""
    starts = np.concatenate([[0], np.cumsum([graph.n for graph in graphs])])
    edges = [graph.edge_index.numpy() + start for graph, start in zip(graphs, starts, strict=False)]
    source, target = np.concatenate([np.empty((2, 0), dtype=np.int64), *edges], axis=1)
    kind = _hash_rows(alphabet.labels(graphs, "edge"))
    labels = alphabet.labels(graphs, "node")
    if not labels.shape[1]:
        labels = np.stack([np.bincount(ends, minlength=starts[-1]) for ends in (source, target)], axis=1)
    if alphabet.directed:
        source, target = np.concatenate([source, target]), np.concatenate([target, source])
        kind = np.concatenate([kind, _mix(kind)])
    hashes = np.empty((depth + 1, len(labels)), dtype=np.uint64)
    hashes[0] = _hash_rows(labels)
    for before, after in pairwise(hashes):
        # Times an odd number: kinds of edges are hashed as colours are, and a plain sum would confuse the two.
        mixed, neighbours = _mix(before) * _SECOND, np.zeros_like(before)
        np.add.at(neighbours, source, _mix(mixed[target] + kind))
        after[:] = _mix(mixed + neighbours)
    return hashes.view(np.int64)


def _width(graphs: Sequence[Graph], name: str) -> int:
    """The number of columns of labels or features; nodes or edges that do not exist have none."""
    values = (getattr(graph, name) for graph in graphs)
    return max(
        (value.shape[1] if value.ndim > 1 else 1 for value in values if value is not None and len(value)), default=0
    )


def _rows(graphs: Sequence[Graph], name: str, width: int) -> NDArray[Any]:
    """Labels or features of all graphs, a row of a given width for each node or edge; ones where there are none."""
    parts = []
    for graph in graphs:
        value, n = getattr(graph, name), graph.n if name.startswith("node") else graph.n_edges
        parts.append(np.ones((n, width)) if value is None or not width else value.numpy().reshape(n, width))
    return np.concatenate([np.empty((0, width), dtype=np.int64), *parts])


def _boundaries(column: NDArray[Any], continuous: bool) -> Floats | None:
    values = np.unique(column)
    if len(values) <= MAX_VALUES:
        return np.asarray((values[1:] + values[:-1]) / 2, dtype=np.float64)
    return np.unique(np.quantile(column, np.arange(1, N_BINS) / N_BINS)) if continuous else None


def _hash_rows(rows: Ints) -> Hashes:
    """A hash for each row of integers."""
    hashes = np.full(len(rows), _STEP)
    for column in np.ascontiguousarray(rows.T).view(np.uint64):
        hashes = _mix(hashes + _mix(column))
    return hashes


def _mix(values: Hashes) -> Hashes:
    """SplitMix64: a bijection of 64 bits that spreads every bit."""
    values = values + _STEP
    values = (values ^ (values >> np.uint64(30))) * _FIRST
    values = (values ^ (values >> np.uint64(27))) * _SECOND
    return np.asarray(values ^ (values >> np.uint64(31)))


@dataclass(frozen=True)
class WLModel:
    """A linear model on 1-WL features: logistic regression for classes, ridge regression for numbers.

    Attributes:
        alphabet: What the colours of depth 0 are made from.
        vocabulary: The colours of the training graphs at each depth, sorted: the columns of `coef`, depth by depth.
        coef: (outputs, columns).
        intercept: (outputs,).
    """

    alphabet: Alphabet
    vocabulary: tuple[Ints, ...]
    coef: Floats
    intercept: Floats

    def predict_logits(self, graphs: Sequence[Graph]) -> Floats:
        """Logits of classes, or numbers: (graphs, outputs)."""
        colours = Colours.of(graphs, len(self.vocabulary) - 1, self.alphabet)
        return np.asarray(unit_rows(colours.counts(self.vocabulary)) @ self.coef.T + self.intercept)


@dataclass(frozen=True)
class WLFit:
    """A model fitted to training graphs, and how it was chosen.

    Attributes:
        model: The model.
        depth: The number of rounds.
        penalty: The inverse of the strength of regularisation.
        out_of_sample: (graphs, outputs): for each training graph those of a model that was fitted without its part.
    """

    model: WLModel
    depth: int
    penalty: float
    out_of_sample: Floats


def fit_wl(
    graphs: Sequence[Graph], targets: NDArray[Any], weights: Floats, *, n_classes: int | None, seed: int
) -> WLFit:
    """Choose depth and penalty by cross-validation within the training graphs, and fit a model to all of them.

    Args:
        graphs: The training graphs.
        targets: (graphs,) the index of a class for each, or (graphs, outputs) numbers of about unit variance.
        weights: The weight of each graph.
        n_classes: The number of classes; None for numbers.
        seed: Determines the splits.
    """
    weights = weights / weights.mean()
    part = _splits(targets if n_classes else np.zeros(len(graphs)), np.random.default_rng(seed))
    least, best = (math.inf, math.inf), None
    for alphabet in _alphabets(graphs):
        colours = Colours.of(graphs, max(DEPTHS), alphabet)
        vocabulary = colours.vocabulary()
        counts = colours.counts(vocabulary)
        ends = np.cumsum([len(colour) for colour in vocabulary])
        for depth in DEPTHS:
            X = counts[:, : ends[depth]]
            for penalty, found in _cross_validated(X, targets, weights, part, n_classes).items():
                error = _error(found, targets, weights, n_classes)
                if error < least:
                    least, best = error, (alphabet, vocabulary[: depth + 1], X, penalty, found)
    assert best is not None
    alphabet, vocabulary, X, penalty, found = best
    model = WLModel(alphabet, tuple(vocabulary), *_fit_linear(unit_rows(X), targets, weights, penalty, n_classes))
    return WLFit(model, len(vocabulary) - 1, penalty, found)


def _alphabets(graphs: Sequence[Graph]) -> list[Alphabet]:
    """Without and, where there are such, with features of many values."""
    without, with_all = (Alphabet.fit(graphs, continuous=continuous) for continuous in (False, True))
    has_more = any(None in bins for bins in (without.node_bins, without.edge_bins))
    return [without, with_all] if has_more else [without]


def _splits(groups: NDArray[Any], random: np.random.Generator) -> Ints:
    """A part for each graph; every group is spread over all parts."""
    order = random.permutation(len(groups))
    order = order[np.argsort(groups[order], kind="stable")]
    part = np.empty(len(groups), dtype=np.int64)
    part[order] = np.arange(len(groups)) % N_SPLITS
    return part


def _cross_validated(
    X: sparse.csr_array, targets: NDArray[Any], weights: Floats, part: Ints, n_classes: int | None
) -> dict[float, Floats]:
    """For each penalty the outputs for all graphs of models that were fitted to the other folds."""
    found = {penalty: np.zeros((len(part), n_classes or targets.shape[1])) for penalty in PENALTIES}
    for number in np.unique(part):
        train, test = np.flatnonzero(part != number), np.flatnonzero(part == number)
        seen = np.unique(X[train].indices)
        train_rows, test_rows = (unit_rows(X[rows][:, seen]) for rows in (train, test))
        for penalty, outputs in found.items():
            coef, intercept = _fit_linear(train_rows, targets[train], weights[train], penalty, n_classes)
            outputs[test] = test_rows @ coef.T + intercept
    return found


def _error(outputs: Floats, targets: NDArray[Any], weights: Floats, n_classes: int | None) -> tuple[float, float]:
    """What is minimised: the error rate, then the log-loss; for numbers the mean squared error."""
    if n_classes is None:
        return float((weights[:, None] * (outputs - targets) ** 2).mean()), 0.0
    losses = -log_softmax(outputs, axis=1)[np.arange(len(targets)), targets]
    return float((weights * (outputs.argmax(1) != targets)).mean()), float((weights * losses).mean())


def _fit_linear(
    X: sparse.csr_array, targets: NDArray[Any], weights: Floats, penalty: float, n_classes: int | None
) -> tuple[Floats, Floats]:
    """Coefficients (outputs, columns) and intercepts (outputs,)."""
    X, targets, weights = X[weights > 0], targets[weights > 0], weights[weights > 0]
    X.indices, X.indptr = X.indices.astype(np.int32), X.indptr.astype(np.int32)  # scikit-learn takes no others
    if n_classes is None:
        ridge = Ridge(alpha=1 / penalty, solver="sparse_cg", tol=1e-6).fit(X, targets, weights)
        return ridge.coef_.reshape(-1, X.shape[1]), np.broadcast_to(ridge.intercept_, targets.shape[1]).copy()
    coef, intercept = np.zeros((n_classes, X.shape[1])), np.full(n_classes, ABSENT)
    present = np.unique(targets)
    if len(present) < 2:
        intercept[present] = 0
        return coef, intercept
    logistic = LogisticRegression(C=penalty, solver="newton-cg", max_iter=1000).fit(X, targets, weights)
    two = len(present) == 2
    coef[present] = np.concatenate([-logistic.coef_, logistic.coef_]) / 2 if two else logistic.coef_
    offsets = np.concatenate([-logistic.intercept_, logistic.intercept_]) / 2 if two else logistic.intercept_
    intercept[present] = offsets
    return coef, intercept


def unit_rows(matrix: sparse.csr_array) -> sparse.csr_array:
    """The rows scaled to unit length; rows of zeros stay."""
    lengths = np.sqrt(matrix.multiply(matrix).sum(axis=1))
    return sparse.csr_array(sparse.diags_array(1 / np.where(lengths > 0, lengths, 1)) @ matrix)
