"""What a new support costs: a layer that sees listed tuples for the first time has to find out what belongs to what.

It makes *joins* then, and keeps them with the support. One large graph is seen once and used often; batches of small
graphs that are drawn anew in every step are new every time.
"""

from functools import partial
from time import perf_counter

import torch
from torch import Tensor, nn

from bellnet import EquivariantLinear, InvariantNet, Sparse
from benchmarks.calls import run_once
from benchmarks.goals import Verdict
from benchmarks.listed import NODES_TO_EDGES, WIDTH, random_graph
from benchmarks.measure import Race, Timing, time_fixed_work
from benchmarks.races import Effort, Raced, Section, on_threads, raced

THREADS = 2
N_TUPLES, QUICK_TUPLES = 1_000_000, 10_000
N_GRAPHS, N_NODES, N_EDGES = 64, 18, 40
FIRST, LATER = "first", "later"
NEW, REPEATED, LISTING = "new", "repeated", "listing"
LEGEND = """\
new support  the layer on 10^6 tuples that no layer has seen: its first call there, and the next one
new batches  a net of two layers on 64 graphs of 18 nodes: a new support in every call, or the same again;
             listing: making a Sparse of the tuples, and nothing else; joins: what is left of the difference"""


def measure_supports(effort: Effort) -> Section:
    """The first call against a later one on a large graph, and the share of joins on batches of small graphs."""
    large = first_and_later(QUICK_TUPLES if effort.quick else N_TUPLES, effort.rounds)
    small = _batches(effort.rounds)
    share = Verdict("new batches, share of joins", share_of_joins(small))
    return Section((large, small), (large.ratio(FIRST, LATER), small.ratio(NEW, REPEATED), share))


def first_and_later(n_tuples: int, rounds: int) -> Raced:
    """Every round has a support of its own; the one before is gone by then, as in a loop over graphs.

    A round that is not counted comes first, so that nothing but the support is new.
    """
    n_nodes = n_tuples // NODES_TO_EDGES
    index = random_graph(n_nodes, n_tuples)
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


def share_of_joins(race: Raced) -> float:
    """How much of the time on new batches is neither for listing tuples nor needed on tuples seen before."""
    new, repeated, listing = (race.timings[name].median for name in (NEW, REPEATED, LISTING))
    return (new - listing - repeated) / new


def small_graphs() -> tuple[Tensor, Tensor]:
    """The index of a batch of random graphs, edges and diagonal, in ascending order; and their sizes."""
    generator = torch.Generator().manual_seed(0)
    found = []
    for graph in range(N_GRAPHS):
        pairs = torch.randint(N_NODES, (2, N_EDGES // 2), generator=generator)
        listed = torch.cat([pairs, pairs.flip(0), torch.arange(N_NODES).expand(2, -1)], 1).unique(dim=1)
        found.append(torch.cat([torch.full((1, listed.shape[1]), graph), listed]))
    return torch.cat(found, 1), torch.full((N_GRAPHS,), N_NODES)


def _batches(rounds: int) -> Raced:
    index, sizes = small_graphs()
    values = torch.randn(index.shape[1], WIDTH, requires_grad=True)
    net = InvariantNet("n n", [WIDTH, WIDTH, WIDTH], 2, pool_over="stored")
    upstream = torch.randn(N_GRAPHS, 2)

    def listing() -> Sparse:
        return Sparse(index, values, sizes, is_sorted=True)

    same = listing()
    needed = [values, *net.parameters()]
    calls = {
        NEW: partial(run_once, lambda: net(listing()), upstream, needed),
        REPEATED: partial(run_once, lambda: net(same), upstream, needed),
        LISTING: listing,
    }
    return raced("new batches, forward+backward", calls, threads=THREADS, rounds=rounds)


def _run(layer: nn.Module, x: Sparse, upstream: Tensor) -> None:
    run_once(lambda: layer(x).values, upstream, [x.values, *layer.parameters()])
