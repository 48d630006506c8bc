"""Pictures of experiments, from records: learning curves, error against size, inputs and outputs."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from bellnet import data
from bellnet.experiments.config import TABLES, TASKS, Cell
from bellnet.experiments.nets import seed_of_unseen
from bellnet.experiments.tables import PAPER1, PAPER2, Finished, choose

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# The colours of Okabe and Ito, told apart with every kind of colour vision.
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00")
STYLES = {"ours": "-", "hartford": "--"}


def learning_curves(finished: Finished, epochs: Mapping[str, Sequence[Mapping[str, Any]]]) -> "Figure | None":
    """The validation error after each epoch, a panel for each task; of several tries, the one that the table shows."""
    records = [record for table in TABLES for some in choose(finished, table).values() for record in some]
    shown = [cell for cell in (Cell.from_json(record["config"]) for record in records) if epochs.get(cell.key)]
    tasks = [task for task in TASKS if any(cell.task == task for cell in shown)]
    if not tasks:
        return None
    figure = new_figure(3.4 * len(tasks), 3.2)
    for axes, task in zip(figure.subplots(1, len(tasks), squeeze=False)[0], tasks, strict=True):
        for cell in shown:
            if cell.task == task:
                line = epochs[cell.key]
                axes.plot(
                    [epoch["epoch"] + 1 for epoch in line],
                    [epoch["validation"] for epoch in line],
                    STYLES[cell.method],
                    color=COLOURS[(cell.layers - 1) % len(COLOURS)],
                    linewidth=1,
                    label=f"{cell.layers}, {cell.method}" + cell.subject.removeprefix(task),
                )
        trivial = PAPER1["trivial"][task][0]
        if any(cell.n == 40 for cell in shown):
            axes.axhline(trivial, color="#6b6b6b", linewidth=0.6, linestyle=":")
        dress(axes, task, "epoch", "validation error")
        axes.legend(fontsize=6, frameon=False)
    return figure


def error_against_size(finished: Finished) -> "Figure | None":
    """The test error against the number of nodes, a panel for each task, with the paper's figures as crosses."""
    found = {place: records for table in TABLES for place, records in choose(finished, table).items()}
    shown = {place: records for place, records in found.items() if any(len(record["errors"]) > 1 for record in records)}
    panels = [task for task in TASKS if any(subject.startswith(task) for subject, _, _ in shown)]
    if not panels:
        return None
    figure = new_figure(3.4 * len(panels), 3.2)
    for axes, task in zip(figure.subplots(1, len(panels), squeeze=False)[0], panels, strict=True):
        for (subject, layers, method), records in sorted(shown.items()):
            if not subject.startswith(task):
                continue
            for record in records:
                sizes = sorted(map(int, record["errors"]))
                axes.plot(
                    sizes,
                    [record["errors"][str(n)] for n in sizes],
                    STYLES[method],
                    marker="o" if subject == task else "s",
                    markersize=3,
                    linewidth=1,
                    color=COLOURS[(layers - 1) % len(COLOURS)] if subject == task else COLOURS[-1],
                    label=f"{layers}, {method}" + subject.removeprefix(task),
                )
        paper = PAPER2.get(task)
        if paper:
            axes.plot(list(paper), list(paper.values()), "x", color="#222222", label="the paper, Table 2")
        learned = {record["config"]["n"] for records in shown.values() for record in records}
        for n in learned:
            axes.axvline(n, color="#6b6b6b", linewidth=0.6, linestyle=":")
        dress(axes, task, "nodes (learned with the dotted number)", "test error")
        axes.legend(fontsize=6, frameon=False)
    return figure


def example_outputs(finished: Finished) -> "Figure | None":
    """An input of each task, its target, and what the networks say: those with the most layers."""
    found: dict[tuple[str, str], tuple[Cell, Any]] = {}
    matrices = [record for record in finished if record["config"]["table"] in TABLES]
    cells = [(Cell.from_json(record["config"]), record.get("said")) for record in matrices]
    for cell, said in sorted(cells, key=lambda pair: (TASKS.index(pair[0].task), -pair[0].layers)):
        if isinstance(said, list):  # a trace is one number, and the trivial predictor has nothing to show
            found.setdefault((cell.task, cell.method), (cell, said))
    if not found:
        return None
    figure = new_figure(9.2, 2.3 * len(found))
    grid = figure.subplots(len(found), 4, squeeze=False)
    for row, (cell, kept) in zip(grid, found.values(), strict=True):
        given, target = (
            first[0].squeeze(-1) for first in data.synthetic.make(cell.task, 1, cell.n, seed=seed_of_unseen(cell))
        )
        said = torch.tensor(kept)
        if cell.task == "singular":
            said = said / said.norm().clamp(min=1e-12) * torch.sign((said * target).sum())
        names = ("input", "target", cell.title, "difference")
        for axes, name, values in zip(row, names, (given, target, said, said - target), strict=True):
            if values.ndim == 2:
                image = axes.imshow(values.tolist(), **_colours(name, values, target))
                figure.colorbar(image, ax=axes, shrink=0.8).ax.tick_params(labelsize=6)
            else:
                axes.plot(values.tolist(), color=COLOURS[0], linewidth=1)
            axes.set_title(name, fontsize=7)
            axes.tick_params(labelsize=6)
    return figure


def _colours(name: str, values: Tensor, target: Tensor) -> dict[str, Any]:
    """Target and prediction in the same colours, differences around white."""
    if name == "difference":
        most = float(values.abs().max()) or 1.0
        return {"cmap": "coolwarm", "vmin": -most, "vmax": most}
    if name == "input":
        return {"cmap": "viridis"}
    return {"cmap": "viridis", "vmin": float(target.min()), "vmax": float(target.max())}


def new_figure(width: float, height: float) -> "Figure":
    """An empty figure of that size in inches."""
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), layout="constrained")


def dress(axes: "Axes", title: str, across: str, up: str, *, scale: str = "log") -> None:
    """Title, names and ticks of a panel."""
    axes.set_title(title, fontsize=9)
    axes.set_xlabel(across, fontsize=8)
    axes.set_ylabel(up, fontsize=8)
    lines: list[Any] = [line.get_ydata() for line in axes.lines]
    positive = any(height > 0 for heights in lines for height in heights)
    axes.set_yscale(scale if positive else "linear")  # zeros alone have no logarithm to show
    axes.tick_params(which="both", labelsize=7)
    axes.locator_params(axis="x", integer=True)
