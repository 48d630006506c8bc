"""The diagrams of a spec on one sheet, grouped by rank, as dots and lines: source slots above, target slots below.

Blocks that cross have colours, others are grey. A slot alone in its block and not crossing is an open dot. The shape of
a dot is its node set.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise, product
from math import ceil
from typing import TYPE_CHECKING

from bellnet._utils.optional import require
from bellnet.combinatorics import blocks_of
from bellnet.draw import style
from bellnet.draw.style import Grid, fitting, pleasing_width
from bellnet.errors import OptionError, SpecError, count_of
from bellnet.plan import Diagram, Level, Plan, count_maps, plan, short_count, short_spec
from bellnet.spec import Spec, parse_spec

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

SLOT = 0.3
DEPTH = 0.52
AROUND = 0.13
MARKERS = (("o", "●"), ("s", "■"), ("D", "◆"), ("^", "▲"), ("v", "▼"), ("P", "✚"), ("X", "✖"))

Point = tuple[float, float]

MOST_DIAGRAMS = 210
WIDTH = 9.8
APART = 0.6
TITLE = 0.3


def draw_diagrams(spec: str | Spec) -> "Figure":
    """Draw all diagrams of a spec, grouped by rank, highest first.

    Args:
        spec: The shape of source and target, for instance "n n -> n n".

    Returns:
        A matplotlib figure with one panel for each diagram, titled with its name; `figure.savefig("diagrams.png")`
        writes it.
    """
    spec, call = checked_spec("draw_diagrams", spec)
    as_text = f'list them as text: bellnet plan "{short_spec(spec)}" --diagrams'
    refuse_many(call, spec, MOST_DIAGRAMS, "diagrams", as_text)
    require("matplotlib", extra="draw", call=call)
    return _lay_out(plan(spec))


def checked_spec(function: str, spec: str | Spec) -> tuple[Spec, str]:
    """The spec, from one tensor to one tensor, and how messages name the call."""
    spec = parse_spec(spec)
    call = f'{function}("{short_spec(spec)}")'
    if not spec.is_single:
        raise SpecError(
            f"{call}: a picture shows the maps from one tensor to one tensor.\n"
            f'Draw the pairs one by one, for instance "{spec.pair(0, 0)}".'
        )
    return spec, call


def refuse_many(call: str, spec: Spec, most: int, what: str, advice: str) -> None:
    """Refuse a spec with more maps than a picture shows."""
    if (n_maps := count_maps(spec)) > most:
        raise OptionError(
            f"{call}: there are {short_count(n_maps)} {what}; a picture shows up to {most}.\n"
            f"Lower the order, or {advice}."
        )


@dataclass(frozen=True)
class Group:
    """The diagrams of one rank under their title."""

    title: str
    diagrams: list[Diagram]
    grid: Grid

    @property
    def width(self) -> float:
        """The width of the panels, or of the title (reckoned as monospace, it is a little narrower)."""
        return max(self.grid.width, style.width_of_name(self.title, style.TEXT))

    @property
    def height(self) -> float:
        """The height with the title."""
        return TITLE + self.grid.height


def _lay_out(the_plan: Plan) -> "Figure":
    from bellnet.draw.figure import Sheet

    panel = panel_size(the_plan)
    cell = (panel[0], panel[1] + style.TITLE)
    room = max(WIDTH, pleasing_width(the_plan.n_maps, cell))
    lines = _lines(_groups(the_plan, cell, room), room)
    heights = [max(group.height for group in line) for line in lines]
    width = max(sum(group.width + APART for group in line) - APART for line in lines)
    top = style.MARGIN + style.HEAD
    height = top + sum(heights) + style.GAP * (len(lines) - 1) + style.MARGIN
    sheet = Sheet(the_plan.spec, _about(the_plan.spec), width + 2 * style.MARGIN, height)
    for line, height in zip(lines, heights, strict=True):
        left = style.MARGIN
        for group in line:
            sheet.write(left, top, group.title, size=style.TEXT, bold=True)
            for number, diagram in enumerate(group.diagrams):
                x, y = group.grid.position(number)
                axes = sheet.panel(left + x, top + TITLE + y + style.TITLE, *panel)
                draw_diagram(axes, diagram, panel)
                sheet.name(axes, diagram.name)
            left += group.width + APART
        top += height + style.GAP
    return sheet.figure


def _groups(the_plan: Plan, cell: tuple[float, float], room: float) -> list[Group]:
    groups = []
    for level in reversed(the_plan.levels):
        numbers = sorted(number for plane in level.index for row in plane for number in row if number is not None)
        diagrams = [the_plan.diagrams[number] for number in numbers]
        # Rows of nearly one length: ten panels that do not fit into a row are five and five, not nine and one.
        rows = ceil(len(diagrams) / fitting(cell[0], room))
        grid = Grid(len(diagrams), ceil(len(diagrams) / rows), cell)
        groups.append(Group(_group_title(the_plan.spec, level), diagrams, grid))
    return groups


def _lines(groups: list[Group], room: float) -> list[list[Group]]:
    """Groups side by side while they fit."""
    lines: list[list[Group]] = []
    for group in groups:
        if lines and sum(other.width + APART for other in lines[-1]) + group.width <= room:
            lines[-1].append(group)
        else:
            lines.append([group])
    return lines


def _group_title(spec: Spec, level: Level) -> str:
    count = count_of(level.n_maps, "map")
    if len(spec.node_sets) <= 1:
        return f"rank {sum(level.rank)}: {count}"
    # A node set on one side only never crosses.
    ranks = [
        f"{rank} in {name}"
        for name, rank in zip(spec.node_sets, level.rank, strict=True)
        if name in spec.source and name in spec.target
    ]
    return f"rank {', '.join(ranks) or '0'}: {count}"


def _about(spec: Spec) -> tuple[str, str]:
    grey = "grey is summed above, repeated below"
    if len(spec.node_sets) > 1:
        grey += "; " + "  ".join(f"{marker(number)[1]} {name}" for number, name in enumerate(spec.node_sets))
    return "input slots above, output slots below; joined slots hold the same node", grey


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
    positions = _positions(len(diagram.source_sets), len(diagram.target_sets), panel[0])
    n_source = len(diagram.source_sets)
    for number, block in enumerate(blocks_of(diagram.partition)):
        crosses = number in diagram.crossing
        color = style.PALETTE[diagram.crossing.index(number) % len(style.PALETTE)] if crosses else style.SOFT
        upper = [positions[slot] for slot in block if slot < n_source]
        lower = [positions[slot] for slot in block if slot >= n_source]
        for row, inwards in ((upper, -1), (lower, 1)):
            for start, end in pairwise(row):
                height = start[1] + inwards * min(0.6 * (end[0] - start[0]), 0.58 * DEPTH)
                _curve(axes, start, end, height, color)
        if crosses:
            pairs = ((above, below) for above in upper for below in lower)
            above, below = min(pairs, key=lambda pair: abs(pair[0][0] - pair[1][0]))
            _curve(axes, above, below, (above[1] + below[1]) / 2, color)
        for slot in block:
            x, y = positions[slot]
            face = color if crosses or len(block) > 1 else style.PAPER
            axes.plot(
                x, y, marker(sets[slot])[0], markersize=5.5, markerfacecolor=face, markeredgecolor=color, zorder=3
            )


def marker(node_set: int) -> tuple[str, str]:
    """The shape of the dots of a node set, for matplotlib and as a letter."""
    return MARKERS[node_set % len(MARKERS)]


def _positions(n_source: int, n_target: int, width: float) -> list[Point]:
    def row(count: int, y: float) -> list[Point]:
        left = (width - (count - 1) * SLOT) / 2
        return [(left + number * SLOT, y) for number in range(count)]

    return row(n_source, DEPTH) + row(n_target, 0.0)


def _curve(axes: "Axes", start: Point, end: Point, height: float, color: str) -> None:
    """A curve that leaves both points vertically, towards this height."""
    from matplotlib.patches import PathPatch
    from matplotlib.path import Path

    points = [start, (start[0], height), (end[0], height), end]
    path = Path(points, [Path.MOVETO, Path.CURVE4, Path.CURVE4, Path.CURVE4])
    axes.add_patch(PathPatch(path, facecolor="none", edgecolor=color, linewidth=1.6, capstyle="round", zorder=2))


def pairs_of(text: str, n: int | Mapping[str, int]) -> list[tuple[str, str, int | Mapping[str, int]]]:
    """The pairs of a source and a target of a spec, each as the end of a file name, a spec, and its numbers of nodes.

    >>> pairs_of("n n, n -> n", 5)
    [('-0-to-0', 'n n -> n', 5), ('-1-to-0', 'n -> n', 5)]
    """
    spec = parse_spec(text)
    if spec.is_single:
        return [("", text, n)]
    found: list[tuple[str, str, int | Mapping[str, int]]] = []
    for source, target in product(range(len(spec.sources)), range(len(spec.targets))):
        pair = spec.pair(source, target)
        elsewhere = set(spec.node_sets) - set(pair.node_sets)
        own = {name: size for name, size in n.items() if name not in elsewhere} if isinstance(n, Mapping) else n
        found.append((f"-{source}-to-{target}", str(pair), own))
    return found
