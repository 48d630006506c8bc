"""Sparse layers: cost per stored entry, compared with a graph convolution and with the dense layer."""

import json
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any
from unittest import mock

import torch
from torch import Tensor, nn

from bellnet import EquivariantLinear, Sparse
from benchmarks.calls import python_output, run_once
from benchmarks.goals import Verdict
from benchmarks.measure import LEAST_SECONDS, Timing, race
from benchmarks.memory import peak_extra_bytes
from benchmarks.report import MEGABYTE, table

WIDTH = 16
NODES_TO_EDGES = 10
LONG_SAMPLE = 0.5
"""Seconds per sample if the graphs differ much in size."""
LEGEND = """\
sparse   EquivariantLinear("n n -> n n", 16, 16) on a Sparse, forward and backward, index tables cached before
growing  the same on graphs of increasing size, one thread; memory retained: after bellnet.keep_freed_memory()
gine     GINEConv of PyTorch Geometric with edge features of the same width, on the same graph (sparse: with the
         diagonal); edges sorted by target, its fastest order; or by source, or shuffled
dense    the same layer on the dense tensor of the same graph"""


@dataclass(frozen=True)
class SparseSizes:
    """Numbers of edges of the growing graphs and for the convolution; nodes and density of the dense graph."""

    growing: tuple[int, ...] = (10_000, 100_000, 1_000_000, 3_000_000)
    convolution: int = 1_000_000
    dense_nodes: int = 1000
    density: float = 0.05


FULL = SparseSizes()
QUICK = SparseSizes((1_000, 10_000), 10_000, 100)


@dataclass(frozen=True)
class SparseResult:
    """Time, peak memory and number of stored entries of every contestant of a race."""

    what: str
    n_entries: Mapping[str, int]
    timings: Mapping[str, Timing]
    peak_bytes: Mapping[str, int]
    is_steady: bool


