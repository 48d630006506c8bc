"""Demonstration of bellnet, run by `make demo`.

A layer and its plan; checks of both; a part of the paper's Table 1, trained and compared with its figures; graph
classification beyond 1-WL; and a page with all of it.
"""

import argparse
import os
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from textwrap import fill
from typing import Any

import torch

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))  # where the experiments are, which are not installed

import bellnet as bn
from bellnet.data import Graph, generated
from bellnet.draw import draw_basis, draw_diagrams, new_figure, save_figures
from bellnet.estimator import GraphClassifier
from bellnet.testing import matrix_of, permute_nodes
from experiments.matrix_cell import LAYERS, METHODS, TASKS, MatrixCell, cells_of_table1
from experiments.page import MISSING, Page, Table, print_table
from experiments.plots import MethodPanels
from experiments.records import Records
from experiments.report import pictures_of, tables_of
from experiments.run import run_cells
from experiments.tables import PAPER1, PAPER_SETUP, choose, figure, mean_error, results_of, verdict

RECORDED = ROOT / "results" / "table1"
ABOUT = (
    "bellnet has all permutation-equivariant linear layers for graphs, hypergraphs and tables. A spec names the node "
    "axes of input and output: `n n -> n n` has 15 basis maps, a layer from order k to order l has Bell(k + l), and "
    "with several node sets the numbers are multiplied."
)
PLAN = (
    "The maps share a few contractions (sums and diagonals) and small matrix products. The plan shows the "
    "contractions, permutations and broadcasts at each rank."
)
CHECKING = "The number of maps, and invariance to permutations of the nodes and to padding."
TRAINING = (
    "Networks of such layers are trained to compute the symmetric part, the diagonal, the first singular vector and "
    "the trace of 40 x 40 matrices, as in Table 1 of the paper. Ours has all 15 maps in a layer. The baselines are "
    "the same network with the 4 maps of Hartford et al., and the mean of the training targets."
)
DEPTHS = (
    "One depth per task is trained here; the recorded runs have all of them. The first singular vector needs no more "
    "than the 4 maps: with the scaling of bellnet, the network of Hartford et al. is as accurate, unlike in the paper "
    "(`docs/reproduction.md`)."
)
CLASSIFYING = (
    "In every graph the nodes form a circle and are connected to their neighbours and to the nodes 2 steps away "
    "(class 0) or 3 steps away (class 1). All nodes have degree four, so that 1-WL (colour refinement), message "
    "passing networks and networks over pairs of nodes do not distinguish the classes. Networks over triples do. "
    "Training graphs have 10 to 13 nodes and test graphs 14 to 16, in random order."
)
TOLERANCE, WIDTH = 1e-10, 100
# Layers, epochs and learning rate: the fastest settings with errors well below the paper's.
TRAINED = {"singular": (2, 5, 0.03), "diagonal": (1, 3, 0.01), "symmetric": (1, 3, 0.01), "trace": (1, 2, 0.01)}
BRIEF = {"train": 60, "validation": 20, "test": 20, "epochs": 1}
CIRCLES = {"train": (10, 11, 12, 13), "test": (14, 15, 16)}
OPTIONS = {"channels": (16, 16), "hidden": (32,), "pool": "max", "dropout": 0.0, "size_feature": False}
OPTIONS |= {"layout": "padded", "n_estimators": 1}
EPOCHS = 15
NAMES = {"bellnet": "bellnet, 15 maps", "hartford": "Hartford et al., 4 maps", "trivial": "trivial: the mean"}


def main() -> int:
    parser = argparse.ArgumentParser(description="Demonstration of bellnet.")
    parser.add_argument(
        "--out", metavar="DIR", type=Path, default=ROOT / "demo-output", help="directory of the results"
    )
    parser.add_argument("--task", nargs="+", choices=TRAINED, default=list(TRAINED), help="tasks to train")
    parser.add_argument("--jobs", type=int, default=min(os.cpu_count() or 1, 8), help="networks to train in parallel")
    parser.add_argument("--brief", action="store_true", help="train for seconds only, without meaningful figures")
    arguments = parser.parse_args()
    sys.stdout.reconfigure(errors="replace")
    torch.manual_seed(0)
    began = time.monotonic()
    arguments.out.mkdir(parents=True, exist_ok=True)
    page = Page("bellnet: demonstration", ABOUT)
    print(f"\n{paint('bellnet', bold=True)} {bn.__version__}\n\n{fill(ABOUT, WIDTH)}")
    show_layer(page, arguments.out)
    if not check(page):
        print("\nA check failed.")
        return 1
    train(page, arguments)
    classify(page, epochs=1 if arguments.brief else EPOCHS)
    report = arguments.out / "report.html"
    report.write_text(page.html(), encoding="utf-8")
    print(f"\nReport with pictures: {paint(str(report), bold=True)}")
    print(f'Next: examples/first_layer.py, or {paint("bellnet plan", bold=True)} "n n -> n" --diagrams')
    print(f"Time: {time.monotonic() - began:.0f} s.")
    return 0


