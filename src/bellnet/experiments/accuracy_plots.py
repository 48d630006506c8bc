"""Learning curves of Table 3, from records: accuracy against epochs, averaged over the splits."""

from collections.abc import Mapping, Sequence
from statistics import fmean, pstdev
from typing import TYPE_CHECKING, Any

from bellnet.experiments.graph_cells import SETS
from bellnet.experiments.plots import COLOURS, dress, new_figure
from bellnet.experiments.sound import shown_of
from bellnet.experiments.table3 import OURS, PAPER3, TITLES, Chosen, Epochs, choose_setups, rows_here
from bellnet.experiments.tables import Finished

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MORE_COLOURS = ("#56b4e9", "#8c564b", "#7f7f7f", "#bcbd22")
STYLE_OF = {"test": "-", "validation": "--"}
IN_A_ROW = 4


def accuracy_curves(finished: Finished, epochs: Epochs) -> "Figure | None":
    """A panel for each data set: what was measured after each epoch, mean and standard deviation over the splits.

    That is the test accuracy, but the validation accuracy of the paper's network with the protocol "nested", which
    records no other. Methods without epochs have no curve.
    """
    chosen = {place: found for place, found in choose_setups(finished).items() if _curves(found, epochs)}
    names = [name for name in SETS if any(place[0] == name for place in chosen)]
    if not names:
        return None
    curved = [row for row in rows_here() if row in OURS or any(place[1] == row for place in chosen)]
    colours = dict(zip(curved, [*COLOURS, *MORE_COLOURS], strict=False))
    columns = min(len(names), IN_A_ROW)
    rows = -(-len(names) // columns)
    figure = new_figure(max(3.4 * columns, 4.5), 3.2 * rows)
    panels = figure.subplots(rows, columns, squeeze=False).flatten().tolist()
    for axes in panels[len(names) :]:
        axes.set_axis_off()
    for axes, name in zip(panels, names, strict=False):
        for place, found in sorted(chosen.items()):
            if place[0] == name:
                _draw(axes, found, _curves(found, epochs), colours[place[1]])
        number = SETS.index(name)
        axes.axhline(float(PAPER3[number].partition(" ")[0]), color="#6b6b6b", linewidth=0.6, linestyle=":")
        dress(axes, TITLES[number], "epoch (dotted: the paper)", "accuracy, %", scale="linear")
        axes.legend(fontsize=6, frameon=False)
    return figure


def _curves(found: Chosen, epochs: Epochs) -> list[Sequence[Mapping[str, Any]]]:
    return [epochs[record["key"]] for record in found.records if epochs.get(record["key"])]


def _draw(axes: "Axes", found: Chosen, curves: list[Sequence[Mapping[str, Any]]], colour: str) -> None:
    what = shown_of(found.cell)
    figures = [{epoch["epoch"]: 100 * epoch[what] for epoch in curve} for curve in curves]
    common = sorted(set.intersection(*map(set, figures)))
    together = [[split[number] for split in figures] for number in common]
    across = [number + 1 for number in common]
    means, spreads = [fmean(same) for same in together], [pstdev(same) for same in together]
    label = f"{found.cell.row}, {what}, {len(curves)} split{'s' if len(curves) > 1 else ''}"
    axes.plot(across, means, STYLE_OF[what], color=colour, linewidth=1, label=label)
    low, high = ([m + sign * s for m, s in zip(means, spreads, strict=True)] for sign in (-1, 1))
    axes.fill_between(across, low, high, color=colour, alpha=0.12, linewidth=0)
