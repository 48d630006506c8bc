"""Figures: one that a notebook shows without pyplot, and a sheet whose panels are placed by inches.

This file imports matplotlib, so it is imported only where a picture is drawn.
"""

import io
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from bellnet.draw import style
from bellnet.spec import Spec

SHARPER = 2
"""Dots that are drawn for each dot of the screen."""


class Drawing(Figure):
    """A matplotlib figure that is not registered with pyplot, so there is nothing to close; notebooks display it."""

    def _repr_png_(self) -> tuple[bytes, dict[str, Any]]:
        """The PNG and its width, for a notebook."""
        content = io.BytesIO()
        self.savefig(content, format="png", dpi=SHARPER * self.dpi, metadata={"Software": "bellnet"})
        return content.getvalue(), {"width": round(self.get_figwidth() * self.dpi)}


class Sheet:
    """A figure of a given size; positions are (left, top) in inches from its upper left corner.

    The spec is its heading, with the lines of `about` below. The heading may need more width; its height is
    `style.HEAD`.
    """

    def __init__(self, spec: Spec, about: tuple[str, ...], width: float, height: float) -> None:
        # Letters are on average narrower than those of the monospace type.
        widest = max(style.width_of_name(str(spec), style.HEADING), *map(style.width_of_name, about))
        self.width = max(width, widest + 2 * style.MARGIN)
        self.height = height
        self.figure = Drawing(figsize=(self.width, self.height), dpi=100, facecolor=style.PAPER)
        self.figure.set_layout_engine("none")  # positions are fixed, whatever the settings are
        title = str(spec).replace("->", "\N{RIGHTWARDS ARROW}")
        self.write(style.MARGIN, style.MARGIN - 0.06, title, size=style.HEADING, bold=True)
        self.write(style.MARGIN, style.MARGIN + 0.2, "\n".join(about), size=style.SMALL, color=style.SOFT)

    def panel(self, left: float, top: float, width: float, height: float) -> Axes:
        """New axes without ticks."""
        box = (left / self.width, 1 - (top + height) / self.height, width / self.width, height / self.height)
        axes = self.figure.add_axes(box, facecolor=style.PAPER)
        axes.set(xticks=[], yticks=[])
        return axes

    def write(
        self, left: float, top: float, text: str, *, size: float, color: str = style.INK, bold: bool = False
    ) -> None:
        """Text with its upper left corner at this position."""
        self.figure.text(
            left / self.width,
            1 - top / self.height,
            text,
            size=size,
            color=color,
            weight="bold" if bold else "normal",
            family=style.SANS,
            va="top",
        )

    def name(self, axes: Axes, name: str) -> None:
        """A title over the left edge of a panel, in the monospace type."""
        axes.set_title(
            name, loc="left", pad=2.5, size=style.SMALL, color=style.INK, family=style.MONOSPACE, weight="normal"
        )

    def rule(self, start: tuple[float, float], end: tuple[float, float]) -> None:
        """A thin line between two positions."""
        xs = [start[0] / self.width, end[0] / self.width]
        ys = [1 - start[1] / self.height, 1 - end[1] / self.height]
        self.figure.add_artist(Line2D(xs, ys, color=style.RULE, linewidth=style.THIN * 2))