def random_graph(n_nodes: int, n_edges: int) -> Tensor:
    """(2, about n_edges): distinct pairs of nodes, each with its reverse."""
    generator = torch.Generator().manual_seed(0)
    half = torch.randint(n_nodes * n_nodes, (n_edges // 2,), generator=generator)
    code = torch.cat([half, half % n_nodes * n_nodes + half // n_nodes]).unique()
    return torch.stack([code // n_nodes, code % n_nodes])


def measure_sparse_layers(sizes: SparseSizes, *, rounds: int) -> list[SparseResult]:
    """Run every race."""
    return [
        _race("convolution", _against_convolution(sizes.convolution), rounds),
        _race("dense", _against_dense(sizes), rounds),
        _in_new_process("growing", sizes.growing, rounds, retain=False),
        _in_new_process("growing, memory retained", sizes.growing, rounds, retain=True),
    ]


def sparse_verdicts(results: list[SparseResult]) -> list[Verdict]:
    """Ratios of sparse layers, with their goals."""
    convolution, dense, *grown = results
    found = [
        Verdict(f"time, sparse/{name}", _ratio(convolution, "sparse", name))
        for name in convolution.timings
        if name != "sparse"
    ]
    found.append(Verdict("time, dense/sparse", _ratio(dense, "dense", "sparse")))
    for result in grown:
        time = [result.timings[name].median / n for name, n in result.n_entries.items()]
        what = f"{result.what}: time per stored entry, largest/smallest"
        found.append(Verdict(what, max(time) / min(time)))
    memory = [grown[0].peak_bytes[name] / n for name, n in grown[0].n_entries.items()]
    what = "growing: memory per stored entry, largest/smallest"
    return [*found, Verdict(what, max(memory) / min(memory))]


def sparse_table(results: list[SparseResult]) -> str:
    """One row for each contestant of each race."""
    rows = [["race", "contestant", "entries", "ms", "ns per entry", "MB", "bytes per entry"]]
    for result in results:
        for name, timing in result.timings.items():
            n, peak = result.n_entries[name], result.peak_bytes[name]
            cells = [f"{1e3 * timing.median:.2f}", f"{1e9 * timing.median / n:.0f}", f"{peak / MEGABYTE:.1f}"]
            rows.append([result.what, name, str(n), *cells, f"{peak / n:.0f}"])
    return table(rows)


def sparse_record(results: list[SparseResult]) -> list[dict[str, Any]]:
    """The results as JSON-compatible objects."""
    return [
        {
            "race": result.what,
            "is_steady": result.is_steady,
            "contestants": {
                name: {
                    **timing.record(),
                    "n_entries": result.n_entries[name],
                    "peak_extra_bytes": result.peak_bytes[name],
                }
                for name, timing in result.timings.items()
            },
        }
        for result in results
    ]


Contestant = tuple[int, Callable[[], object]]


def growing(edges: Sequence[int], *, rounds: int, what: str = "growing") -> SparseResult:
    """The race of graphs with the given numbers of edges."""
    contestants = {f"{n_edges:.0e}": _sparse(n_edges // NODES_TO_EDGES, n_edges) for n_edges in edges}
    return _race(what, contestants, rounds, least_seconds=LONG_SAMPLE if max(edges) > 100_000 else LEAST_SECONDS)


def _in_new_process(what: str, edges: Sequence[int], rounds: int, *, retain: bool) -> SparseResult:
    """The race of growing graphs in a new process, optionally with freed memory retained.

    It has one thread, because small graphs use a second one less well than large graphs.
    """
    code = f"""if True:
        import json, torch
        import bellnet
        from benchmarks.sparse_layers import growing, sparse_record
        if {retain}:
            bellnet.keep_freed_memory()
        torch.set_num_threads(1)
        print(json.dumps(sparse_record([growing({tuple(edges)}, rounds={rounds}, what={what!r})])))
    """
    return _from_record(json.loads(python_output(code))[0])


def _from_record(found: Mapping[str, Any]) -> SparseResult:
    """The result that `sparse_record` serialized."""
    raced = found["contestants"]
    return SparseResult(
        found["race"],
        {name: one["n_entries"] for name, one in raced.items()},
        {name: Timing(tuple(one["samples"]), one["repetitions"]) for name, one in raced.items()},
        {name: one["peak_extra_bytes"] for name, one in raced.items()},
        found["is_steady"],
    )


def _race(
    what: str, contestants: dict[str, Contestant], rounds: int, *, least_seconds: float = LEAST_SECONDS
) -> SparseResult:
    calls = {name: call for name, (_, call) in contestants.items()}
    with mock.patch("bellnet.backends.buffers.LARGE", sys.maxsize):  # count memory that would be cached
        peaks = {name: peak_extra_bytes(call) for name, call in calls.items()}
    outcome = race(calls, rounds=rounds, least_seconds=least_seconds)
    entries = {name: n_entries for name, (n_entries, _) in contestants.items()}
    return SparseResult(what, entries, outcome.timings, peaks, outcome.is_steady)


def _sparse(n_nodes: int, n_edges: int, *, diagonal: bool = False) -> Contestant:
    index = random_graph(n_nodes, n_edges)
    x = Sparse(index, torch.randn(index.shape[1], WIDTH), n_nodes, is_sorted=True)
    return _on(x.with_diagonal() if diagonal else x)


def _on(x: Sparse, layer: nn.Module | None = None) -> Contestant:
    layer = EquivariantLinear("n n -> n n", WIDTH, WIDTH) if layer is None else layer
    x = x.with_values(x.values.requires_grad_())
    upstream = torch.randn(x.nnz, WIDTH)
    return x.nnz, partial(run_once, lambda: layer(x).values, upstream, [x.values, *layer.parameters()])


def _against_convolution(n_edges: int) -> dict[str, Contestant]:
    """One layer each, forward and backward, with the gradients of nodes, edges and parameters.

    The layer returns features of edges and nodes, the convolution features of nodes alone. "gine" has its edges sorted
    by target in an `EdgeIndex` with cached pointers, its fastest order; the others show the effect of the order.
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
    found = {"sparse": _sparse(n_nodes, n_edges, diagonal=True)}
    for name, index in {"gine": known, "gine by source": by_source, "gine shuffled": shuffled}.items():
        call = partial(run_once, partial(convolution, nodes, index, edges), upstream, needed)
        found[name] = by_source.shape[1], call
    return found


def _against_dense(sizes: SparseSizes) -> dict[str, Contestant]:
    n = sizes.dense_nodes
    index = random_graph(n, int(sizes.density * n * n))
    x = Sparse(index, torch.randn(index.shape[1], WIDTH), n, is_sorted=True)
    layer = EquivariantLinear("n n -> n n", WIDTH, WIDTH)
    dense = x.to_dense()
    with torch.no_grad():
        if not torch.allclose(layer(x).values, layer(dense)[tuple(index)], rtol=1e-3, atol=1e-3):
            raise ValueError("the outputs of the sparse and the dense layer differ, so their times cannot be compared")
    needed = [dense.requires_grad_(), *layer.parameters()]
    call = partial(run_once, lambda: layer(dense), torch.randn(n, n, WIDTH), needed)
    return {"sparse": _on(x, layer), "dense": (n * n, call)}


def _ratio(result: SparseResult, above: str, below: str) -> float:
    return result.timings[above].median / result.timings[below].median
