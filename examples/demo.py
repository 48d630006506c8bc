"""The first look at bellnet: `make demo`. It prints, checks, draws and times, in well under a minute."""

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from time import perf_counter

import torch
from torch import Tensor, nn

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))  # the baselines live beside the package, not in it

import bellnet as bn  # noqa: E402
from bellnet.draw import draw_basis, draw_diagrams, save_figures  # noqa: E402
from bellnet.testing import matrix_of, relabel  # noqa: E402
from benchmarks.baselines import StackedFifteen  # noqa: E402

ABOUT = """\
bellnet builds linear layers for graphs, hypergraphs and tables that do not care how nodes are numbered.
You write the shape of input and output, say "n n -> n n", and get every map that commutes with
renumbering: 15 here, Bell(k + l) from order k to order l, a product of those for several node sets.
The maps are not computed one by one: they share a few sums, diagonals and small matrix products, the plan."""
TOLERANCE = 1e-10


def main() -> int:
    parser = argparse.ArgumentParser(description="A first look at bellnet.")
    parser.add_argument("--out", metavar="DIR", type=Path, default=ROOT / "demo-output", help="where pictures go")
    parser.add_argument("--seconds", type=float, default=3.0, help="how long to time each case (default 3)")
    arguments = parser.parse_args()
    sys.stdout.reconfigure(errors="replace")
    torch.manual_seed(0)
    print(f"\n{paint('bellnet', bold=True)} {bn.__version__}\n\n{ABOUT}")
    checks = [
        show_plans(),
        check_bell_numbers(),
        check_renumbering(),
        draw_pictures(arguments.out),
        race(arguments.seconds),
    ]
    print()
    if not all(checks):
        print(f"{tick(False)} something above is not as it should be")
        return 1
    print(f'Next: examples/first_layer.py, or {paint("bellnet plan", bold=True)} "n n -> n" --diagrams')
    return 0


def show_plans() -> bool:
    heading("Plans", "what is summed, mixed and written, rank by rank")
    print("\n\n".join(str(bn.plan(spec)) for spec in ("n n -> n n", "n n n -> n", "u u i -> u i")))
    return True


def check_bell_numbers() -> bool:
    heading("Bell numbers", "the rank of the layer's own matrices, found by feeding it the standard basis")
    rows = []
    for spec in ("n -> n", "n n ->", "n n -> n", "n n -> n n", "n n n -> n", "n n n -> n n", "n n n -> n n n"):
        slots = spec.count("n")
        rows.append((spec, f"Bell({slots})", bn.bell(slots), independent_maps(spec, slots)))
    rows.append(("u u i -> u i", "Bell(3) Bell(2)", bn.bell(3) * bn.bell(2), independent_maps("u u i -> u i", 3)))
    table(
        ("spec", "statement", "expected", "rank", ""),
        [(spec, words, str(expected), str(found), tick(expected == found)) for spec, words, expected, found in rows],
    )
    return all(expected == found for *_, expected, found in rows)


def independent_maps(spec: str, n: int) -> int:
    n_maps = bn.plan(spec).n_maps
    layer = bn.EquivariantLinear(spec, 1, n_maps, bias=False, dtype=torch.float64)
    with torch.no_grad():
        layer.weight.copy_(torch.eye(n_maps).unsqueeze(1))  # output channel m is map m alone
        matrix = matrix_of(layer, spec, n)
    return int(torch.linalg.matrix_rank(matrix.reshape(-1, n_maps, matrix.shape[1]).transpose(0, 1).flatten(1)))


@torch.no_grad()
def check_renumbering() -> bool:
    heading("Equivariance", "renumber the nodes before the layer or after it: 20 random renumberings each")
    rows, n = [], {"n": 9, "u": 5, "i": 7}
    for spec in ("n n -> n n", "n n n -> n", "u u i -> u i"):
        layer = bn.EquivariantLinear(spec, 3, 4, dtype=torch.float64)
        source, target = layer.spec.source, layer.spec.target
        x = torch.randn(2, *(n[name] for name in source), 3, dtype=torch.float64)
        worst = 0.0
        for _ in range(20):
            order = {name: torch.randperm(n[name]) for name in layer.spec.node_sets}
            before, after = layer(relabel(x, source, order)), relabel(layer(x), target, order)
            worst = max(worst, float((before - after).abs().max()))
        rows.append((spec, "a tensor", worst))
    rows.append(("n n -> n n", "Padded, sizes 3, 9, 1, 6", worst_in_padded_batch()))
    table(
        ("spec", "input", "largest difference", ""),
        [(spec, given, f"{worst:.1e}", tick(worst < TOLERANCE)) for spec, given, worst in rows],
    )
    return all(worst < TOLERANCE for *_, worst in rows)


