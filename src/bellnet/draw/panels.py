"""Panels of curves side by side, with one legend below all of them, where it covers no curve."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from bellnet._utils.optional import require
from bellnet.draw import style

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from bellnet.draw.figure import Drawing

IN_A_ROW = 2
WIDTH, HEIGHT, NARROWEST, LINE = 3.6, 2.6, 4.2, 0.24
"""Inches of a panel, of the narrowest figure, and of a line of the legend."""


class Panels:
    """Panels for curves, filled one curve at a time; `finish` returns the figure.

    Args:
        titles: One for each panel.
        across: The label of the horizontal axes.
        up: The label of the vertical axes.
        scales: The scales of the two axes, "linear" or "log".
    """

    def __init__(
        self, titles: Sequence[str], *, across: str, up: str, scales: tuple[str, str] = ("linear", "log")
    ) -> None:
        rows = -(-len(titles) // IN_A_ROW)
        columns = -(-len(titles) // rows)
        self.size = (max(WIDTH * columns, NARROWEST), HEIGHT * rows)
        self.figure = new_figure(*self.size)
        grid: list[Axes] = self.figure.subplots(rows, columns, squeeze=False).flatten().tolist()
        for empty in grid[len(titles) :]:
            empty.remove()
        self.axes = dict(zip(titles, grid, strict=False))
        self.scales = scales
        self._entries: dict[str, tuple[int, dict[str, Any]]] = {}
        for title, axes in self.axes.items():
            _set_up(axes, title, across, up)

    def curve(self, panel: str, points: tuple[Sequence[float], Sequence[float]], label: str, **look: Any) -> None:
        """A curve.

        Args:
            panel: The title of the panel.
            points: The coordinates, across and up.
            label: Its entry of the legend, which curves that look alike share.
            look: Properties of a line of matplotlib; the colour is blue by default.
        """
        look = {"color": style.PALETTE[0], **look}
        self.axes[panel].plot(*map(list, points), **look)
        self.explain(label, **look)

    def vertical(self, panel: str, across: float, label: str) -> None:
        """A vertical line at a position of the horizontal axis."""
        look: dict[str, Any] = {"color": style.RULE, "linewidth": 1.2, "zorder": 1}
        self.axes[panel].axvline(across, **look)
        self.explain(label, 1, **look, marker="|", markersize=9, markeredgewidth=1.2, linestyle="none")

    def explain(self, label: str, position: int = 0, **look: Any) -> None:
        """An entry of the legend, behind those of lower positions."""
        self._entries.setdefault(label, (position, look))

    def finish(self) -> "Drawing":
        """The figure with its legend."""
        from matplotlib.lines import Line2D

        for axes in self.axes.values():
            lines: list[Any] = [line.get_ydata() for line in axes.lines]
            positive = any(height > 0 for heights in lines for height in heights)
            axes.set_xscale(self.scales[0])
            axes.set_yscale(self.scales[1] if positive else "linear")  # zeros alone have no logarithm to show
            if self.scales[0] == "linear":
                left, right = axes.get_xlim()
                missing = max(0.0, 1 - (right - left)) / 2  # a single point has no width to put integers on
                axes.set_xlim(left - missing, right + missing)
                axes.locator_params(axis="x", integer=True, min_n_ticks=1)
            else:
                axes.xaxis.set_major_formatter("{x:g}")
        entries = sorted(self._entries.items(), key=lambda entry: entry[1][0])
        widest = max(style.width_of_name(label) for label in self._entries) + 0.6
        lines_below = -(-len(entries) // max(1, int(self.size[0] / widest)))
        self.figure.set_size_inches(self.size[0], self.size[1] + LINE * lines_below)
        self.figure.legend(
            handles=[Line2D([], [], label=label, **look) for label, (_, look) in entries],
            loc="outside lower center",
            ncols=-(-len(entries) // lines_below),
            fontsize=style.SMALL,
            labelcolor=style.INK,
            frameon=False,
            handlelength=2.8,
        )
        return self.figure


def new_figure(width: float, height: float) -> "Drawing":
    """An empty figure of that size in inches."""
    require("matplotlib", extra="draw", call="A picture")
    from matplotlib.layout_engine import ConstrainedLayoutEngine

    from bellnet.draw.figure import Drawing

    layout = ConstrainedLayoutEngine(w_pad=0.1, h_pad=0.06)
    return Drawing(figsize=(width, height), layout=layout, facecolor=style.PAPER)


def _set_up(axes: "Axes", title: str, across: str, up: str) -> None:
    axes.set_title(title, loc="left", fontsize=style.TEXT + 1, color=style.INK)
    axes.set_xlabel(across, fontsize=style.SMALL + 0.5, color=style.INK)
    axes.set_ylabel(up, fontsize=style.SMALL + 0.5, color=style.INK)
    axes.grid(axis="y", color=style.FAINT, linewidth=style.THIN)
    axes.set_axisbelow(True)
    axes.tick_params(which="both", labelsize=style.SMALL, colors=style.SOFT, length=0)
    for side in ("top", "right", "left"):
        axes.spines[side].set_visible(False)
    axes.spines["bottom"].set_color(style.RULE)
