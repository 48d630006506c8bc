"""Pictures of Tables 1, 2 and 3, drawn from records: a colour is a method, a line style a number of layers."""

from collections.abc import Sequence
from dataclasses import replace
from statistics import fmean, pstdev
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from bellnet.draw import Panels, new_figure
from experiments.graph_cell import SETS, SPLITS
from experiments.matrix_cell import LAYERS, METHODS, TABLES, TASKS, MatrixCell
from experiments.methods.base import AUTHORS
from experiments.records import Record
from experiments.table3 import PAPER3, TITLES, Chosen, choose_setups, rows_here
from experiments.tables import PAPER1, PAPER2, PAPER_SETUP, choose

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

BLACK, BLUE, SKY = "#222222", "#0072b2", "#56b4e9"
COLOURS = {
    "bellnet": BLUE,
    "Hartford et al.": "#d55e00",
    "IGN (authors' set-up), dense": BLUE,
    "IGN (authors' set-up), sparse": SKY,
    "GraphClassifier": "#009e73",
    "GIN": "#cc79a7",
    "DGCNN": "#e69f00",
    "DiffPool": "#8c564b",
    "ECC": "#a0a000",
    "order 2": SKY,
    "order 3": BLUE,
    "target": "#c9c9c9",
}
OTHERS = "#7f7f7f"
"""The colour of methods that have none of their own."""
STROKES: tuple[Any, ...] = ("solid", (0, (5, 1.6)), (0, (6, 1.6, 1.2, 1.6)), (0, (1.2, 1.3)))
"""The line styles of one, two, three and four layers; five begin again."""
KINDS: dict[str, dict[str, Any]] = {
    "": {"linewidth": 1.4},
    "validation": {"linewidth": 0.9, "marker": "o", "markersize": 2.6, "markevery": 0.08, "markerfacecolor": "white"},
    "per node": {"linewidth": 1.5, "marker": "s", "markersize": 3.5},
}
"""What else a curve can be, apart from method and layers."""
ORDER_METHOD, ORDER_LAYERS, ORDER_KIND, ORDER_REFERENCE = range(-3, 1)
"""The order of the legend."""

Numbers = Sequence[float]


class MethodPanels(Panels):
    """Panels for the curves of methods, and for figures to compare them with."""

    def method(
        self,
        panel: str,
        points: tuple[Numbers, Numbers],
        method: str,
        *,
        layers: int | None = None,
        kind: str = "",
        dots: bool = False,
    ) -> None:
        """The curve of a method.

        Args:
            panel: The title of the panel.
            points: The coordinates, across and up.
            method: Its name, which chooses the colour.
            layers: Its number of layers, which chooses the line style; None where all are alike.
            kind: What else it is, one of `KINDS`.
            dots: Whether every point is marked, since there are few.
        """
        look = {"marker": "o", "markersize": 3.5, **KINDS[kind]} if dots else KINDS[kind]
        stroke = "solid" if layers is None else STROKES[(layers - 1) % len(STROKES)]
        above = 3 if method.startswith(("bellnet", "IGN")) else 2
        self.axes[panel].plot(*map(list, points), color=colour_of(method), linestyle=stroke, zorder=above, **look)
        self.explain(method, ORDER_METHOD, color=colour_of(method), linewidth=2.5)
        if layers is not None:
            words = f"{layers} layer{'s' if layers > 1 else ''}"
            self.explain(words, ORDER_LAYERS, color=BLACK, linestyle=stroke, linewidth=1.5)
        if kind:
            self.explain(kind, ORDER_KIND, color=BLACK, **{**KINDS[kind], "markevery": 1})

    def band(self, panel: str, across: Numbers, edges: tuple[Numbers, Numbers], *, method: str) -> None:
        """The area around a curve, from the lower to the upper edge."""
        self.axes[panel].fill_between(across, *edges, color=colour_of(method), alpha=0.1, linewidth=0)

    def crosses(self, panel: str, points: tuple[Numbers, Numbers], label: str) -> None:
        """Points to compare with."""
        self.curve(panel, points, label, color=BLACK, marker="x", linestyle="none", markersize=6, zorder=4)

    def level(self, panel: str, height: float, label: str) -> None:
        """One figure to compare with, whatever is across."""
        look: dict[str, Any] = {"color": "#6b6b6b", "linewidth": 0.9, "linestyle": ":", "zorder": 1}
        self.axes[panel].axhline(height, **look)
        self.explain(label, ORDER_REFERENCE, **look)

    def note(self, panel: str, words: str) -> None:
        """Words below a panel that hold for it alone."""
        axes = self.axes[panel]
        axes.set_xlabel(f"{axes.get_xlabel()}\n{words}")


