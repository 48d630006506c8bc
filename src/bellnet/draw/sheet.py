"""A sheet: a figure on which panels are placed by inches, so that sizes are consistent and nothing overlaps."""

from dataclasses import dataclass
from math import ceil, log, sqrt
from typing import TYPE_CHECKING

from bellnet.draw import style
from bellnet.spec import Spec

if TYPE_CHECKING:
    from matplotlib.axes import Axes

WIDEST = 11.0
PLEASING = 1.7


@dataclass(frozen=True)
class Head:
    """What stands at the top of a sheet: the spec, and lines that say how to read the picture."""

    spec: Spec
    about: tuple[str, ...]

    height = 0.72

    @property
    def width(self) -> float:
        """At least the width of its longest line: letters are on average narrower than those of the monospace type."""
        lines = [style.width_of_name(line) for line in self.about]
        return max(style.width_of_name(str(self.spec), style.HEADING), *lines)


class Sheet:
    """A figure of a given size; places are (left, top) in inches from its upper left corner."""

    def __init__(self, head: Head, width: float, height: float) -> None:
        from bellnet.draw.figure import Drawing

        self.width = max(width, head.width + 2 * style.MARGIN)
        self.height = height
        self.figure = Drawing(figsize=(self.width, self.height), dpi=100, facecolor=style.PAPER)
        self.figure.set_layout_engine("none")  # whatever the user's settings say: places are fixed
        title = str(head.spec).replace("->", "\N{RIGHTWARDS ARROW}")
        self.write(style.MARGIN, style.MARGIN - 0.06, title, size=style.HEADING, bold=True)
        about = "\n".join(head.about)
        self.write(style.MARGIN, style.MARGIN + 0.2, about, size=style.SMALL, color=style.SOFT)

    def panel(self, left: float, top: float, width: float, height: float) -> "Axes":
        """New axes without ticks."""
        box = (left / self.width, 1 - (top + height) / self.height, width / self.width, height / self.height)
        axes = self.figure.add_axes(box, facecolor=style.PAPER)
        axes.set(xticks=[], yticks=[])
        return axes

    def write(
        self, left: float, top: float, text: str, *, size: float, color: str = style.INK, bold: bool = False
    ) -> None:
        """Text whose upper left corner is at the place."""
        self.figure.text(
            left / self.width,
            1 - top / self.height,
            text,
            size=size,
            color=color,
            weight="bold" if bold else "normal",
            family=style.SERIF_FREE,
            va="top",
        )

    def name(self, axes: "Axes", name: str) -> None:
        """A title over the left edge of a panel, in the monospace type."""
        axes.set_title(
            name, loc="left", pad=2.5, size=style.SMALL, color=style.INK, family=style.MONOSPACE, weight="normal"
        )

    def rule(self, start: tuple[float, float], end: tuple[float, float]) -> None:
        """A thin line between two places."""
        from matplotlib.lines import Line2D

        xs = [start[0] / self.width, end[0] / self.width]
        ys = [1 - start[1] / self.height, 1 - end[1] / self.height]
        self.figure.add_artist(Line2D(xs, ys, color=style.RULE, linewidth=style.THIN * 2))


@dataclass(frozen=True)
class Grid:
    """Equal cells in rows; `cell` is the size of a panel with its title, gaps come between the cells."""

    count: int
    columns: int
    cell: tuple[float, float]

    @property
    def rows(self) -> int:
        """The number of rows, the last one perhaps not full."""
        return ceil(self.count / self.columns)

    @property
    def width(self) -> float:
        """From the first cell to the last in a row."""
        return self.columns * (self.cell[0] + style.GAP) - style.GAP

    @property
    def height(self) -> float:
        """From the first row to the last."""
        return self.rows * (self.cell[1] + style.GAP) - style.GAP

    def place(self, number: int) -> tuple[float, float]:
        """The upper left corner of a cell, from that of the grid."""
        row, column = divmod(number, self.columns)
        return column * (self.cell[0] + style.GAP), row * (self.cell[1] + style.GAP)


def fit_grid(count: int, cell: tuple[float, float]) -> Grid:
    """The grid closest to a pleasing shape, a little wider than high, preferring full rows."""
    most = min(count, fitting(cell[0], max(WIDEST, pleasing_width(count, cell))))

    def displeasing(grid: Grid) -> float:
        empty = grid.rows * grid.columns - count
        return abs(log(grid.width / grid.height / PLEASING)) + 2 * empty / count

    return min((Grid(count, columns, cell) for columns in range(1, most + 1)), key=displeasing)


def pleasing_width(count: int, cell: tuple[float, float]) -> float:
    """The width of a pleasing sheet that holds so many cells."""
    return sqrt(PLEASING * count * (cell[0] + style.GAP) * (cell[1] + style.GAP))


def fitting(width: float, room: float) -> int:
    """How many cells of a width fit into a row, at least one."""
    return max(1, int((room + style.GAP) / (width + style.GAP)))