def show_layer(page: Page, folder: Path) -> None:
    begin(page, "A layer and its plan", PLAN)
    layer = bn.EquivariantLinear("n n -> n n", 3, 8)
    graphs = torch.randn(2, 9, 9, 3)  # two graphs of nine nodes, three channels per pair
    lines = (
        '>>> layer = bn.EquivariantLinear("n n -> n n", 3, 8)',
        ">>> layer(graphs).shape",
        str(layer(graphs).shape),
        ">>> layer.plan",
        str(layer.plan),
    )
    print("\n".join(lines))
    page.listing("\n".join(lines))
    basis, diagrams = draw_basis("n n -> n n"), draw_diagrams("n n -> n n")
    page.words("The 15 maps and the 2 biases as matrices, for five nodes: Figure 1 of the paper.")
    page.picture(basis, "The maps of n n -> n n as matrices")
    page.words(
        "The same maps as diagrams. Joined dots carry the same node; the rank is the number of lines that cross."
    )
    page.picture(diagrams, "The maps of n n -> n n as diagrams")
    save_figures({folder / "figure1.png": basis, folder / "diagrams.png": diagrams})


def check(page: Page) -> bool:
    begin(page, "Checks", CHECKING)
    tables = [bell_numbers(), permutations()]
    for table in tables:
        print_table(table)
        page.table(table, level=3)
    return all(row[-1] == "✓" for table in tables for row in table.rows)


def bell_numbers() -> Table:
    rows = []
    for spec in ("n -> n", "n n ->", "n n -> n", "n n -> n n", "n n n -> n", "n n n -> n n", "n n n -> n n n"):
        axes = spec.count("n")
        rows.append((spec, f"Bell({axes})", bn.bell(axes), independent_maps(spec, axes)))
    rows.append(("u u i -> u i", "Bell(3) Bell(2)", bn.bell(3) * bn.bell(2), independent_maps("u u i -> u i", 3)))
    return Table(
        "Bell numbers: the rank of the matrices of a layer",
        ("spec", "statement", "expected", "rank", ""),
        tuple(
            (spec, statement, str(expected), str(rank), tick(expected == rank))
            for spec, statement, expected, rank in rows
        ),
        left=2,
    )


def independent_maps(spec: str, n: int) -> int:
    n_maps = bn.plan(spec).n_maps
    layer = bn.EquivariantLinear(spec, 1, n_maps, bias=False, dtype=torch.float64)
    with torch.no_grad():
        layer.weight.copy_(torch.eye(n_maps).unsqueeze(1))  # output channel m is map m
        matrix = matrix_of(layer, spec, n)
    return int(torch.linalg.matrix_rank(matrix.reshape(-1, n_maps, matrix.shape[1]).transpose(0, 1).flatten(1)))


@torch.no_grad()
def permutations() -> Table:
    rows, n = [], {"n": 9, "u": 5, "i": 7}
    for spec in ("n n -> n n", "n n n -> n", "u u i -> u i"):
        layer = bn.EquivariantLinear(spec, 3, 4, dtype=torch.float64)
        source, target = layer.spec.source, layer.spec.target
        x = torch.randn(2, *(n[name] for name in source), 3, dtype=torch.float64)
        worst = 0.0
        for _ in range(20):
            order = {name: torch.randperm(n[name]) for name in layer.spec.node_sets}
            before, after = layer(permute_nodes(x, source, order)), permute_nodes(layer(x), target, order)
            worst = max(worst, float((before - after).abs().max()))
        rows.append((spec, "a tensor", worst))
    rows.append(("n n -> n n", "graphs of 3, 9, 1 and 6 nodes, padded", worst_in_padded_batch()))
    return Table(
        "Equivariance: 20 permutations of the nodes, before and after the layer",
        ("spec", "input", "largest difference", ""),
        tuple((spec, kind, f"{worst:.1e}", tick(worst < TOLERANCE)) for spec, kind, worst in rows),
        ("Padded graphs are compared with single graphs.",),
        left=2,
    )


