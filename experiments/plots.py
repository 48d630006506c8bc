"""Curves and pictures of Tables 1, 2 and 3, drawn from records."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from statistics import fmean, pstdev
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from bellnet.draw import new_figure
from experiments.graph_cell import SETS, SPLITS
from experiments.matrix_cell import LAYERS, METHODS, TABLES, TASKS, MatrixCell
from experiments.method_panels import MethodPanels, colour_of
from experiments.methods.base import AUTHORS
from experiments.results import curve_of
from experiments.table3 import PAPER3, TITLES, Chosen, Epochs, choose_setups, rows_here
from experiments.tables import PAPER1, PAPER2, PAPER_SETUP, Finished, choose

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


NAMES = {"bellnet": "bellnet", "hartford": "Hartford et al."}
"""What legends call the methods that have networks."""
TARGET = "target"
FEW = 10
"""So many epochs are marked one by one."""


def learning_curves(finished: Finished, epochs: Mapping[str, Sequence[Mapping[str, Any]]]) -> "Figure | None":
    """The validation error after each epoch, a panel for each task; of several tries, the one that the table shows.

    The paper's test errors are crosses at the end of our curves.
    """
    records = [record for table in TABLES for some in choose(finished, table).values() for record in some]
    shown = [cell for cell in (MatrixCell.from_json(record["config"]) for record in records) if epochs.get(cell.key)]
    tasks = [task for task in TASKS if any(cell.task == task for cell in shown)]
    if not tasks:
        return None
    panels = MethodPanels(tasks, across="epoch", up="validation error")
    for cell in sorted(shown, key=lambda cell: (METHODS.index(cell.method), cell.layers)):
        line = epochs[cell.key]
        across = [epoch["epoch"] + 1 for epoch in line]
        up = [epoch["validation"] for epoch in line]
        kind = cell.subject.removeprefix(cell.task).strip()
        panels.method(
            cell.task, (across, up), NAMES[cell.method], layers=cell.layers, kind=kind, dots=cell.epochs <= FEW
        )
        if cell.n == PAPER_SETUP[0] and cell.method == "bellnet" and cell.layers in LAYERS[cell.task]:
            paper = PAPER1["bellnet"][cell.task][LAYERS[cell.task].index(cell.layers)]
            panels.crosses(cell.task, ([across[-1]], [paper]), "the paper's test error")
    for task in tasks:
        if any(cell.n == PAPER_SETUP[0] for cell in shown):
            panels.level(task, PAPER1["trivial"][task][0], "trivial, the paper")
    return panels.finish()


def error_against_size(finished: Finished) -> "Figure | None":
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
            panels.vertical(task, n, "learned with so many nodes")
    return panels.finish()


def example_outputs(finished: Finished) -> "Figure | None":
    """An input of each task, its target, and what the networks say: those with the most layers."""
    found: dict[str, dict[str, tuple[MatrixCell, Any]]] = {}
    matrices = [record for record in finished if record["config"]["table"] in TABLES]
    cells = [(MatrixCell.from_json(record["config"]), record.get("output")) for record in matrices]
    for cell, said in sorted(cells, key=lambda pair: (TASKS.index(pair[0].task), -pair[0].layers)):
        if isinstance(said, list):  # a trace is one number, and the trivial predictor has nothing to show
            found.setdefault(cell.task, {}).setdefault(cell.method, (cell, said))
    if not found:
        return None
    methods = [method for method in METHODS if any(method in said for said in found.values())]
    from experiments.matrix_learner import test_data

    figure = new_figure(2.5 * (2 + len(methods)), 2.3 * len(found))
    grid = figure.subplots(len(found), 2 + len(methods), squeeze=False)
    for row, (task, networks) in zip(grid, found.items(), strict=True):
        cell = next(iter(networks.values()))[0]
        given, target = (first[0].squeeze(-1) for first in test_data(replace(cell, test=1), cell.n))
        _show(row[0], f"{task}: input", given, None)
        _show(row[1], "target", target, target)
        for axes, method in zip(row[2:], methods, strict=True):
            if method in networks:
                cell, kept = networks[method]
                said = torch.tensor(kept)
                if task == "singular":
                    said = said / said.norm().clamp(min=1e-12) * torch.sign((said * target).sum())
                error = float((said - target).square().mean())
                words = f"{NAMES[method]}, {cell.layers} layer{'s' if cell.layers > 1 else ''}: error {error:.2g}"
                _show(axes, words, said, target, method=NAMES[method])
            else:
                axes.set_axis_off()
    return figure


def _show(axes: "Axes", title: str, values: Tensor, target: Tensor | None, *, method: str = TARGET) -> None:
    """A matrix or a vector; what is said in the colours and on the scale of the target."""
    shown = values if target is None else target
    if values.ndim == 2:
        image = axes.imshow(values.tolist(), cmap="viridis", vmin=float(shown.min()), vmax=float(shown.max()))
        bar = axes.figure.colorbar(image, ax=axes, shrink=0.85)
        bar.ax.tick_params(labelsize=6, length=0)
        bar.outline.set_visible(False)
        axes.set_yticks([])
    else:
        axes.plot(shown.tolist(), color=colour_of(TARGET), linewidth=2.2)
        if method != TARGET:
            axes.plot(values.tolist(), color=colour_of(method), linewidth=1)
    axes.set_title(title, fontsize=7, loc="left")
    axes.set(xticks=[], box_aspect=1)
    axes.tick_params(labelsize=6, length=0)
    for spine in axes.spines.values():
        spine.set_visible(False)


MOST_BANDS = 4
"""Where more methods share a panel, the bands of their deviations would cover each other: only means are drawn."""


def accuracy_curves(finished: Finished, epochs: Epochs) -> "Figure | None":
    """A panel for each data set: what was measured after each epoch, mean over the splits and, of a few, its deviation.

    That is the test accuracy, but the validation accuracy of the paper's network with the protocol "nested", which
    records no other. Methods without epochs have no curve.
    """
    chosen = {place: found for place, found in choose_setups(finished).items() if _curves(found, epochs)}
    names = [name for name in SETS if any(place[0] == name for place in chosen)]
    if not names:
        return None
    titles = {name: TITLES[SETS.index(name)] for name in names}
    panels = MethodPanels(list(titles.values()), across="epoch", up="test accuracy, %", scales=("log", "linear"))
    rows = rows_here()
    chosen = {place: chosen[place] for place in sorted(chosen, key=lambda place: (rows.index(place[1]), place))}
    for name, found in ((place[0], found) for place, found in chosen.items()):
        has_band = sum(place[0] == name for place in chosen) <= MOST_BANDS
        _draw(panels, titles[name], found, _curves(found, epochs), has_band=has_band)
    for name, title in titles.items():
        panels.level(title, float(PAPER3[SETS.index(name)].partition(" ")[0]), "the paper")
        if words := _fewer([found for place, found in chosen.items() if place[0] == name], epochs):
            panels.note(title, words)
    return panels.finish()


def _fewer(shown: Sequence[Chosen], epochs: Epochs) -> str:
    """What is a mean over fewer splits than there are, in words."""
    counts = {found.cell.row: len(_curves(found, epochs)) for found in shown}
    few = [
        f"{row.replace(AUTHORS, '')}: {count} split{'s' if count > 1 else ''}"
        for row, count in counts.items()
        if count < len(SPLITS)
    ]
    return "; ".join(few)


def _curves(found: Chosen, epochs: Epochs) -> list[Sequence[Mapping[str, Any]]]:
    return [epochs[record["key"]] for record in found.records if epochs.get(record["key"])]


def _draw(
    panels: MethodPanels, panel: str, found: Chosen, curves: list[Sequence[Mapping[str, Any]]], *, has_band: bool
) -> None:
    what, method = curve_of(curves[0]), found.cell.row
    figures = [{epoch["epoch"]: 100 * epoch[what] for epoch in curve} for curve in curves]
    common = sorted(set.intersection(*map(set, figures)))
    together = [[split[number] for split in figures] for number in common]
    across = [number + 1 for number in common]
    means, spreads = [fmean(same) for same in together], [pstdev(same) for same in together]
    low, high = ([m + sign * s for m, s in zip(means, spreads, strict=True)] for sign in (-1, 1))
    panels.method(panel, (across, means), method, kind="" if what == "test" else what)
    if what == "test" and has_band:
        panels.band(panel, across, (low, high), method=method)
