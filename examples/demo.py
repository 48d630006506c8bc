"""The first look at bellnet: `make demo`. It prints a plan, checks it, and trains: a quick Table 1 of the paper."""

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path

import torch

import bellnet as bn
from bellnet.draw import draw_basis, draw_diagrams, save_figures
from bellnet.experiments import cells_of_table1, print_tables, quick, run_cells, write_report
from bellnet.testing import matrix_of, relabel

ROOT = Path(__file__).resolve().parents[1]
ABOUT = """\
bellnet builds linear layers for graphs, hypergraphs and tables that do not care how nodes are numbered.
You write the shape of input and output, say "n n -> n n", and get every map that commutes with
renumbering: 15 here, Bell(k + l) from order k to order l, a product of those for several node sets.
The maps are not computed one by one: they share a few sums, diagonals and small matrix products, the plan."""
LEARNING = """\
Networks of such layers are shown 40 x 40 matrices and learn their symmetric part, their diagonal, their first
singular vector and their trace, as in Table 1 of the paper. Beside ours, with all 15 maps in a layer: the same
network with the 4 maps of Hartford et al., and the mean of what was seen. The less the error, the better."""
TOLERANCE = 1e-10


def main() -> int:
    parser = argparse.ArgumentParser(description="A first look at bellnet.")
    parser.add_argument("--out", metavar="DIR", type=Path, default=ROOT / "demo-output", help="where everything goes")
    parser.add_argument("--task", nargs="+", help="learn only some of symmetric, diagonal, singular, trace")
    parser.add_argument("--layers", nargs="+", type=int, help="learn only with so many layers")
    parser.add_argument("--jobs", type=int, default=min(os.cpu_count() or 1, 8), help="networks trained at a time")
    arguments = parser.parse_args()
    sys.stdout.reconfigure(errors="replace")
    torch.manual_seed(0)
    print(f"\n{paint('bellnet', bold=True)} {bn.__version__}\n\n{ABOUT}")
    show_plan()
    if not all([check_bell_numbers(), check_renumbering()]):
        print(f"\n{tick(False)} something above is not as it should be")
        return 1
    draw_pictures(arguments.out)
    learn(arguments)
    print(f'\nNext: examples/first_layer.py, or {paint("bellnet plan", bold=True)} "n n -> n" --diagrams')
    return 0


def show_plan() -> None:
    heading("A plan", "what is summed, mixed and written, rank by rank")
    print(bn.plan("n n -> n n"))


def learn(arguments: argparse.Namespace) -> None:
    heading("Learning", "a quick Table 1, on random matrices; about two minutes on two cores")
    print(LEARNING + "\n")
    chosen = {"tasks": arguments.task} if arguments.task else {}
    folder = arguments.out / "table1"
    run_cells([quick(cell) for cell in cells_of_table1(layers=arguments.layers, **chosen)], folder, jobs=arguments.jobs)
    files = write_report(folder)
    print()
    print_tables(folder)
    (report,) = [path for path in files if path.suffix == ".html"]
    print(f"\nThe report, with learning curves and pictures: {paint(str(report), bold=True)}")


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


def draw_pictures(folder: Path) -> None:
    heading("Pictures", "Figure 1 of the paper, and the diagrams behind it")
    folder.mkdir(parents=True, exist_ok=True)
    figures = {
        folder / "figure1.png": draw_basis("n n -> n n"),
        folder / "diagrams.png": draw_diagrams("n n -> n n"),
    }
    save_figures(figures)
    print("\n".join(f"  {tick(True)} {path}" for path in figures))


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
