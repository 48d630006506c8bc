"""Errors against depth: what was measured beside what was proven."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from bellnet.draw import style
from bellnet.extras import require

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class ErrorCurve:
    """The largest error that was measured at every depth, and the bound on it."""

    title: str
    about: str
    depths: Sequence[int]
    measured: Sequence[float]
    bound: Sequence[float]


def draw_errors(heading: str, curves: Sequence[ErrorCurve]) -> "Figure":
    """One panel for every curve, side by side, with one scale for all errors.

    Args:
        heading: What stands above the panels.
        curves: The panels from left to right.
    """
    require("matplotlib", extra="draw", call="draw_errors")
    from matplotlib.layout_engine import ConstrainedLayoutEngine

    from bellnet.draw.figure import Drawing

    layout = ConstrainedLayoutEngine(w_pad=0.12, h_pad=0.08, wspace=0.04)
    figure = Drawing(figsize=(4.6 * len(curves) + 0.4, 4.4), dpi=100, facecolor=style.PAPER, layout=layout)
    figure.suptitle(heading, x=0.012, ha="left", fontsize=style.HEADING, fontweight="bold", color=style.INK)
    panels = figure.subplots(1, len(curves), sharey=True, squeeze=False)[0]
    lowest, highest = min(min(curve.measured) for curve in curves), max(max(curve.bound) for curve in curves)
    for axes, curve in zip(panels, curves, strict=True):
        _draw(axes, curve, bottom=lowest / 4)
    panels[0].set_ylim(lowest / 4, 3 * highest)
    panels[0].set_ylabel("largest error", fontsize=style.TEXT, color=style.INK)
    return figure


def _draw(axes: "Axes", curve: ErrorCurve, *, bottom: float) -> None:
    depths = list(curve.depths)
    axes.set_yscale("log")
    axes.fill_between(depths, curve.bound, bottom, color=style.MAP, alpha=0.07, linewidth=0)
    axes.plot(depths, curve.bound, "-", color=style.MAP, linewidth=1.6)
    axes.plot(depths, curve.measured, "o", color=style.BIAS, markersize=5, markeredgewidth=0)
    names = (("proven bound", curve.bound, style.MAP, 9), ("measured", curve.measured, style.BIAS, -15))
    place = len(depths) // 2
    for name, values, colour, shift in names:
        axes.annotate(
            name,
            (depths[place], values[place]),
            xytext=(7 if shift > 0 else -7, shift),
            textcoords="offset points",
            ha="left" if shift > 0 else "right",
            fontsize=style.TEXT,
            color=colour,
        )
    axes.set_title(f"{curve.title}\n", loc="left", fontsize=style.TEXT + 1, color=style.INK)
    axes.text(0, 1.025, curve.about, transform=axes.transAxes, fontsize=style.SMALL, color=style.SOFT)
    axes.set_xlabel("depth of the product network", fontsize=style.TEXT, color=style.INK)
    axes.set_xticks(depths)
    axes.set_xlim(depths[0] - 0.5, depths[-1] + 0.5)
    axes.grid(axis="y", color=style.FAINT, linewidth=style.THIN)
    axes.set_axisbelow(True)
    axes.tick_params(labelsize=style.SMALL, colors=style.SOFT, length=0, which="both", labelleft=True)
    for side in ("top", "right", "left"):
        axes.spines[side].set_visible(False)
    axes.spines["bottom"].set_color(style.RULE)
