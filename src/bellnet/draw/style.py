"""The style of the pictures: one palette, three sizes of type, thin lines, and grids of equal panels.

Lengths are in inches, type is in points.
"""

from dataclasses import dataclass
from math import ceil, log, sqrt

INK = "#222222"
SOFT = "#6b6b6b"
RULE = "#c9c9c9"
FAINT = "#e2e2e2"
PAPER = "#ffffff"

MAP = "#0072b2"
BIAS = "#d55e00"
# The colours of Okabe and Ito, distinguishable with every kind of colour vision; their yellow is too pale for lines.
PALETTE = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9")

HEADING = 12.0
TEXT = 9.0
SMALL = 7.5
SANS = "DejaVu Sans"
MONOSPACE = "DejaVu Sans Mono"

MARGIN = 0.3
HEAD = 0.72
GAP = 0.26
TITLE = 0.2
THIN = 0.4
HAIR = 0.3

WIDEST = 11.0
PLEASING = 1.7  # width to height


def width_of_name(name: str, size: float = SMALL) -> float:
    """The width of a name in the monospace type, whose letters are 0.602 of its size wide."""
    return len(name) * 0.602 * size / 72


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
        return self.columns * (self.cell[0] + GAP) - GAP

    @property
    def height(self) -> float:
        """From the first row to the last."""
        return self.rows * (self.cell[1] + GAP) - GAP

    def position(self, number: int) -> tuple[float, float]:
        """The upper left corner of a cell, from that of the grid."""
        row, column = divmod(number, self.columns)
        return column * (self.cell[0] + GAP), row * (self.cell[1] + GAP)


def fit_grid(count: int, cell: tuple[float, float]) -> Grid:
    """The grid closest to a pleasing shape, a little wider than high, preferring full rows."""
    most = min(count, fitting(cell[0], max(WIDEST, pleasing_width(count, cell))))

    def displeasing(grid: Grid) -> float:
        empty = grid.rows * grid.columns - count
        return abs(log(grid.width / grid.height / PLEASING)) + 2 * empty / count

    return min((Grid(count, columns, cell) for columns in range(1, most + 1)), key=displeasing)


def pleasing_width(count: int, cell: tuple[float, float]) -> float:
    """The width of a pleasing sheet that holds so many cells."""
    return sqrt(PLEASING * count * (cell[0] + GAP) * (cell[1] + GAP))


def fitting(width: float, room: float) -> int:
    """How many cells of a width fit into a row, at least one."""
    return max(1, int((room + GAP) / (width + GAP)))