def worst_in_padded_batch() -> float:
    layer = bn.EquivariantLinear("n n -> n n", 3, 4, dtype=torch.float64)
    graphs = [torch.randn(size, size, 3, dtype=torch.float64) for size in (3, 9, 1, 6)]
    worst = 0.0
    for _ in range(20):
        orders = [torch.randperm(len(graph)) for graph in graphs]  # one permutation per graph
        permuted = [permute_nodes(graph, "n n", order) for graph, order in zip(graphs, orders, strict=True)]
        together = layer(bn.Padded.pack(permuted)).unpack()
        alone = [permute_nodes(layer(graph), "n n", order) for graph, order in zip(graphs, orders, strict=True)]
        worst = max(worst, *(float((one - other).abs().max()) for one, other in zip(together, alone, strict=True)))
    return worst


def train(page: Page, arguments: argparse.Namespace) -> None:
    begin(page, "Training: a part of Table 1", TRAINING)
    folder = arguments.out / ("table1-brief" if arguments.brief else "table1")
    run_cells(cells(arguments.task, brief=arguments.brief), folder, jobs=arguments.jobs)
    table = beside_table(folder, RECORDED)
    print()
    print_table(table)
    page.table(table, level=3)
    page.words(DEPTHS)
    for name, picture in pictures_of(folder).items():
        page.picture(picture, {"curves.png": "Learning curves"}.get(name, "Inputs, targets and predictions"))
    page.heading("The recorded runs")
    page.words(
        "All cells of Table 1 with more epochs: `python -m experiments table1`. Records are in `results/table1`."
    )
    for whole in tables_of(RECORDED):
        page.table(whole, level=3)


def beside_table(directory: Path, recorded: Path) -> Table:
    """One row per cell of Table 1 in a directory, with the paper's figure and that of the recorded run."""
    now, before = (choose(results_of(Records(place)), "table1") for place in (directory, recorded))
    cells = [MatrixCell.from_json(record["config"]) for records in now.values() for record in records]
    is_comparable = all(cell.n == PAPER_SETUP[0] for cell in cells)
    rows = []
    for task, layers, method in sorted(now, key=lambda at: (TASKS.index(at[0]), at[1], METHODS.index(at[2]))):
        found = mean_error(now[task, layers, method], None)
        paper = PAPER1[method][task][LAYERS[task].index(layers)]
        earlier = mean_error(before.get((task, layers, method), ()), None)
        compared = verdict(found, paper) if found is not None and is_comparable and method == "bellnet" else MISSING
        rows.append((task, str(layers), NAMES[method], figure(found), figure(paper), figure(earlier), compared))
    head = ("task", "layers", "network", "now", "the paper", "recorded", "now is")
    trained = [cell for cell in cells if cell.is_learned]
    earlier_cells = [MatrixCell.from_json(record["config"]) for at in now for record in before.get(at, ())]
    n, train, test = PAPER_SETUP
    notes = [
        f"now: {_setup(trained)}",
        f"recorded: {_setup([cell for cell in earlier_cells if cell.is_learned])}",
        f"the paper: {train} examples, tested on {test} others; number of epochs not stated.",
        *[f"Not comparable: the paper has n={n}."] * (not is_comparable),
    ]
    if any(cell.task == "trace" and cell.readout == "mean" for cell in trained):
        notes.append("The readout of the trace is the mean over each orbit; the paper uses the maximum.")
    title = "A part of Table 1: mean square error on the test set"
    return Table(title, head, tuple(rows), tuple(notes), left=3)


def _setup(cells: list[MatrixCell]) -> str:
    """The number of examples and of epochs of cells, in words."""
    if not cells:
        return "nothing."

    def span(numbers: list[int]) -> str:
        return str(min(numbers)) if min(numbers) == max(numbers) else f"{min(numbers)} to {max(numbers)}"

    train, validation, epochs, test = (
        span([getattr(cell, name) for cell in cells]) for name in ("train", "validation", "epochs", "test")
    )
    return f"{train} examples, {validation} of them for validation; epochs: {epochs}; tested on {test} others."


def cells(tasks: Sequence[str], *, brief: bool) -> list[MatrixCell]:
    found = []
    for task in tasks:
        layers, epochs, rate = TRAINED[task]
        for cell in cells_of_table1(tasks=[task], layers=[layers], readouts=["mean"], learning_rates=[rate]):
            short = replace(cell, epochs=epochs, weight_decay=0.0, sizes=(40,)) if cell.is_learned else cell
            found.append(replace(short, **BRIEF) if brief else short)
    return found


