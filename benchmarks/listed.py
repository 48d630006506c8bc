"""Listed tuples: does the cost follow their number, against a graph convolution, and against our own dense layer."""

import json
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any
from unittest import mock

import torch
from torch import Tensor, nn

from bellnet import EquivariantLinear, Sparse
from benchmarks.calls import run_once
from benchmarks.goals import Verdict
from benchmarks.measure import LEAST_SECONDS, Timing, race
from benchmarks.memory import peak_extra_bytes
from benchmarks.report import MEGABYTE, table

WIDTH = 16
NODES_TO_EDGES = 10
LONG_SAMPLE = 0.5
"""Seconds of a sample where graphs of very different size take turns."""
LEGEND = """\
listed   EquivariantLinear("n n -> n n", 16, 16) on a Sparse, forward and backward, joins made before
growing  the same on ever larger graphs, one thread; memory kept: after bellnet.keep_freed_memory()
gine     GINEConv of PyTorch Geometric with edge features of the same width, on the same graph; listed with a diagonal;
         edges sorted by target, which suits it best; or by source, or shuffled
dense    the same layer on the dense tensor of the same graph"""


@dataclass(frozen=True)
class ListedSizes:
    """The number of edges of each size of graph, of the graph of the convolution, and the nodes of the dense one."""

    growing: tuple[int, ...] = (10_000, 100_000, 1_000_000, 3_000_000)
    convolution: int = 1_000_000
    dense_nodes: int = 1000
    density: float = 0.05


FULL = ListedSizes()
QUICK = ListedSizes((1_000, 10_000), 10_000, 100)


@dataclass(frozen=True)
class ListedResult:
    """What was measured on one graph: time and memory of everyone, and how many tuples are listed."""

    what: str
    n_tuples: Mapping[str, int]
    timings: Mapping[str, Timing]
    peak_bytes: Mapping[str, int]
    is_steady: bool


