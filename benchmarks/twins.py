"""A training step of the paper's network on graphs of who worked with whom, twins together and one by one.

The graphs are like those of COLLAB: whoever took part in one of a few common works has an edge to all who did.
"""

import torch

from bellnet import Sparse
from bellnet.data import Graph
from benchmarks.paper import HIDDEN, training_step
from benchmarks.races import Effort, Section, raced
from experiments.methods.ign import encoding_of
from experiments.methods.twin_reduction import ReducedBatch, ReducedGraph, ReducibleNet, equivalent_nodes

TOGETHER, APART = "together", "separate"
CHANNELS, N_CLASSES, BATCH = (1, 16, 32, 256), 3, 5
N, N_WORKS, QUICK_N = 90, 12, 12
LEGEND = """\
twins    a training step of the paper's network, one thread: 5 graphs of 90 nodes, who worked with whom in 12 works;
         together: nodes with the same neighbours once, as Table 3 has them; apart: all pairs of nodes"""


def measure_twins(effort: Effort) -> Section:
    """One race of training steps."""
    torch.manual_seed(0)
    graphs = [common_works(QUICK_N if effort.quick else N, N_WORKS) for _ in range(BATCH)]
    encoded = tuple(encoding_of(graphs).encode(graphs, layout="sparse").unpack())
    reduced = ReducedBatch.of(list(map(ReducedGraph.of, encoded, map(equivalent_nodes, graphs))))
    apart, labels = Sparse.pack(encoded).to_dense(), torch.arange(BATCH) % N_CLASSES
    net = ReducibleNet("n n", CHANNELS, N_CLASSES, hidden=HIDDEN)
    with torch.no_grad():
        if not torch.allclose(net(reduced), net(apart), rtol=1e-3, atol=1e-3):
            raise ValueError("the outputs for reduced graphs differ; there is nothing to compare")
    steps = {TOGETHER: training_step(net, reduced, labels), APART: training_step(net, apart, labels)}
    race = raced("paper's network with twins, training step", steps, threads=1, rounds=effort.rounds)
    return Section((race,), (race.ratio(APART, TOGETHER),))


def common_works(n: int, n_works: int) -> Graph:
    """A graph in which everybody took part in one work, and the first in all; half of them took part in two."""
    works = torch.zeros(n, n_works, dtype=torch.bool)
    works[0] = True
    works[torch.arange(1, n), torch.randint(n_works, (n - 1,))] = True
    some = torch.randperm(n)[: n // 2]
    works[some, torch.randint(n_works, (len(some),))] = True
    has_edge = works.float() @ works.T.float() > 0
    return Graph(n, has_edge.fill_diagonal_(False).nonzero().T)
