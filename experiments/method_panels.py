"""Panels of curves of methods, alike on all pages: a colour is a method, a line style a number of layers."""

from collections.abc import Sequence
from typing import Any

from bellnet.draw import Panels

BLACK, BLUE, SKY = "#222222", "#0072b2", "#56b4e9"
COLOURS = {
    "bellnet": BLUE,
    "Hartford et al.": "#d55e00",
    "IGN (authors' set-up), dense": BLUE,
    "IGN (authors' set-up), sparse": SKY,
    "GraphClassifier": "#009e73",
    "GIN": "#cc79a7",
    "DGCNN": "#e69f00",
    "DiffPool": "#8c564b",
    "ECC": "#a0a000",
    "order 2": SKY,
    "order 3": BLUE,
    "target": "#c9c9c9",
}
OTHERS = "#7f7f7f"
"""The colour of methods that have none of their own."""
STROKES: tuple[Any, ...] = ("solid", (0, (5, 1.6)), (0, (6, 1.6, 1.2, 1.6)), (0, (1.2, 1.3)))
"""The line styles of one, two, three and four layers; five begin again."""
KINDS: dict[str, dict[str, Any]] = {
    "": {"linewidth": 1.4},
    "validation": {"linewidth": 0.9, "marker": "o", "markersize": 2.6, "markevery": 0.08, "markerfacecolor": "white"},
    "per node": {"linewidth": 1.5, "marker": "s", "markersize": 3.5},
}
"""What else a curve can be, apart from method and layers."""
METHOD, LAYERS, KIND, REFERENCE = range(-3, 1)
"""The order of the legend."""

Numbers = Sequence[float]


class MethodPanels(Panels):
    """Panels for the curves of methods, and for figures to compare them with."""

    def method(
        self,
        panel: str,
        points: tuple[Numbers, Numbers],
        method: str,
        *,
        layers: int | None = None,
        kind: str = "",
        dots: bool = False,
    ) -> None:
        """The curve of a method.

        Args:
            panel: The title of the panel.
            points: The coordinates, across and up.
            method: Its name, which chooses the colour.
            layers: Its number of layers, which chooses the line style; None where all are alike.
            kind: What else it is, one of `KINDS`.
            dots: Whether every point is marked, since there are few.
        """
        look = {"marker": "o", "markersize": 3.5, **KINDS[kind]} if dots else KINDS[kind]
        stroke = "solid" if layers is None else STROKES[(layers - 1) % len(STROKES)]
        above = 3 if method.startswith(("bellnet", "IGN")) else 2
        self.axes[panel].plot(*map(list, points), color=colour_of(method), linestyle=stroke, zorder=above, **look)
        self.explain(method, METHOD, color=colour_of(method), linewidth=2.5)
        if layers is not None:
            words = f"{layers} layer{'s' if layers > 1 else ''}"
            self.explain(words, LAYERS, color=BLACK, linestyle=stroke, linewidth=1.5)
        if kind:
            self.explain(kind, KIND, color=BLACK, **{**KINDS[kind], "markevery": 1})

    def band(self, panel: str, across: Numbers, edges: tuple[Numbers, Numbers], *, method: str) -> None:
        """The area around a curve, from the lower to the upper edge."""
        self.axes[panel].fill_between(across, *edges, color=colour_of(method), alpha=0.1, linewidth=0)

    def crosses(self, panel: str, points: tuple[Numbers, Numbers], label: str) -> None:
        """Points to compare with."""
        self.curve(panel, points, label, color=BLACK, marker="x", linestyle="none", markersize=6, zorder=4)

    def level(self, panel: str, height: float, label: str) -> None:
        """One figure to compare with, whatever is across."""
        look: dict[str, Any] = {"color": "#6b6b6b", "linewidth": 0.9, "linestyle": ":", "zorder": 1}
        self.axes[panel].axhline(height, **look)
        self.explain(label, REFERENCE, **look)

    def note(self, panel: str, words: str) -> None:
        """Words below a panel that hold for it alone."""
        axes = self.axes[panel]
        axes.set_xlabel(f"{axes.get_xlabel()}\n{words}")


def colour_of(method: str) -> str:
    """The colour of a method, the same in all pictures."""
    return COLOURS.get(method, OTHERS)
