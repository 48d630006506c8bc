"""The diagrams of a spec on one sheet, grouped by rank."""

from dataclasses import dataclass
from math import ceil
from typing import TYPE_CHECKING

from bellnet._utils.optional import require
from bellnet.draw import style
from bellnet.draw.sheet import Grid, Head, Sheet, fitting, pleasing_width
from bellnet.draw.sizes import refuse_several
from bellnet.draw.strands import draw_diagram, marker, panel_size
from bellnet.errors import OptionError
from bellnet.plan import Diagram, Level, Plan, count_maps, plan, short_count, short_spec
from bellnet.spec import Spec, parse_spec

if TYPE_CHECKING:
    from matplotlib.figure import Figure

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
    spec = parse_spec(spec)
    call = f'draw_diagrams("{short_spec(spec)}")'
    refuse_several(call, spec)
    if (n_maps := count_maps(spec)) > MOST_DIAGRAMS:
        raise OptionError(
            f"{call}: there are {short_count(n_maps)} diagrams; a picture shows up to {MOST_DIAGRAMS}.\n"
            f'Lower the order, or list them as text: bellnet plan "{short_spec(spec)}" --diagrams.'
        )
    require("matplotlib", extra="draw", call=call)
    return _lay_out(plan(spec))


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
    panel = panel_size(the_plan)
    cell = (panel[0], panel[1] + style.TITLE)
    room = max(WIDTH, pleasing_width(the_plan.n_maps, cell))
    lines = _lines(_groups(the_plan, cell, room), room)
    heights = [max(group.height for group in line) for line in lines]
    width = max(sum(group.width + APART for group in line) - APART for line in lines)
    top = style.MARGIN + Head.height
    height = top + sum(heights) + style.GAP * (len(lines) - 1) + style.MARGIN
    sheet = Sheet(_head(the_plan.spec), width + 2 * style.MARGIN, height)
    for line, height in zip(lines, heights, strict=True):
        left = style.MARGIN
        for group in line:
            sheet.write(left, top, group.title, size=style.TEXT, bold=True)
            for number, diagram in enumerate(group.diagrams):
                x, y = group.grid.place(number)
                axes = sheet.panel(left + x, top + TITLE + y + style.TITLE, *panel)
                draw_diagram(axes, diagram, panel)
                sheet.name(axes, diagram.name)
            left += group.width + APART
        top += height + style.GAP
    return sheet.figure


def _groups(the_plan: Plan, cell: tuple[float, float], room: float) -> list[Group]:
    groups = []
    for level in reversed(the_plan.levels):
        diagrams = _diagrams(the_plan, level)
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


def _diagrams(the_plan: Plan, level: Level) -> list[Diagram]:
    numbers = sorted(number for plane in level.index for row in plane for number in row if number is not None)
    return [the_plan.diagrams[number] for number in numbers]


def _group_title(spec: Spec, level: Level) -> str:
    count = f"{level.n_maps} {'map' if level.n_maps == 1 else 'maps'}"
    if len(spec.node_sets) <= 1:
        return f"rank {sum(level.rank)}: {count}"
    # A node set on one side only never crosses.
    ranks = [
        f"{rank} in {name}"
        for name, rank in zip(spec.node_sets, level.rank, strict=True)
        if name in spec.source and name in spec.target
    ]
    return f"rank {', '.join(ranks) or '0'}: {count}"


def _head(spec: Spec) -> Head:
    grey = "grey is summed above, repeated below"
    if len(spec.node_sets) > 1:
        grey += "; " + "  ".join(f"{marker(number)[1]} {name}" for number, name in enumerate(spec.node_sets))
    return Head(spec, ("input slots above, output slots below; joined slots hold the same node", grey))