def colour_of(method: str) -> str:
    """The colour of a method, the same in all pictures."""
    return COLOURS.get(method, OTHERS)


NAMES = {"bellnet": "bellnet", "hartford": "Hartford et al."}
"""The names in legends of the methods that have networks."""
FEW = 10
"""Up to so many epochs are marked one by one."""
MAX_BANDS = 4
"""With more methods in a panel, bands of deviations would cover each other, and only means are drawn."""


def learning_curves(finished: Sequence[Record]) -> "Figure | None":
    """The validation error after each epoch, a panel for each task, with the paper's test errors as crosses."""
    shown = [record for table in TABLES for some in choose(finished, table).values() for record in some]
    cells = [(MatrixCell.from_json(record["config"]), record["curves"]) for record in shown if record["curves"]]
    tasks = [task for task in TASKS if any(cell.task == task for cell, _ in cells)]
    if not tasks:
        return None
    panels = MethodPanels(tasks, across="epoch", up="validation error")
    for cell, curves in sorted(cells, key=lambda pair: (METHODS.index(pair[0].method), pair[0].layers)):
        errors = curves["validation"]
        points = list(range(1, len(errors) + 1)), errors
        kind = cell.subject.removeprefix(cell.task).strip()
        panels.method(cell.task, points, NAMES[cell.method], layers=cell.layers, kind=kind, dots=cell.epochs <= FEW)
        if cell.n == PAPER_SETUP[0] and cell.method == "bellnet" and cell.layers in LAYERS[cell.task]:
            paper = PAPER1["bellnet"][cell.task][LAYERS[cell.task].index(cell.layers)]
            panels.crosses(cell.task, ([len(errors)], [paper]), "the paper's test error")
    if any(cell.n == PAPER_SETUP[0] for cell, _ in cells):
        for task in tasks:
            panels.level(task, PAPER1["trivial"][task][0], "trivial, the paper")
    return panels.finish()


def error_against_size(finished: Sequence[Record]) -> "Figure | None":
    """The test error against the number of nodes, a panel for each task, with the paper's figures as crosses."""
    found = {place: records for table in TABLES for place, records in choose(finished, table).items()}
    shown = {place: records for place, records in found.items() if any(len(record["errors"]) > 1 for record in records)}
    tasks = [task for task in TASKS if any(subject.startswith(task) for subject, _, _ in shown)]
    if not tasks:
        return None
    panels = MethodPanels(tasks, across="nodes", up="test error")
    for subject, layers, method in sorted(shown, key=lambda place: (METHODS.index(place[2]), place[1], place[0])):
        task, _, kind = subject.partition(" ")
        for record in shown[subject, layers, method]:
            sizes = sorted(map(int, record["errors"]))
            errors = [record["errors"][str(n)] for n in sizes]
            panels.method(task, (sizes, errors), NAMES[method], layers=layers, kind=kind, dots=True)
    for task in tasks:
        if task in PAPER2:
            panels.crosses(task, (list(PAPER2[task]), list(PAPER2[task].values())), "the paper, Table 2")
        for n in {record["config"]["n"] for records in shown.values() for record in records}:
            panels.vertical(task, n, "number of nodes in training")
    return panels.finish()


