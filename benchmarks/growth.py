"""Time and memory as functions of the number of nodes, channels, graphs in a batch, edges, and of the order.

    python -m benchmarks.growth --out benchmarks/results/growth.json     measure all sections, or some with --only
    python -m benchmarks.growth --draw docs/images                       draw the pictures from the record

Every section runs in a new process with a memory limit of 4 GB beyond its imports. Sizes ascend; a contestant that
exceeds the limit stops there. At every size the remaining contestants take turns, as in all benchmarks; a call of half
a second or more is timed twice, and the shorter time counts.
"""

import argparse
import json
import resource
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import Any, NamedTuple
from unittest import mock

import torch

from bellnet import EquivariantLinear, Sparse
from benchmarks.baselines import EinsumPerDiagram, Matrices, StackedFifteen
from benchmarks.calls import run_once
from benchmarks.measure import load_average, race
from benchmarks.memory import peak_extra_bytes
from benchmarks.record import circumstances
from benchmarks.sparse_layers import NODES_TO_EDGES, random_graph

RECORDED = Path(__file__).parent / "results" / "growth.json"
GIGABYTE = 10**9
ALLOWED = 4 * GIGABYTE
LONG = 0.5
"""Seconds above which a call is timed twice only."""
ROUNDS = 5


class Prepared(NamedTuple):
    """A contestant at one size: the timed call, and the bytes of its buffers."""

    call: Callable[[], object]
    held: int = 0


class Question(NamedTuple):
    """A quantity that grows, its sizes, the contestants, and a function that prepares a contestant for a size."""

    across: str
    sizes: tuple[int, ...]
    quick: tuple[int, ...]
    contestants: tuple[str, ...]
    make: Callable[[str, int], Prepared]


def dense(name: str, *, n: int, channels: int = 16, batch: int = 1, order: int = 2) -> Prepared:
    """A layer of one order on dense tensors, forward and backward."""
    shape = " ".join("n" * order)
    layer = EquivariantLinear(f"{shape} -> {shape}", channels, channels)
    x = torch.randn(batch, *[n] * order, channels)
    module: torch.nn.Module = layer
    if name == "stacked":
        module, x = StackedFifteen.like(layer), x.movedim(-1, 1).contiguous()
    elif name == "matrices":
        module = Matrices(layer, n)
    elif name == "einsums":
        module = EinsumPerDiagram.like(layer)
    x.requires_grad_()
    call = partial(run_once, lambda: module(x), torch.randn_like(x), [x, *module.parameters()])
    return Prepared(call, sum(buffer.nbytes for buffer in module.buffers()))


def of_order(name: str, order: int) -> Prepared:
    """Tensors of any order with 4096 entries and 8 channels."""
    return dense(name, n=round(4096 ** (1 / order)), channels=8, order=order)


def with_edges(name: str, n_edges: int) -> Prepared:
    """A graph with the given number of edges, sparse or dense."""
    n = n_edges // NODES_TO_EDGES
    if name == "ours, dense":
        return dense(name, n=n)
    index = random_graph(n, n_edges)
    x = Sparse(index, torch.randn(index.shape[1], 16).requires_grad_(), n, is_sorted=True)
    layer = EquivariantLinear("n n -> n n", 16, 16)
    call = partial(run_once, lambda: layer(x).values, torch.randn_like(x.values), [x.values, *layer.parameters()])
    call()  # index tables depend on the support alone and are cached with it
    return Prepared(call)


THREE, TWO = ("ours", "stacked", "matrices"), ("ours", "stacked")
QUESTIONS = {
    "nodes": Question(
        "nodes", (12, 25, 50, 75, 100, 200, 400, 800, 1200, 1600), (4, 6), THREE, lambda name, n: dense(name, n=n)
    ),
    "channels": Question(
        "channels", (4, 8, 16, 32, 64, 128, 256), (2, 3), TWO, lambda name, c: dense(name, n=40, channels=c, batch=8)
    ),
    "batch": Question(
        "graphs in a batch", (1, 4, 16, 64, 256, 1024), (1, 2), TWO, lambda name, b: dense(name, n=20, batch=b)
    ),
    "order": Question("order", (1, 2, 3, 4), (1, 2), ("ours", "einsums"), of_order),
    "edges": Question(
        "edges",
        (1000, 3000, 10_000, 30_000, 100_000, 300_000, 1_000_000),
        (100, 200),
        ("ours, sparse", "ours, dense"),
        with_edges,
    ),
}


