"""A short fit of a classifier with either layout, on graphs with few and many edges, and with other options."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import torch
from torch import Tensor

from bellnet.data import Graph, as_graph
from bellnet.estimator import GraphClassifier
from benchmarks.races import Effort, Section, raced

COUNT, N, QUICK_N, EPOCHS, ROUNDS = 64, 40, 6, 2, 3
SHARES = (0.1, 0.3, 0.7, 1.0)
PADDED, SPARSE = "padded", "sparse"
DIAGONAL, SEPARATE = "diagonal", "separate"
ONE, THREE = "one network", "three networks"
LABELS = 20
"""Number of node labels; NCI1 has 37, MUTAG 7."""
LEGEND = """\
layouts  GraphClassifier(n_estimators=1).fit, two epochs on 64 random graphs of 40 nodes; stored: the share of
         stored pairs of nodes; diagonal, separate: node_channels of 20 node labels, with the sparse layout;
         three networks: n_estimators=3, with the sparse layout"""


def measure_layouts(effort: Effort) -> Section:
    """One race for each share of stored pairs, and for the other options."""
    races, ratios = [], []
    for share in SHARES:
        graphs = random_graphs(QUICK_N if effort.quick else N, share)
        calls = {layout: partial(fit, graphs, layout) for layout in (PADDED, SPARSE)}
        rounds = min(effort.rounds, ROUNDS)
        races.append(raced(f"classifier, {share:g} stored", calls, threads=1, rounds=rounds))
        ratios.append(races[-1].ratio(PADDED, SPARSE))
    labelled = with_labels(random_graphs(QUICK_N if effort.quick else N, SHARES[0]))
    calls = {where: partial(fit, labelled, SPARSE, where) for where in (DIAGONAL, SEPARATE)}
    races.append(raced("classifier of labelled nodes", calls, threads=1, rounds=min(effort.rounds, ROUNDS)))
    ratios.append(races[-1].ratio(DIAGONAL, SEPARATE))
    few = random_graphs(QUICK_N if effort.quick else N, SHARES[0])
    calls = {name: partial(fit, few, SPARSE, n_estimators=count) for name, count in ((ONE, 1), (THREE, 3))}
    races.append(raced("classifier of several networks", calls, threads=1, rounds=min(effort.rounds, ROUNDS)))
    ratios.append(races[-1].ratio(ONE, THREE))
    return Section(tuple(races), tuple(ratios))


def random_graphs(n: int, share: float) -> list[Tensor]:
    """Adjacency matrices with the given share of stored entries, which include the diagonal."""
    generator = torch.Generator().manual_seed(0)
    among_edges = max(0.0, (share * n - 1) / (n - 1))
    drawn = (torch.rand(COUNT, n, n, generator=generator) < among_edges).triu(1)
    return list((drawn | drawn.mT).float())


def with_labels(matrices: list[Tensor]) -> list[Graph]:
    """Graphs of the matrices, with random node labels."""
    generator = torch.Generator().manual_seed(1)
    return [
        replace(as_graph(matrix), node_labels=torch.randint(LABELS, (len(matrix),), generator=generator))
        for matrix in matrices
    ]


def fit(graphs: Sequence[object], layout: str, node_channels: str = DIAGONAL, *, n_estimators: int = 1) -> None:
    """Two epochs of a classifier; `n_estimators` is explicit, because its default depends on the layout."""
    labels = [index % 2 for index in range(len(graphs))]
    options = {"layout": layout, "node_channels": node_channels, "n_estimators": n_estimators}
    model = GraphClassifier(**options, max_epochs=EPOCHS, verbose=False)
    model.fit(graphs, labels)