def example_outputs(finished: Sequence[Record]) -> "Figure | None":
    """An input of each task, its target, and the outputs of the networks with the most layers."""
    from experiments.matrix_learner import test_data

    found: dict[str, dict[str, tuple[MatrixCell, Tensor]]] = {}
    records = [record for record in finished if record["config"]["table"] in TABLES]
    cells = [(MatrixCell.from_json(record["config"]), record.get("output")) for record in records]
    for cell, output in sorted(cells, key=lambda pair: (TASKS.index(pair[0].task), -pair[0].layers)):
        if isinstance(output, list):  # a trace is one number, and the trivial predictor has no output
            found.setdefault(cell.task, {}).setdefault(cell.method, (cell, torch.tensor(output)))
    if not found:
        return None
    methods = [method for method in METHODS if any(method in networks for networks in found.values())]
    figure = new_figure(2.5 * (2 + len(methods)), 2.3 * len(found))
    grid = figure.subplots(len(found), 2 + len(methods), squeeze=False)
    for row, (task, networks) in zip(grid, found.items(), strict=True):
        cell = next(iter(networks.values()))[0]
        inputs, target = (values[0].squeeze(-1) for values in test_data(replace(cell, test=1), cell.n))
        _draw_values(row[0], f"{task}: input", inputs, inputs)
        _draw_values(row[1], "target", target, target)
        for axes, method in zip(row[2:], methods, strict=True):
            if method not in networks:
                axes.set_axis_off()
                continue
            cell, output = networks[method]
            if task == "singular":
                output = output / output.norm().clamp(min=1e-12) * torch.sign((output * target).sum())
            error = float((output - target).square().mean())
            title = f"{NAMES[method]}, {cell.layers} layer{'s' if cell.layers > 1 else ''}: error {error:.2g}"
            _draw_values(axes, title, output, target, method=NAMES[method])
    return figure


def _draw_values(axes: "Axes", title: str, values: Tensor, target: Tensor, *, method: str = "target") -> None:
    """A matrix or a vector, in the colours and on the scale of the target."""
    if values.ndim == 2:
        image = axes.imshow(values.tolist(), cmap="viridis", vmin=float(target.min()), vmax=float(target.max()))
        bar = axes.figure.colorbar(image, ax=axes, shrink=0.85)
        bar.ax.tick_params(labelsize=6, length=0)
        bar.outline.set_visible(False)
        axes.set_yticks([])
    else:
        axes.plot(target.tolist(), color=colour_of("target"), linewidth=2.2)
        if method != "target":
            axes.plot(values.tolist(), color=colour_of(method), linewidth=1)
    axes.set_title(title, fontsize=7, loc="left")
    axes.set(xticks=[], box_aspect=1)
    axes.tick_params(labelsize=6, length=0)
    for spine in axes.spines.values():
        spine.set_visible(False)


def accuracy_curves(finished: Sequence[Record]) -> "Figure | None":
    """A panel for each data set: the accuracy after each epoch, mean over the splits and, of a few, its deviation.

    It is the test accuracy where that is recorded, otherwise the validation accuracy. Kernels have no curve.
    """
    chosen = {place: found for place, found in choose_setups(finished).items() if _curves(found)}
    names = [name for name in SETS if any(place[0] == name for place in chosen)]
    if not names:
        return None
    titles = {name: TITLES[SETS.index(name)] for name in names}
    panels = MethodPanels(list(titles.values()), across="epoch", up="test accuracy, %", scales=("log", "linear"))
    rows = rows_here()
    for name, title in titles.items():
        of_name = [chosen[place] for place in sorted(chosen, key=lambda place: (rows.index(place[1]), place))]
        of_name = [found for found in of_name if found.cell.name == name]
        for found in of_name:
            _draw_accuracy(panels, title, found, has_band=len(of_name) <= MAX_BANDS)
        panels.level(title, float(PAPER3[SETS.index(name)].partition(" ")[0]), "the paper")
        counts = {found.cell.row.replace(AUTHORS, ""): len(_curves(found)) for found in of_name}
        few = [f"{row}: {n} split{'s' if n > 1 else ''}" for row, n in counts.items() if n < len(SPLITS)]
        if few:
            panels.note(title, "; ".join(few))
    return panels.finish()


def _curves(found: Chosen) -> list[dict[str, Any]]:
    return [record["curves"] for record in found.records if record["curves"]]


def _draw_accuracy(panels: MethodPanels, panel: str, found: Chosen, *, has_band: bool) -> None:
    curves = _curves(found)
    figure = "test" if all("test" in some for some in curves) else "validation"
    epochs = [[100 * value for value in values] for values in zip(*(some[figure] for some in curves), strict=False)]
    across = list(range(1, len(epochs) + 1))
    means, spreads = [fmean(values) for values in epochs], [pstdev(values) for values in epochs]
    panels.method(panel, (across, means), found.cell.row, kind="" if figure == "test" else figure)
    if figure == "test" and has_band:
        low, high = ([m + sign * s for m, s in zip(means, spreads, strict=True)] for sign in (-1, 1))
        panels.band(panel, across, (low, high), method=found.cell.row)
