"""One diagram as dots and lines: source slots in an upper row, target slots in a lower one, equal nodes joined.

A block that crosses from source to target has a colour of its own; the number of those is the rank. Blocks that do
not cross are grey: above they are summed over, below repeated along. A slot alone in its block and not crossing is
an open dot. The shape of a dot is its node set.
"""

from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

from bellnet.combinatorics import blocks_of
from bellnet.draw import style
from bellnet.plan import Diagram, Plan

if TYPE_CHECKING:
    from matplotlib.axes import Axes

SLOT = 0.3
DEPTH = 0.52
AROUND = 0.13
MARKERS = (("o", "●"), ("s", "■"), ("D", "◆"), ("^", "▲"), ("v", "▼"), ("P", "✚"), ("X", "✖"))

Point = tuple[float, float]


def panel_size(the_plan: Plan) -> tuple[float, float]:
    """The size of the panels of a plan, all of one size: room for the slots and for the longest name."""
    n_slots = max(len(the_plan.spec.source), len(the_plan.spec.target), 1)
    name = max((diagram.name for diagram in the_plan.diagrams), key=len)
    return max((n_slots - 1) * SLOT + 4 * AROUND, style.width_of_name(name)), DEPTH + 2 * AROUND


def draw_diagram(axes: "Axes", diagram: Diagram, panel: tuple[float, float]) -> None:
    """Draw a diagram on axes of this size."""
    axes.set(xlim=(0, panel[0]), ylim=(-AROUND, DEPTH + AROUND))
    axes.axis("off")
    for rail in (0.0, DEPTH):
        axes.plot([0, panel[0]], [rail, rail], color=style.FAINT, linewidth=style.THIN * 2, zorder=0)
    sets = diagram.source_sets + diagram.target_sets
    places = _places(len(diagram.source_sets), len(diagram.target_sets), panel[0])
    n_source = len(diagram.source_sets)
    for number, block in enumerate(blocks_of(diagram.partition)):
        crosses = number in diagram.crossing
        color = style.PALETTE[diagram.crossing.index(number) % len(style.PALETTE)] if crosses else style.SOFT
        upper = [places[slot] for slot in block if slot < n_source]
        lower = [places[slot] for slot in block if slot >= n_source]
        for row, inwards in ((upper, -1), (lower, 1)):
            for start, end in pairwise(row):
                _arc(axes, start, end, inwards, color)
        if crosses:
            _line(axes, *_closest(upper, lower), color)
        for slot in block:
            x, y = places[slot]
            face = color if crosses or len(block) > 1 else style.PAPER
            axes.plot(
                x, y, marker(sets[slot])[0], markersize=5.5, markerfacecolor=face, markeredgecolor=color, zorder=3
            )


def marker(node_set: int) -> tuple[str, str]:
    """The shape of the dots of a node set, for matplotlib and as a letter."""
    return MARKERS[node_set % len(MARKERS)]


def _places(n_source: int, n_target: int, width: float) -> list[Point]:
    def row(count: int, y: float) -> list[Point]:
        left = (width - (count - 1) * SLOT) / 2
        return [(left + number * SLOT, y) for number in range(count)]

    return row(n_source, DEPTH) + row(n_target, 0.0)


def _closest(upper: Sequence[Point], lower: Sequence[Point]) -> tuple[Point, Point]:
    return min(((above, below) for above in upper for below in lower), key=lambda pair: abs(pair[0][0] - pair[1][0]))


def _arc(axes: "Axes", start: Point, end: Point, inwards: int, color: str) -> None:
    depth = start[1] + inwards * min(0.6 * (end[0] - start[0]), 0.58 * DEPTH)
    _curve(axes, [start, (start[0], depth), (end[0], depth), end], color)


def _line(axes: "Axes", above: Point, below: Point, color: str) -> None:
    middle = (above[1] + below[1]) / 2
    _curve(axes, [above, (above[0], middle), (below[0], middle), below], color)


def _curve(axes: "Axes", points: Sequence[Point], color: str) -> None:
    from matplotlib.patches import PathPatch
    from matplotlib.path import Path

    path = Path(list(points), [Path.MOVETO, Path.CURVE4, Path.CURVE4, Path.CURVE4])
    axes.add_patch(PathPatch(path, facecolor="none", edgecolor=color, linewidth=1.6, capstyle="round", zorder=2))