def classify(page: Page, *, epochs: int) -> None:
    begin(page, "Graph classification beyond 1-WL", CLASSIFYING)
    train_set, test_set = train_circles(), test_circles()
    page.picture(draw_circles(), "A graph of each class")
    rows, models = [], {}
    for order, domain in ((2, "pairs of nodes"), (3, "triples of nodes")):
        model = models[f"order {order}"] = classifier(order, epochs).fit(*train_set)
        rows.append((f"order {order}", domain, f"{model.score(*train_set):.0%}", f"{model.score(*test_set):.0%}"))
    colours = max(refined_colours(graph) for graph in (*train_set[0], *test_set[0]))
    notes = (
        f"{len(train_set[0])} training graphs, {len(test_set[0])} test graphs; half of them in each class.",
        f"1-WL assigns {colours} colour{'s' if colours > 1 else ''} to every graph.",
    )
    head = ("GraphClassifier", "over", "training: 10 to 13 nodes", "test: 14 to 16 nodes")
    table = Table("Accuracy", head, tuple(rows), notes, left=2)
    print_table(table)
    page.table(table, level=3)
    page.picture(draw_accuracies(models), "The accuracy of both classifiers during training")


def classifier(order: int, epochs: int) -> GraphClassifier:
    return GraphClassifier(order=order, batch_size=4, max_epochs=epochs, patience=epochs, verbose=False, **OPTIONS)


def train_circles() -> tuple[list[Graph], list[int]]:
    return circles(CIRCLES["train"], 16, seed=0)


def test_circles() -> tuple[list[Graph], list[int]]:
    return circles(CIRCLES["test"], 40, seed=1)


def circles(sizes: Sequence[int], count: int, *, seed: int) -> tuple[list[Graph], list[int]]:
    sets = [generated.skip_links(count, n=n, skips=(2, 3), seed=seed) for n in sizes]
    return [graph for graphs, _ in sets for graph in graphs], [label for _, labels in sets for label in labels.tolist()]


def refined_colours(graph: Graph) -> int:
    """The number of colours of 1-WL (colour refinement)."""
    colours: list[Any] = [0] * graph.n
    for _ in range(graph.n):
        neighbours: list[list[Any]] = [[] for _ in colours]
        for node, other in graph.edge_index.T.tolist():
            neighbours[node].append(colours[other])
        refined = [(colour, tuple(sorted(near))) for colour, near in zip(colours, neighbours, strict=True)]
        numbers = {colour: number for number, colour in enumerate(sorted(set(refined)))}
        colours = [numbers[colour] for colour in refined]
    return len(set(colours))


def draw_circles() -> Any:
    figure = new_figure(5.2, 2.8)
    for axes, skip in zip(figure.subplots(1, 2), (2, 3), strict=True):
        turns = torch.arange(13) / 13 * 2 * torch.pi
        x, y = turns.sin(), turns.cos()
        for step in (1, skip):
            axes.plot(torch.stack([x, x.roll(-step)]), torch.stack([y, y.roll(-step)]), color="0.6", linewidth=1)
        axes.plot(x, y, "o", color="0.15", markersize=6)
        axes.set_title(f"class {skip - 2}: edges to nodes 1 and {skip} steps away", fontsize=9)
        axes.set(aspect="equal")
        axes.set_axis_off()
    return figure


def draw_accuracies(models: dict[str, GraphClassifier]) -> Any:
    panels = MethodPanels(
        ["training set", "validation set"], across="epoch", up="accuracy", scales=("linear", "linear")
    )
    for name, model in models.items():
        epochs = [record["epoch"] + 1 for record in model.history_]
        for panel, score in (("training set", "accuracy"), ("validation set", "validation_accuracy")):
            panels.method(panel, (epochs, [record[score] for record in model.history_]), name, dots=True)
    return panels.finish()


def begin(page: Page, title: str, text: str) -> None:
    print(f"\n{paint(title, bold=True, color=34)}\n\n{fill(text, WIDTH)}\n")
    page.heading(title)
    page.words(text)


def tick(ok: bool) -> str:
    return "✓" if ok else "✗"


def paint(text: str, *, color: int | None = None, bold: bool = False) -> str:
    if not sys.stdout.isatty() or "NO_COLOR" in os.environ:
        return text
    codes = [str(code) for code in ([1] if bold else []) + ([color] if color else [])]
    return f"\033[{';'.join(codes)}m{text}\033[0m"


if __name__ == "__main__":
    sys.exit(main())
