"""The cost of a new support: the first call of a layer computes index tables and caches them with the support.

A large graph is often reused; batches of small graphs that are sampled in every step have a new support every time.
"""

from functools import partial
from time import perf_counter

import torch
from torch import Tensor, nn

from bellnet import EquivariantLinear, InvariantNet, Sparse
from benchmarks.calls import run_once
from benchmarks.goals import Verdict
from benchmarks.measure import Race, Timing, time_fixed_work
from benchmarks.races import Effort, Raced, Section, on_threads, raced
from benchmarks.sparse_layers import NODES_TO_EDGES, WIDTH, random_graph

THREADS = 2
N_ENTRIES, QUICK_ENTRIES = 1_000_000, 10_000
N_GRAPHS, N_NODES, N_EDGES = 64, 18, 40
FIRST, LATER = "first", "later"
NEW, REPEATED, CONSTRUCTION = "new", "repeated", "construction"
LEGEND = """\
new support  the layer on 10^6 stored entries with a new support: its first call, and the next one
new batches  a network of two layers on 64 graphs of 18 nodes: a new support in every call, or a repeated one;
             construction: of the Sparse alone; index tables: the rest of the difference"""


def measure_supports(effort: Effort) -> Section:
    """The first and a later call on a large graph, and the share of index tables on batches of small graphs."""
    large = first_and_later(QUICK_ENTRIES if effort.quick else N_ENTRIES, effort.rounds)
    small = _batches(effort.rounds)
    share = Verdict("new batches, share of index tables", share_of_index_tables(small))
    return Section((large, small), (large.ratio(FIRST, LATER), small.ratio(NEW, REPEATED), share))


def first_and_later(n_entries: int, rounds: int) -> Raced:
    """A new support in every round, after the one before is freed, as in a loop over graphs.

    A first round is not counted, so that nothing but the support is new.
    """
    n_nodes = n_entries // NODES_TO_EDGES
    index = random_graph(n_nodes, n_entries)
    values = torch.randn(index.shape[1], WIDTH, requires_grad=True)
    layer = EquivariantLinear("n n -> n n", WIDTH, WIDTH)
    samples: dict[str, list[float]] = {FIRST: [], LATER: []}
    fixed_work = []
    with on_threads(THREADS):
        for number in range(rounds + 1):
            x = Sparse(index.clone(), values, n_nodes, is_sorted=True)
            call = partial(_run, layer, x, torch.randn(index.shape[1], WIDTH))
            fixed_work.append(time_fixed_work())
            for name in (FIRST, LATER):
                start = perf_counter()
                call()
                if number > 0:
                    samples[name].append(perf_counter() - start)
            del x, call
    timings = {name: Timing(tuple(several), 1) for name, several in samples.items()}
    is_steady = Race(timings, tuple(fixed_work[1:])).is_steady
    return Raced("new support, forward+backward", THREADS, timings, is_steady)


def share_of_index_tables(race: Raced) -> float:
    """The share of the time on new batches that is neither construction nor needed on a repeated support."""
    new, repeated, construction = (race.timings[name].median for name in (NEW, REPEATED, CONSTRUCTION))
    return (new - construction - repeated) / new


def small_graphs() -> tuple[Tensor, Tensor]:
    """The index of a batch of random graphs, edges and diagonal, in ascending order; and their sizes."""
    generator = torch.Generator().manual_seed(0)
    found = []
    for graph in range(N_GRAPHS):
        pairs = torch.randint(N_NODES, (2, N_EDGES // 2), generator=generator)
        pairs = torch.cat([pairs, pairs.flip(0), torch.arange(N_NODES).expand(2, -1)], 1).unique(dim=1)
        found.append(torch.cat([torch.full((1, pairs.shape[1]), graph), pairs]))
    return torch.cat(found, 1), torch.full((N_GRAPHS,), N_NODES)


def _batches(rounds: int) -> Raced:
    index, sizes = small_graphs()
    values = torch.randn(index.shape[1], WIDTH, requires_grad=True)
    net = InvariantNet("n n", [WIDTH, WIDTH, WIDTH], 2, pool_over="stored")
    upstream = torch.randn(N_GRAPHS, 2)

    def construct() -> Sparse:
        return Sparse(index, values, sizes, is_sorted=True)

    same = construct()
    needed = [values, *net.parameters()]
    calls = {
        NEW: partial(run_once, lambda: net(construct()), upstream, needed),
        REPEATED: partial(run_once, lambda: net(same), upstream, needed),
        CONSTRUCTION: construct,
    }
    return raced("new batches, forward+backward", calls, threads=THREADS, rounds=rounds)


def _run(layer: nn.Module, x: Sparse, upstream: Tensor) -> None:
    run_once(lambda: layer(x).values, upstream, [x.values, *layer.parameters()])
