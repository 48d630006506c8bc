"""Plots of time and memory from the record of `benchmarks.growth`."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from bellnet.draw import save_figures, style

COLOURS = {
    "ours": style.PALETTE[0],
    "ours, dense": style.PALETTE[0],
    "ours, sparse": style.PALETTE[5],
    "stacked": style.PALETTE[1],
    "einsums": style.PALETTE[4],
    "matrices": style.PALETTE[3],
}
LABELS = {
    "ours": "EquivariantLinear",
    "ours, dense": "EquivariantLinear",
    "ours, sparse": "the same on a Sparse",
    "stacked": "all fifteen matrices stacked",
    "einsums": "one einsum for each diagram",
    "matrices": "the basis as n² by n² matrices",
}
PANELS = (
    ("nodes", "seconds", "time against nodes", "nodes of one graph, 16 channels"),
    ("nodes", "bytes", "memory against nodes", "nodes of one graph, 16 channels"),
    ("edges", "seconds", "time against edges", "edges of one graph, ten for each node, 16 channels"),
    ("channels", "seconds", "time against channels", "channels, 8 graphs of 40 nodes"),
    ("batch", "seconds", "time against graphs", "graphs of 20 nodes in a batch, 16 channels"),
    ("order", "seconds", "time against order", "order of tensors with 4096 entries, 8 channels"),
)


def draw(record: Mapping[str, Any], directory: Path) -> None:
    """Write growth.png into a directory."""
    save_figures({directory / "growth.png": picture(record)})


def picture(record: Mapping[str, Any]) -> Figure:
    """A panel for every section, with logarithmic axes."""
    figure = Figure(figsize=(10.4, 6.4), facecolor=style.PAPER, layout="constrained")
    figure.get_layout_engine().set(hspace=0.06, wspace=0.04)
    drawn: set[str] = set()
    for axes, (name, what, title, across) in zip(figure.subplots(2, 3).flat, PANELS, strict=True):
        drawn |= _draw(axes, record[name], what)
        axes.set_title(title, loc="left", size=style.TEXT, color=style.INK)
        axes.set_xlabel(across, size=style.SMALL, color=style.SOFT)
    lines = {
        LABELS[name]: Line2D([], [], color=COLOURS[name], marker="o", markersize=3.5)
        for name in LABELS
        if name in drawn
    }
    gone = Line2D([], [], color=style.SOFT, marker="X", markersize=7, linestyle="none")
    gigabytes = record["nodes"]["allowed_bytes"] / 1e9
    lines[f"no memory left, of {gigabytes:.0f} GB"] = gone
    figure.legend(lines.values(), lines, loc="outside lower left", ncols=3, frameon=False, fontsize=style.SMALL)
    return figure


def _draw(axes: Axes, question: Mapping[str, Any], what: str) -> set[str]:
    scale = 1e3 if what == "seconds" else 1e-6
    rows = question["rows"]
    names = list(dict.fromkeys(name for row in rows for name in row["found"]))
    for name in names:
        sizes = [row["size"] for row in rows if name in row["found"]]
        values = [scale * row["found"][name][what] for row in rows if name in row["found"]]
        axes.plot(sizes, values, "o-", color=COLOURS[name], markersize=3.5, linewidth=1.4)
        if stopped := [row["size"] for row in rows if name in row["stopped"]]:
            axes.plot([sizes[-1], stopped[0]], [values[-1]] * 2, ":", color=COLOURS[name], linewidth=1)
            axes.plot(stopped[0], values[-1], "X", color=COLOURS[name], markersize=7)
    axes.set(xscale="log", yscale="log")
    axes.set_ylabel("milliseconds" if what == "seconds" else "megabytes", size=style.SMALL, color=style.SOFT)
    if len(rows) < 5:
        axes.set_xscale("linear")
        axes.set_xticks([row["size"] for row in rows])
    axes.grid(color=style.FAINT, linewidth=style.THIN)
    axes.tick_params(labelsize=style.SMALL, colors=style.SOFT, which="both", length=0)
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.spines["bottom"].set_color(style.RULE)
    return set(names)