def random_graph(n_nodes: int, n_edges: int) -> Tensor:
    """(2, about n_edges): distinct pairs of nodes, each with its reverse."""
    generator = torch.Generator().manual_seed(0)
    half = torch.randint(n_nodes * n_nodes, (n_edges // 2,), generator=generator)
    code = torch.cat([half, half % n_nodes * n_nodes + half // n_nodes]).unique()
    return torch.stack([code // n_nodes, code % n_nodes])


def measure_listed(sizes: ListedSizes, *, rounds: int) -> list[ListedResult]:
    """All comparisons, each in one race."""
    return [
        _race("convolution", _against_convolution(sizes.convolution), rounds),
        _race("dense", _against_dense(sizes), rounds),
        _in_a_process("growing", sizes.growing, rounds, keep=False),
        _in_a_process("growing, memory kept", sizes.growing, rounds, keep=True),
    ]


def verdicts_on_listed(results: list[ListedResult]) -> list[Verdict]:
    """The goals of sparse tensors."""
    convolution, dense, *grown = results
    found = [
        Verdict(f"time, listed/{name}", _ratio(convolution, "listed", name))
        for name in convolution.timings
        if name != "listed"
    ]
    found.append(Verdict("time, dense/listed", _ratio(dense, "dense", "listed")))
    for result in grown:
        time = [result.timings[name].median / n for name, n in result.n_tuples.items()]
        what = f"{result.what}: time for one listed tuple, largest/smallest"
        found.append(Verdict(what, max(time) / min(time)))
    memory = [grown[0].peak_bytes[name] / n for name, n in grown[0].n_tuples.items()]
    what = "growing: memory for one listed tuple, largest/smallest"
    return [*found, Verdict(what, max(memory) / min(memory))]


def listed_table(results: list[ListedResult]) -> str:
    """One row for everyone in every race."""
    rows = [["race", "who", "tuples", "ms", "ns a tuple", "MB", "bytes a tuple"]]
    for result in results:
        for name, timing in result.timings.items():
            n, peak = result.n_tuples[name], result.peak_bytes[name]
            cells = [f"{1e3 * timing.median:.2f}", f"{1e9 * timing.median / n:.0f}", f"{peak / MEGABYTE:.1f}"]
            rows.append([result.what, name, str(n), *cells, f"{peak / n:.0f}"])
    return table(rows)


def listed_record(results: list[ListedResult]) -> list[dict[str, Any]]:
    """Everything, as JSON takes it."""
    return [
        {
            "race": result.what,
            "is_steady": result.is_steady,
            "contestants": {
                name: {
                    **timing.record(),
                    "n_tuples": result.n_tuples[name],
                    "peak_extra_bytes": result.peak_bytes[name],
                }
                for name, timing in result.timings.items()
            },
        }
        for result in results
    ]


Contestant = tuple[int, Callable[[], object]]


def growing(edges: Sequence[int], *, rounds: int, what: str = "growing") -> ListedResult:
    """The race of graphs with so many edges."""
    contestants = {f"{n_edges:.0e}": _listed(n_edges // NODES_TO_EDGES, n_edges) for n_edges in edges}
    return _race(what, contestants, rounds, least_seconds=LONG_SAMPLE if max(edges) > 100_000 else LEAST_SECONDS)


def _in_a_process(what: str, edges: Sequence[int], rounds: int, *, keep: bool) -> ListedResult:
    """The race of growing graphs in a process of its own, which may keep the memory that it frees.

    It has one thread: a small graph cannot use a second one as well as a large graph can, and this is about cost.
    """
    code = f"""if True:
        import json, torch
        import bellnet
        from benchmarks.listed import growing, listed_record
        if {keep}:
            bellnet.keep_freed_memory()
        torch.set_num_threads(1)
        print(json.dumps(listed_record([growing({tuple(edges)}, rounds={rounds}, what={what!r})])))
    """
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return _from_record(json.loads(done.stdout)[0])


def _from_record(found: Mapping[str, Any]) -> ListedResult:
    """What `listed_record` has written."""
    raced = found["contestants"]
    return ListedResult(
        found["race"],
        {name: one["n_tuples"] for name, one in raced.items()},
        {name: Timing(tuple(one["samples"]), one["repetitions"]) for name, one in raced.items()},
        {name: one["peak_extra_bytes"] for name, one in raced.items()},
        found["is_steady"],
    )


def _race(
    what: str, contestants: dict[str, Contestant], rounds: int, *, least_seconds: float = LEAST_SECONDS
) -> ListedResult:
    calls = {name: call for name, (_, call) in contestants.items()}
    with mock.patch("bellnet.backends.buffers.LARGE", sys.maxsize):  # what is kept for the next call is to be counted
        peaks = {name: peak_extra_bytes(call) for name, call in calls.items()}
    outcome = race(calls, rounds=rounds, least_seconds=least_seconds)
    tuples = {name: n_tuples for name, (n_tuples, _) in contestants.items()}
    return ListedResult(what, tuples, outcome.timings, peaks, outcome.is_steady)


def _listed(n_nodes: int, n_edges: int, *, diagonal: bool = False) -> Contestant:
    index = random_graph(n_nodes, n_edges)
    x = Sparse(index, torch.randn(index.shape[1], WIDTH), n_nodes, is_sorted=True)
    return _on(x.with_diagonal() if diagonal else x)


def _on(x: Sparse, layer: nn.Module | None = None) -> Contestant:
    layer = EquivariantLinear("n n -> n n", WIDTH, WIDTH) if layer is None else layer
    x = x.with_values(x.values.requires_grad_())
    upstream = torch.randn(x.nnz, WIDTH)
    return x.nnz, partial(run_once, lambda: layer(x).values, upstream, [x.values, *layer.parameters()])


def _against_convolution(n_edges: int) -> dict[str, Contestant]:
    """One layer each, forward and backward, down to the gradients of nodes, edges and parameters.

    Ours gives new features to edges and nodes, the convolution to nodes alone. Its edges were once given by source, as
    the list of ours is sorted, whereas it adds them up by target; and without a word that they are sorted at all. In
    seconds of one processor this cost it 4 %, and a shuffled list costs it 37 %. So the race that counts has them by
    target in an `EdgeIndex` that knows where every target begins, and the others show what the order is worth.
    """
    from torch_geometric import EdgeIndex
    from torch_geometric.nn import GINEConv

    n_nodes = n_edges // NODES_TO_EDGES
    by_source = random_graph(n_nodes, n_edges)
    by_target = by_source.flip(0).contiguous()  # every edge has its reverse
    known = EdgeIndex(by_target, sparse_size=(n_nodes, n_nodes), sort_order="col").fill_cache_()
    shuffled = by_source[:, torch.randperm(by_source.shape[1])]
    convolution = GINEConv(nn.Linear(WIDTH, WIDTH))
    nodes, edges = (torch.randn(n, WIDTH, requires_grad=True) for n in (n_nodes, by_source.shape[1]))
    upstream, needed = torch.randn(n_nodes, WIDTH), [nodes, edges, *convolution.parameters()]
    found = {"listed": _listed(n_nodes, n_edges, diagonal=True)}
    for name, index in {"gine": known, "gine by source": by_source, "gine shuffled": shuffled}.items():
        call = partial(run_once, partial(convolution, nodes, index, edges), upstream, needed)
        found[name] = by_source.shape[1], call
    return found


def _against_dense(sizes: ListedSizes) -> dict[str, Contestant]:
    n = sizes.dense_nodes
    index = random_graph(n, int(sizes.density * n * n))
    x = Sparse(index, torch.randn(index.shape[1], WIDTH), n, is_sorted=True)
    layer = EquivariantLinear("n n -> n n", WIDTH, WIDTH)
    dense = x.to_dense()
    with torch.no_grad():
        if not torch.allclose(layer(x).values, layer(dense)[tuple(index)], rtol=1e-3, atol=1e-3):
            raise ValueError(
                "the listed layer does not compute what the dense one computes; there is nothing to compare"
            )
    needed = [dense.requires_grad_(), *layer.parameters()]
    call = partial(run_once, lambda: layer(dense), torch.randn(n, n, WIDTH), needed)
    return {"listed": _on(x, layer), "dense": (n * n, call)}


def _ratio(result: ListedResult, above: str, below: str) -> float:
    return result.timings[above].median / result.timings[below].median
