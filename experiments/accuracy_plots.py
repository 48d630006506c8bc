"""Learning curves of Table 3, from records: accuracy against epochs, averaged over the splits."""

from collections.abc import Mapping, Sequence
from statistics import fmean, pstdev
from typing import TYPE_CHECKING, Any

from bellnet.draw import Panels
from experiments.graph_cells import SETS, SPLITS
from experiments.sound import shown_of
from experiments.table3 import PAPER3, TITLES, Chosen, Epochs, choose_setups, rows_here
from experiments.tables import Finished

if TYPE_CHECKING:
    from matplotlib.figure import Figure

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
    panels = Panels(list(titles.values()), across="epoch", up="test accuracy, %", scales=("log", "linear"))
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
    few = [f"{row}: {count} split{'s' if count > 1 else ''}" for row, count in counts.items() if count < len(SPLITS)]
    return "; ".join(few)


def _curves(found: Chosen, epochs: Epochs) -> list[Sequence[Mapping[str, Any]]]:
    return [epochs[record["key"]] for record in found.records if epochs.get(record["key"])]


def _draw(
    panels: Panels, panel: str, found: Chosen, curves: list[Sequence[Mapping[str, Any]]], *, has_band: bool
) -> None:
    what, method = shown_of(found.cell), found.cell.row
    figures = [{epoch["epoch"]: 100 * epoch[what] for epoch in curve} for curve in curves]
    common = sorted(set.intersection(*map(set, figures)))
    together = [[split[number] for split in figures] for number in common]
    across = [number + 1 for number in common]
    means, spreads = [fmean(same) for same in together], [pstdev(same) for same in together]
    low, high = ([m + sign * s for m, s in zip(means, spreads, strict=True)] for sign in (-1, 1))
    panels.curve(panel, (across, means), method=method, kind="" if what == "test" else what)
    if what == "test" and has_band:
        panels.band(panel, across, (low, high), method=method)
