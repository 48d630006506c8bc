"""Curves side by side, alike on all pages: a colour is a method, a line style a number of layers.

What colours, lines and marks mean stands below the panels, once for all of them, where it covers no curve.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from bellnet._utils.optional import require
from bellnet.draw import style

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from bellnet.draw.figure import Drawing

COLOURS = {
    "ours": style.PALETTE[0],
    "Hartford et al.": style.PALETTE[1],
    "IGN (authors' set-up), dense": style.PALETTE[0],
    "IGN (authors' set-up), sparse": style.PALETTE[5],
    "GraphClassifier": style.PALETTE[2],
    "GIN": style.PALETTE[3],
    "DGCNN": style.PALETTE[4],
    "DiffPool": "#8c564b",
    "ECC": "#a0a000",
    "order 2": style.PALETTE[5],
    "order 3": style.PALETTE[0],
    "target": style.RULE,
}
OTHERS = "#7f7f7f"
"""The colour of methods that have none of their own."""
STROKES: tuple[Any, ...] = ("solid", (0, (5, 1.6)), (0, (6, 1.6, 1.2, 1.6)), (0, (1.2, 1.3)))
"""The line styles of one, two, three and four layers; five begin again."""
KINDS: dict[str, dict[str, Any]] = {
    "": {"linewidth": 1.4},
    "training": {"linewidth": 1.1, "alpha": 0.45},
    "validation set": {"linewidth": 1.5, "marker": "o", "markersize": 3.5},
    "validation": {"linewidth": 0.9, "marker": "o", "markersize": 2.6, "markevery": 0.08, "markerfacecolor": "white"},
    "per node": {"linewidth": 1.5, "marker": "s", "markersize": 3.5},
}
"""What else a curve can be, apart from method and layers."""
WIDTH, HEIGHT, NARROWEST, LINE = 3.6, 2.6, 4.2, 0.24
"""Inches of a panel, of the narrowest picture, and of a line below the panels."""

METHOD, LAYERS, KIND, BESIDE = range(4)
"""In which order things are explained."""

Numbers = Sequence[float]


class Panels:
    """Panels for curves, filled one curve at a time; `finish` makes the figure.

    Args:
        titles: One for each panel.
        across: What the horizontal axis is.
        up: What the vertical axes are: one word for all panels, or one for each.
        scales: The scales of the two axes, "linear" or "log".
        in_a_row: The most panels side by side.
    """

    def __init__(
        self,
        titles: Sequence[str],
        *,
        across: str,
        up: str | Sequence[str],
        scales: tuple[str, str] = ("linear", "log"),
        in_a_row: int = 2,
    ) -> None:
        rows = -(-len(titles) // in_a_row)
        columns = -(-len(titles) // rows)
        self.size = (max(WIDTH * columns, NARROWEST), HEIGHT * rows)
        self.figure = new_figure(*self.size)
        grid: list[Axes] = self.figure.subplots(rows, columns, squeeze=False).flatten().tolist()
        for empty in grid[len(titles) :]:
            empty.remove()
        self.axes = dict(zip(titles, grid, strict=False))
        self.scales = scales
        self._entries: dict[tuple[int, str], dict[str, Any]] = {}
        words = [up] * len(titles) if isinstance(up, str) else up
        for (title, axes), name in zip(self.axes.items(), words, strict=True):
            _dress(axes, title, across, name)

    def curve(
        self,
        panel: str,
        points: tuple[Numbers, Numbers],
        *,
        method: str | None = None,
        layers: int | None = None,
        kind: str = "",
        dots: bool = False,
    ) -> None:
        """A line.

        Args:
            panel: The title of the panel.
            points: Where it goes, across and up.
            method: What its colour says; None where all are of one.
            layers: What its line style says; None where all are alike.
            kind: What else it is, one of `KINDS`.
            dots: Whether every point is marked, since there are few.
        """
        colour = colour_of(method or "ours")
        look = {"marker": "o", "markersize": 3.5, **KINDS[kind]} if dots else KINDS[kind]
        stroke = "solid" if layers is None else STROKES[(layers - 1) % len(STROKES)]
        above = 3 if method is None or method.startswith(("ours", "IGN")) else 2
        self.axes[panel].plot(*map(list, points), color=colour, linestyle=stroke, zorder=above, **look)
        if method is not None:
            self._explain(METHOD, method, color=colour, linewidth=2.5)
        if layers is not None:
            words = f"{layers} layer{'s' if layers > 1 else ''}"
            self._explain(LAYERS, words, color=style.INK, linestyle=stroke, linewidth=1.5)
        if kind:
            plain = style.INK if method is not None else colour
            self._explain(KIND, kind, color=plain, **{**KINDS[kind], "markevery": 1})

    def band(self, panel: str, across: Numbers, edges: tuple[Numbers, Numbers], *, method: str) -> None:
        """The room around a curve, from the lower to the upper edge."""
        self.axes[panel].fill_between(across, *edges, color=colour_of(method), alpha=0.1, linewidth=0)

    def crosses(self, panel: str, points: tuple[Numbers, Numbers], words: str) -> None:
        """Figures to compare with."""
        look: dict[str, Any] = {"color": style.INK, "marker": "x", "linestyle": "none", "markersize": 6}
        self.axes[panel].plot(*map(list, points), zorder=4, **look)
        self._explain(BESIDE, words, **look)

    def level(self, panel: str, height: float, words: str) -> None:
        """One figure to compare with, whatever is across."""
        look: dict[str, Any] = {"color": style.SOFT, "linewidth": 0.9, "linestyle": ":", "zorder": 1}
        self.axes[panel].axhline(height, **look)
        self._explain(BESIDE, words, **look)

    def place(self, panel: str, across: float, words: str) -> None:
        """A place on the horizontal axis that is not like others."""
        look: dict[str, Any] = {"color": style.RULE, "linewidth": 1.2, "zorder": 1}
        self.axes[panel].axvline(across, **look)
        upright = {"marker": "|", "markersize": 9, "markeredgewidth": 1.2, "linestyle": "none"}
        self._explain(BESIDE, words, **look, **upright)

    def note(self, panel: str, words: str) -> None:
        """Words below a panel that hold for it alone."""
        axes = self.axes[panel]
        axes.set_xlabel(f"{axes.get_xlabel()}\n{words}")

    def finish(self) -> "Drawing":
        """The figure, with what everything means below the panels."""
        from matplotlib.lines import Line2D

        for axes in self.axes.values():
            lines: list[Any] = [line.get_ydata() for line in axes.lines]
            positive = any(height > 0 for heights in lines for height in heights)
            axes.set_xscale(self.scales[0])
            axes.set_yscale(self.scales[1] if positive else "linear")  # zeros alone have no logarithm to show
            if self.scales[0] == "linear":
                left, right = axes.get_xlim()
                room = max(0.0, 1 - (right - left)) / 2  # a single point has no width to put whole numbers on
                axes.set_xlim(left - room, right + room)
                axes.locator_params(axis="x", integer=True, min_n_ticks=1)
            else:
                axes.xaxis.set_major_formatter("{x:g}")
        entries = {words: self._entries[place, words] for place, words in sorted(self._entries, key=lambda key: key[0])}
        widest = max(style.width_of_name(words) for words in entries) + 0.6
        lines_below = -(-len(entries) // max(1, int(self.size[0] / widest)))
        self.figure.set_size_inches(self.size[0], self.size[1] + LINE * lines_below)
        self.figure.legend(
            handles=[Line2D([], [], label=words, **look) for words, look in entries.items()],
            loc="outside lower center",
            ncols=-(-len(entries) // lines_below),
            fontsize=style.SMALL,
            labelcolor=style.INK,
            frameon=False,
            handlelength=2.8,
        )
        return self.figure

    def _explain(self, place: int, words: str, **look: Any) -> None:
        self._entries.setdefault((place, words), look)


def colour_of(method: str) -> str:
    """The colour of a method, the same in all pictures."""
    return COLOURS.get(method, OTHERS)


def new_figure(width: float, height: float) -> "Drawing":
    """An empty figure of that size in inches."""
    require("matplotlib", extra="draw", call="A picture")
    from matplotlib.layout_engine import ConstrainedLayoutEngine

    from bellnet.draw.figure import Drawing

    layout = ConstrainedLayoutEngine(w_pad=0.1, h_pad=0.06)
    return Drawing(figsize=(width, height), layout=layout, facecolor=style.PAPER)


def _dress(axes: "Axes", title: str, across: str, up: str) -> None:
    axes.set_title(title, loc="left", fontsize=style.TEXT + 1, color=style.INK)
    axes.set_xlabel(across, fontsize=style.SMALL + 0.5, color=style.INK)
    axes.set_ylabel(up, fontsize=style.SMALL + 0.5, color=style.INK)
    axes.grid(axis="y", color=style.FAINT, linewidth=style.THIN)
    axes.set_axisbelow(True)
    axes.tick_params(which="both", labelsize=style.SMALL, colors=style.SOFT, length=0)
    for side in ("top", "right", "left"):
        axes.spines[side].set_visible(False)
    axes.spines["bottom"].set_color(style.RULE)