def measure(question: Question, *, quick: bool) -> Iterator[dict[str, Any]]:
    """A record for every size: seconds and bytes of every contestant that has not run out of memory."""
    stopped: list[str] = []
    for size in question.quick if quick else question.sizes:
        found: dict[str, Any] = {}
        short: dict[str, Callable[[], object]] = {}
        for name in question.contestants:
            if name in stopped:
                continue
            try:
                made = question.make(name, size)
                with mock.patch("bellnet.backends.buffers.LARGE", sys.maxsize):  # count memory that would be cached
                    bytes_ = made.held + peak_extra_bytes(made.call)
                seconds = min(_seconds(made.call) for _ in range(2))
            except RuntimeError as error:
                if "allocate memory" not in str(error):
                    raise
                stopped.append(name)
                continue
            found[name] = {"seconds": seconds, "bytes": bytes_}
            if seconds < LONG:
                short[name] = made.call
            del made
        if short:
            raced = race(short, rounds=2 if quick else ROUNDS, warm_up=0)
            for name, timing in raced.timings.items():
                found[name]["seconds"] = timing.median
        yield {"size": size, "found": found, "stopped": list(stopped)}


def _seconds(call: Callable[[], object]) -> float:
    start = perf_counter()
    call()
    return perf_counter() - start


def limit_memory(beyond: int) -> None:
    """Limit the memory of this process to the given number of bytes beyond its present size."""
    pages = int(Path("/proc/self/statm").read_text().split()[5])
    limit = pages * resource.getpagesize() + beyond
    resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))


def _in_new_process(name: str, *, quick: bool, threads: int) -> list[dict[str, Any]]:
    command = [sys.executable, "-m", "benchmarks.growth", "--measure", name, "--threads", str(threads)]
    done = subprocess.run([*command, *["--quick"] * quick], stdout=subprocess.PIPE, text=True, check=True)
    return [json.loads(line) for line in done.stdout.splitlines()]


def main() -> None:
    """Measure, or draw the record."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.growth", description=__doc__.split("\n")[0])
    parser.add_argument("--only", nargs="+", choices=QUESTIONS, default=list(QUESTIONS), help="measure only these")
    parser.add_argument("--quick", action="store_true", help="tiny sizes, to check that everything runs")
    parser.add_argument("--threads", type=int, default=2, help="number of threads of torch (default 2)")
    parser.add_argument("--out", type=Path, help=f"add the results to this record, such as {RECORDED}")
    parser.add_argument("--draw", type=Path, metavar="DIR", help="draw the record into this directory")
    parser.add_argument("--measure", choices=QUESTIONS, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.measure:
        torch.set_num_threads(options.threads)
        limit_memory(ALLOWED)
        for line in measure(QUESTIONS[options.measure], quick=options.quick):
            print(json.dumps(line), flush=True)
        return
    if options.draw:
        from benchmarks.growth_pictures import draw

        draw(json.loads(RECORDED.read_text(encoding="utf-8")), options.draw)
        return
    for name in options.only:
        about = circumstances(threads=options.threads, rounds=ROUNDS, load=load_average())
        rows = _in_new_process(name, quick=options.quick, threads=options.threads)
        _show(name, rows)
        if options.out:
            _add(options.out, name, {**about, "allowed_bytes": ALLOWED, "rows": rows})


def _show(name: str, rows: list[dict[str, Any]]) -> None:
    for row in rows:
        of_each = [
            f"{name} {1e3 * one['seconds']:.2f} ms, {one['bytes'] / 1e6:.1f} MB" for name, one in row["found"].items()
        ]
        stopped = [f"{name} is out of memory" for name in row["stopped"]]
        print(f"{name} {row['size']}: " + "; ".join([*of_each, *stopped]))


def _add(path: Path, name: str, found: Mapping[str, Any]) -> None:
    record = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    record[name] = found
    path.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
