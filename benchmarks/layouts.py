"""What the layouts of a classifier cost: a short fit with either, on graphs with fewer and with more edges."""

from functools import partial

import torch
from torch import Tensor

from bellnet.estimator import GraphClassifier
from benchmarks.races import Effort, Section, raced

COUNT, N, QUICK_N, EPOCHS, ROUNDS = 64, 40, 6, 2, 3
SHARES = (0.1, 0.3, 0.7, 1.0)
PADDED, SPARSE = "padded", "sparse"
LEGEND = """\
layouts  GraphClassifier().fit, two epochs on 64 random graphs of 40 nodes; listed: the share of pairs of nodes that are
         edges or nodes"""


def measure_layouts(effort: Effort) -> Section:
    """One race for each share of pairs that are edges."""
    races, ratios = [], []
    for share in SHARES:
        graphs = random_graphs(QUICK_N if effort.quick else N, share)
        calls = {layout: partial(fit, graphs, layout) for layout in (PADDED, SPARSE)}
        rounds = min(effort.rounds, ROUNDS)
        races.append(raced(f"classifier, {share:g} listed", calls, threads=1, rounds=rounds))
        ratios.append(races[-1].ratio(PADDED, SPARSE))
    return Section(tuple(races), tuple(ratios))


def random_graphs(n: int, share: float) -> list[Tensor]:
    """Adjacency matrices of which so many entries, the diagonal among them, are listed."""
    generator = torch.Generator().manual_seed(0)
    among_edges = max(0.0, (share * n - 1) / (n - 1))
    drawn = (torch.rand(COUNT, n, n, generator=generator) < among_edges).triu(1)
    return list((drawn | drawn.mT).float())


def fit(graphs: list[Tensor], layout: str) -> None:
    """Two epochs of a classifier with its defaults."""
    labels = [place % 2 for place in range(len(graphs))]
    GraphClassifier(layout=layout, max_epochs=EPOCHS, verbose=False).fit(graphs, labels)
