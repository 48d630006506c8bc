"""How cost grows: with nodes, channels, graphs in a batch, order and edges; and where memory is at its end.

    python -m benchmarks.growth --out benchmarks/results/growth.json     measure all questions, or --only some
    python -m benchmarks.growth --draw docs/images                       draw the pictures from the record

Every question is a process of its own that may take so many gigabytes beyond what it has after its imports. Sizes
ascend; who asks for more memory than that has stopped there, and is not asked again. At every size those who are left
take turns, as in all benchmarks; a call of half a second or more is timed twice, and the quicker one counts.
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
from benchmarks.listed import NODES_TO_EDGES, random_graph
from benchmarks.measure import load_average, race
from benchmarks.memory import peak_extra_bytes
from benchmarks.record import circumstances

RECORDED = Path(__file__).parent / "results" / "growth.json"
GIGABYTE = 10**9
ALLOWED = 4 * GIGABYTE
LONG = 0.5
"""Seconds of a call that is not repeated often."""
ROUNDS = 5


class Made(NamedTuple):
    """Somebody who is ready: what is timed, and the bytes that it holds all the while, beside its parameters."""

    call: Callable[[], object]
    held: int = 0


class Question(NamedTuple):
    """What grows, through which sizes, who competes, and how one of them is made for a size."""

    across: str
    sizes: tuple[int, ...]
    quick: tuple[int, ...]
    contestants: tuple[str, ...]
    make: Callable[[str, int], Made]


def dense(who: str, *, n: int, channels: int = 16, batch: int = 1, order: int = 2) -> Made:
    """A layer of one order on dense tensors, forwards and backwards."""
    shape = " ".join("n" * order)
    layer = EquivariantLinear(f"{shape} -> {shape}", channels, channels)
    x = torch.randn(batch, *[n] * order, channels)
    module: torch.nn.Module = layer
    if who == "stacked":
        module, x = StackedFifteen.like(layer), x.movedim(-1, 1).contiguous()
    elif who == "matrices":
        module = Matrices(layer, n)
    elif who == "einsums":
        module = EinsumPerDiagram.like(layer)
    x.requires_grad_()
    call = partial(run_once, lambda: module(x), torch.randn_like(x), [x, *module.parameters()])
    return Made(call, sum(buffer.nbytes for buffer in module.buffers()))


def of_order(who: str, order: int) -> Made:
    """Tensors of every order with 4096 entries, 8 channels each."""
    return dense(who, n=round(4096 ** (1 / order)), channels=8, order=order)


def with_edges(who: str, n_edges: int) -> Made:
    """A graph with so many edges, listed or dense."""
    n = n_edges // NODES_TO_EDGES
    if who == "ours, dense":
        return dense(who, n=n)
    index = random_graph(n, n_edges)
    x = Sparse(index, torch.randn(index.shape[1], 16).requires_grad_(), n, is_sorted=True)
    layer = EquivariantLinear("n n -> n n", 16, 16)
    call = partial(run_once, lambda: layer(x).values, torch.randn_like(x.values), [x.values, *layer.parameters()])
    call()  # what depends on the listed tuples alone is found once for a graph
    return Made(call)


THREE, TWO = ("ours", "stacked", "matrices"), ("ours", "stacked")
QUESTIONS = {
    "nodes": Question(
        "nodes", (12, 25, 50, 75, 100, 200, 400, 800, 1200, 1600), (4, 6), THREE, lambda who, n: dense(who, n=n)
    ),
    "channels": Question(
        "channels", (4, 8, 16, 32, 64, 128, 256), (2, 3), TWO, lambda who, c: dense(who, n=40, channels=c, batch=8)
    ),
    "batch": Question(
        "graphs in a batch", (1, 4, 16, 64, 256, 1024), (1, 2), TWO, lambda who, b: dense(who, n=20, batch=b)
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
    """A record for every size: seconds and bytes of everybody who has not stopped for lack of memory."""
    stopped: list[str] = []
    for size in question.quick if quick else question.sizes:
        found: dict[str, Any] = {}
        short: dict[str, Callable[[], object]] = {}
        for who in question.contestants:
            if who in stopped:
                continue
            try:
                made = question.make(who, size)
                with mock.patch("bellnet.backends.buffers.LARGE", sys.maxsize):  # what is kept for the next call counts
                    bytes_ = made.held + peak_extra_bytes(made.call)
                seconds = min(_seconds(made.call) for _ in range(2))
            except RuntimeError as error:
                if "allocate memory" not in str(error):
                    raise
                stopped.append(who)
                continue
            found[who] = {"seconds": seconds, "bytes": bytes_}
            if seconds < LONG:
                short[who] = made.call
            del made
        if short:
            raced = race(short, rounds=2 if quick else ROUNDS, warm_up=0)
            for who, timing in raced.timings.items():
                found[who]["seconds"] = timing.median
        yield {"size": size, "found": found, "stopped": list(stopped)}


def _seconds(call: Callable[[], object]) -> float:
    start = perf_counter()
    call()
    return perf_counter() - start


def limit_memory(beyond: int) -> None:
    """Let this process take so many bytes beyond what it has."""
    pages = int(Path("/proc/self/statm").read_text().split()[5])
    most = pages * resource.getpagesize() + beyond
    resource.setrlimit(resource.RLIMIT_DATA, (most, most))


def _in_a_process(name: str, *, quick: bool, threads: int) -> list[dict[str, Any]]:
    command = [sys.executable, "-m", "benchmarks.growth", "--measure", name, "--threads", str(threads)]
    done = subprocess.run([*command, *["--quick"] * quick], stdout=subprocess.PIPE, text=True, check=True)
    return [json.loads(line) for line in done.stdout.splitlines()]


def main() -> None:
    """Measure, or draw what was measured."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.growth", description=__doc__.split("\n")[0])
    parser.add_argument("--only", nargs="+", choices=QUESTIONS, default=list(QUESTIONS), help="measure these alone")
    parser.add_argument("--quick", action="store_true", help="tiny sizes: does it run?")
    parser.add_argument("--threads", type=int, default=2, help="threads that torch may use (default 2)")
    parser.add_argument("--out", type=Path, help=f"the record, to which what is measured is added, such as {RECORDED}")
    parser.add_argument("--draw", type=Path, metavar="DIR", help="measure nothing, draw the record into this directory")
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
        rows = _in_a_process(name, quick=options.quick, threads=options.threads)
        _show(name, rows)
        if options.out:
            _add(options.out, name, {**about, "allowed_bytes": ALLOWED, "rows": rows})


def _show(name: str, rows: list[dict[str, Any]]) -> None:
    for row in rows:
        of_each = [
            f"{who} {1e3 * one['seconds']:.2f} ms, {one['bytes'] / 1e6:.1f} MB" for who, one in row["found"].items()
        ]
        stopped = [f"{who} has no memory left" for who in row["stopped"]]
        print(f"{name} {row['size']}: " + "; ".join([*of_each, *stopped]))


def _add(path: Path, name: str, found: Mapping[str, Any]) -> None:
    record = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    record[name] = found
    path.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
