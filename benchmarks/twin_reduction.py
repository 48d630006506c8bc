"""A training step of the paper's network with and without the reduction of structurally equivalent nodes.

The graphs are collaboration graphs like those of COLLAB: two nodes have an edge if they took part in a common work.
"""

import torch

from bellnet import Sparse
from bellnet.data import Graph
from benchmarks.paper import HIDDEN, training_step
from benchmarks.races import Effort, Section, raced
from experiments.methods.ign import encoding_of
from experiments.methods.twin_reduction import ReducedBatch, ReducedGraph, ReducibleNet, equivalent_nodes

REDUCED, FULL = "reduced", "full"
CHANNELS, N_CLASSES, BATCH = (1, 16, 32, 256), 3, 5
N, N_WORKS, QUICK_N = 90, 12, 12
LEGEND = """\
reduced  a training step of the paper's network, one thread: 5 collaboration graphs of 90 nodes and 12 works, one node
         for each class of structurally equivalent nodes, as for Table 3; full: all pairs of nodes"""


def measure_twin_reduction(effort: Effort) -> Section:
    """One race of training steps."""
    torch.manual_seed(0)
    graphs = [common_works(QUICK_N if effort.quick else N, N_WORKS) for _ in range(BATCH)]
    encoded = tuple(encoding_of(graphs).encode(graphs, layout="sparse").unpack())
    reduced = ReducedBatch.of(list(map(ReducedGraph.of, encoded, map(equivalent_nodes, graphs))))
    full, labels = Sparse.pack(encoded).to_dense(), torch.arange(BATCH) % N_CLASSES
    net = ReducibleNet("n n", CHANNELS, N_CLASSES, hidden=HIDDEN)
    with torch.no_grad():
        if not torch.allclose(net(reduced), net(full), rtol=1e-3, atol=1e-3):
            raise ValueError("the outputs for reduced and full graphs differ, so their times cannot be compared")
    steps = {REDUCED: training_step(net, reduced, labels), FULL: training_step(net, full, labels)}
    race = raced("paper's network with equivalent nodes, training step", steps, threads=1, rounds=effort.rounds)
    return Section((race,), (race.ratio(FULL, REDUCED),))


def common_works(n: int, n_works: int) -> Graph:
    """A collaboration graph: every node takes part in one work, half of them in a second, and node 0 in all."""
    works = torch.zeros(n, n_works, dtype=torch.bool)
    works[0] = True
    works[torch.arange(1, n), torch.randint(n_works, (n - 1,))] = True
    some = torch.randperm(n)[: n // 2]
    works[some, torch.randint(n_works, (len(some),))] = True
    has_edge = works.float() @ works.T.float() > 0
    return Graph(n, has_edge.fill_diagonal_(False).nonzero().T)
