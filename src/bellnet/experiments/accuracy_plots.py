"""Learning curves of Table 3, from records: accuracy against epochs, averaged over the splits."""

from collections.abc import Mapping, Sequence
from statistics import fmean, pstdev
from typing import TYPE_CHECKING, Any

from bellnet.experiments.graph_cells import SETS
from bellnet.experiments.plots import COLOURS, dress, new_figure
from bellnet.experiments.table3 import PAPER3, TITLES, Chosen, Epochs, choose_setups
from bellnet.experiments.tables import Finished

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COLOUR_OF = {"dense": COLOURS[0], "sparse": COLOURS[1]}
STYLE_OF = {"fixed": "-", "nested": "--"}
IN_A_ROW = 4


def accuracy_curves(finished: Finished, epochs: Epochs) -> "Figure | None":
    """A panel for each data set: what was measured after each epoch, mean and standard deviation over the splits.

    That is the test accuracy with the protocol "fixed" and the validation accuracy with "nested".
    """
    chosen = {place: found for place, found in choose_setups(finished).items() if _curves(found, epochs)}
    names = [name for name in SETS if any(place[0] == name for place in chosen)]
    if not names:
        return None
    columns = min(len(names), IN_A_ROW)
    rows = -(-len(names) // columns)
    figure = new_figure(max(3.4 * columns, 4.5), 3.2 * rows)
    panels = figure.subplots(rows, columns, squeeze=False).flatten().tolist()
    for axes in panels[len(names) :]:
        axes.set_axis_off()
    for axes, name in zip(panels, names, strict=False):
        for place, found in sorted(chosen.items()):
            if place[0] == name:
                _draw(axes, found, _curves(found, epochs))
        number = SETS.index(name)
        axes.axhline(float(PAPER3[number].partition(" ")[0]), color="#6b6b6b", linewidth=0.6, linestyle=":")
        dress(axes, TITLES[number], "epoch (dotted: the paper)", "accuracy, %", scale="linear")
        axes.legend(fontsize=6, frameon=False)
    return figure


def _curves(found: Chosen, epochs: Epochs) -> list[Sequence[Mapping[str, Any]]]:
    return [epochs[record["key"]] for record in found.records if epochs.get(record["key"])]


def _draw(axes: "Axes", found: Chosen, curves: list[Sequence[Mapping[str, Any]]]) -> None:
    what = "test" if found.cell.protocol == "fixed" else "validation"
    figures = [{epoch["epoch"]: 100 * epoch[what] for epoch in curve} for curve in curves]
    common = sorted(set.intersection(*map(set, figures)))
    together = [[split[number] for split in figures] for number in common]
    across = [number + 1 for number in common]
    means, spreads = [fmean(same) for same in together], [pstdev(same) for same in together]
    colour, splits = COLOUR_OF[found.cell.layout], f"{len(curves)} split{'s' if len(curves) > 1 else ''}"
    label = f"{found.cell.layout}, {what}, {splits}"
    axes.plot(across, means, STYLE_OF[found.cell.protocol], color=colour, linewidth=1, label=label)
    low, high = ([m + sign * s for m, s in zip(means, spreads, strict=True)] for sign in (-1, 1))
    axes.fill_between(across, low, high, color=colour, alpha=0.12, linewidth=0)
