"""Pictures of experiments, from records: learning curves, error against size, inputs and outputs."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from bellnet.draw import Panels, colour_of, new_figure
from experiments.config import LAYERS, METHODS, TABLES, TASKS, Cell
from experiments.data import synthetic
from experiments.nets import seed_of_unseen
from experiments.tables import PAPER1, PAPER2, PAPER_SETUP, Finished, choose

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

NAMES = {"ours": "ours", "hartford": "Hartford et al."}
"""What legends call the methods that have networks."""
TARGET = "target"
FEW = 10
"""So many epochs are marked one by one."""


def learning_curves(finished: Finished, epochs: Mapping[str, Sequence[Mapping[str, Any]]]) -> "Figure | None":
    """The validation error after each epoch, a panel for each task; of several tries, the one that the table shows.

    The paper's test errors are crosses at the end of our curves.
    """
    records = [record for table in TABLES for some in choose(finished, table).values() for record in some]
    shown = [cell for cell in (Cell.from_json(record["config"]) for record in records) if epochs.get(cell.key)]
    tasks = [task for task in TASKS if any(cell.task == task for cell in shown)]
    if not tasks:
        return None
    panels = Panels(tasks, across="epoch", up="validation error")
    for cell in sorted(shown, key=lambda cell: (METHODS.index(cell.method), cell.layers)):
        line = epochs[cell.key]
        across = [epoch["epoch"] + 1 for epoch in line]
        up = [epoch["validation"] for epoch in line]
        kind = cell.subject.removeprefix(cell.task).strip()
        panels.curve(
            cell.task, (across, up), method=NAMES[cell.method], layers=cell.layers, kind=kind, dots=cell.epochs <= FEW
        )
        if cell.n == PAPER_SETUP[0] and cell.method == "ours" and cell.layers in LAYERS[cell.task]:
            paper = PAPER1["ours"][cell.task][LAYERS[cell.task].index(cell.layers)]
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
    panels = Panels(tasks, across="nodes", up="test error")
    for subject, layers, method in sorted(shown, key=lambda place: (METHODS.index(place[2]), place[1], place[0])):
        task, _, kind = subject.partition(" ")
        for record in shown[subject, layers, method]:
            sizes = sorted(map(int, record["errors"]))
            errors = [record["errors"][str(n)] for n in sizes]
            panels.curve(task, (sizes, errors), method=NAMES[method], layers=layers, kind=kind, dots=True)
    for task in tasks:
        if task in PAPER2:
            panels.crosses(task, (list(PAPER2[task]), list(PAPER2[task].values())), "the paper, Table 2")
        for n in {record["config"]["n"] for records in shown.values() for record in records}:
            panels.place(task, n, "learned with so many nodes")
    return panels.finish()


def example_outputs(finished: Finished) -> "Figure | None":
    """An input of each task, its target, and what the networks say: those with the most layers."""
    found: dict[str, dict[str, tuple[Cell, Any]]] = {}
    matrices = [record for record in finished if record["config"]["table"] in TABLES]
    cells = [(Cell.from_json(record["config"]), record.get("said")) for record in matrices]
    for cell, said in sorted(cells, key=lambda pair: (TASKS.index(pair[0].task), -pair[0].layers)):
        if isinstance(said, list):  # a trace is one number, and the trivial predictor has nothing to show
            found.setdefault(cell.task, {}).setdefault(cell.method, (cell, said))
    if not found:
        return None
    methods = [method for method in METHODS if any(method in said for said in found.values())]
    figure = new_figure(2.5 * (2 + len(methods)), 2.3 * len(found))
    grid = figure.subplots(len(found), 2 + len(methods), squeeze=False)
    for row, (task, networks) in zip(grid, found.items(), strict=True):
        cell = next(iter(networks.values()))[0]
        given, target = (first[0].squeeze(-1) for first in synthetic.make(task, 1, cell.n, seed=seed_of_unseen(cell)))
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