def worst_in_padded_batch() -> float:
    layer = bn.EquivariantLinear("n n -> n n", 3, 4, dtype=torch.float64)
    graphs = [torch.randn(size, size, 3, dtype=torch.float64) for size in (3, 9, 1, 6)]
    worst = 0.0
    for _ in range(20):
        orders = [torch.randperm(len(graph)) for graph in graphs]  # every graph is renumbered in its own way
        renumbered = [relabel(graph, "n n", order) for graph, order in zip(graphs, orders, strict=True)]
        together = layer(bn.Padded.pack(renumbered)).unpack()
        alone = [relabel(layer(graph), "n n", order) for graph, order in zip(graphs, orders, strict=True)]
        worst = max(worst, *(float((one - other).abs().max()) for one, other in zip(together, alone, strict=True)))
    return worst


def draw_pictures(folder: Path) -> bool:
    heading("Pictures", "Figure 1 of the paper, and the diagrams behind it")
    folder.mkdir(parents=True, exist_ok=True)
    figures = {
        folder / "figure1.png": draw_basis("n n -> n n"),
        folder / "diagrams.png": draw_diagrams("n n -> n n"),
    }
    save_figures(figures)
    print("\n".join(f"  {tick(True)} {path}" for path in figures))
    return True


def race(seconds: float) -> bool:
    threads = f"{torch.get_num_threads()} thread{'s' if torch.get_num_threads() > 1 else ''}"
    heading("Speed", f"forward and backward of n n -> n n against stacking all fifteen matrices; {threads}, one run")
    rows, agree = [], True
    for batch, n, inside, outside in ((32, 18, 16, 32), (8, 60, 32, 32), (4, 100, 16, 16)):
        layer = bn.EquivariantLinear("n n -> n n", inside, outside)
        stacked = StackedFifteen.like(layer)
        x = torch.randn(batch, n, n, inside)
        channels_first = x.permute(0, 3, 1, 2).contiguous()  # the layout that suits stacking
        agree &= torch.allclose(layer(x), stacked(channels_first).permute(0, 2, 3, 1), atol=1e-4)
        ours, theirs = interleaved((layer, x), (stacked, channels_first), seconds=seconds)
        case = f"{batch} graphs, {n} nodes, {inside} -> {outside}"
        rows.append((case, f"{ours * 1e3:.1f} ms", f"{theirs * 1e3:.1f} ms", f"{theirs / ours:.1f}"))
    table(("case", "bellnet", "stacked", "stacked / bellnet"), rows, left=1)
    print(f"\n  {tick(agree)} both compute the same; times are medians of alternating measurements")
    return agree


def step(module: nn.Module, x: Tensor) -> None:
    module.zero_grad()
    module(x.requires_grad_()).sum().backward()
    x.grad = None


def interleaved(*runs: tuple[nn.Module, Tensor], seconds: float) -> list[float]:
    """The median time of each, measured in turns, so that whatever else the machine does befalls all."""
    times: list[list[float]] = [[] for _ in runs]
    for run in runs:
        step(*run)
    end = perf_counter() + seconds
    while perf_counter() < end or len(times[0]) < 5:
        for run, taken in zip(runs, times, strict=True):
            start = perf_counter()
            step(*run)
            taken.append(perf_counter() - start)
    return [median(taken) for taken in times]


def heading(title: str, explanation: str) -> None:
    print(f"\n{paint(title, bold=True, color=34)}  {paint(explanation, color=90)}\n")


def table(head: Sequence[str], rows: Sequence[Sequence[str]], *, left: int = 2) -> None:
    """Columns two spaces apart; the first ones, words, stand on the left and the others, numbers, on the right."""
    widths = [max(len(plain(row[column])) for row in (head, *rows)) for column in range(len(head))]
    for number, row in enumerate((head, *rows)):
        cells = []
        for column, (cell, width) in enumerate(zip(row, widths, strict=True)):
            space = " " * (width - len(plain(cell)))
            cells.append(cell + space if column < left else space + cell)
        line = "  " + "  ".join(cells).rstrip()
        print(paint(line, color=90) if number == 0 else line)


def tick(ok: bool) -> str:
    return paint("✓", color=32) if ok else paint("✗", color=31)


def paint(text: str, *, color: int | None = None, bold: bool = False) -> str:
    if not sys.stdout.isatty() or "NO_COLOR" in os.environ:
        return text
    codes = [str(code) for code in ([1] if bold else []) + ([color] if color else [])]
    return f"\033[{';'.join(codes)}m{text}\033[0m"


def plain(text: str) -> str:
    return "✓" if "✓" in text or "✗" in text else text


if __name__ == "__main__":
    sys.exit(main())
