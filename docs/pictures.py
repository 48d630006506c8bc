"""Draws the pictures of the first page and of the idea; `python docs/pictures.py` writes them to docs/images.

The library computes the maps; the weights in the picture of a plan are arbitrary.
"""

import sys
from pathlib import Path

import torch
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure

import bellnet as bn
from bellnet.draw import save_figures, style
from bellnet.draw.diagrams import draw_diagram, panel_size

IMAGES = Path(__file__).parent / "images"
INK = LinearSegmentedColormap.from_list("ink", ["#ffffff", "#56b4e9", "#0072b2", "#00324f"])
NAMES, HEADS = 9, 10.5
"""Font sizes of the row of maps, which the pages show at two thirds of its size."""
CARRIED = {2: "pairs", 1: "nodes", 0: "one number"}


def small_graph() -> torch.Tensor:
    """A directed graph of five nodes with different row and column sums and a nonzero diagonal."""
    x = torch.zeros(5, 5)
    for start, end in ((0, 1), (1, 2), (1, 3), (1, 4), (2, 4), (3, 4), (4, 0), (0, 4)):
        x[start, end] = 1
    return x + torch.diag(torch.tensor([0.9, 0.2, 0.5, 0.2, 0.7]))


def each_map(spec: str, x: torch.Tensor) -> torch.Tensor:
    """The output of each map of a spec for a matrix, of shape (maps, ...)."""
    plan = bn.plan(spec)
    layer = bn.EquivariantLinear(spec, 1, plan.n_maps, bias=False)
    with torch.no_grad():
        layer.weight.copy_(torch.eye(plan.n_maps).unsqueeze(1))
        return layer(x.unsqueeze(-1)).movedim(-1, 0)


def draw_maps() -> Figure:
    """Draws the fifteen maps in a row: each as a diagram, and its output for one matrix."""
    plan, x = bn.plan("n n -> n n"), small_graph()
    results = each_map("n n -> n n", x)
    panel = panel_size(plan)
    side, gap, left, group_gap = 0.52, 0.1, 0.95, 0.24
    groups = [[k for k, d in enumerate(plan.diagrams) if len(d.crossing) == rank] for rank in (2, 1, 0)]
    width = left + 15 * side + 12 * gap + 2 * (gap + group_gap) + 0.12
    height = 1.78
    figure = Figure(figsize=(width, height), facecolor=style.PAPER)

    def axes_at(x0: float, top: float, w: float, h: float) -> Axes:
        axes = figure.add_axes((x0 / width, 1 - (top + h) / height, w / width, h / height))
        axes.set(xticks=[], yticks=[])
        return axes

    def matrix(axes: Axes, values: torch.Tensor) -> None:
        axes.imshow(values.numpy(), cmap=INK, vmin=0, vmax=1, interpolation="nearest", aspect="auto")
        for spine in axes.spines.values():
            spine.set(color=style.RULE, linewidth=style.THIN)

    matrix(axes_at(0.12, 1.14, side, side), x)
    figure.text(0.12 / width, 1 - 1.03 / height, "a graph", size=NAMES, color=style.INK)
    arrow = "\N{RIGHTWARDS ARROW}"
    figure.text((0.12 + side + 0.07) / width, 1 - (1.14 + side / 2) / height, arrow, size=10, va="center")
    offset = left
    for rank, group in zip((2, 1, 0), groups, strict=True):
        title = f"{len(group)} carry {CARRIED[rank]}"
        figure.text(offset / width, 1 - 0.12 / height, title, size=HEADS, color=style.SOFT, va="center")
        for k in group:
            diagram = plan.diagrams[k]
            axes = axes_at(offset, 0.25, side, side * panel[1] / panel[0])
            draw_diagram(axes, diagram, panel)
            figure.text(offset / width, 1 - 1.03 / height, diagram.name, size=NAMES, family=style.MONOSPACE)
            matrix(axes_at(offset, 1.14, side, side), results[k])
            offset += side + gap
        offset += group_gap
    return figure


def draw_plan() -> Figure:
    """Draws how `n n -> n n` is computed: contractions, channel mixing and broadcasts at every rank."""
    x = small_graph()
    width, height = 8.6, 4.0
    figure = Figure(figsize=(width, height), facecolor=style.PAPER)
    page = figure.add_axes((0, 0, 1, 1))
    page.set(xlim=(0, width), ylim=(height, 0))
    page.axis("off")

    def box(values: torch.Tensor, left: float, top: float, w: float, h: float, name: str = "") -> None:
        page.imshow(
            values.numpy(), cmap=INK, vmin=0, vmax=1, extent=(left, left + w, top + h, top), interpolation="nearest"
        )
        edges = ([left, left + w, left + w, left, left], [top, top, top + h, top + h, top])
        page.plot(*edges, color=style.RULE, linewidth=0.6)
        if name:
            page.text(left + w / 2, top + h + 0.13, name, size=7, family=style.MONOSPACE, ha="center", va="center")

    def arrow(start: float, end: float, y: float) -> None:
        page.annotate("", (end, y), (start, y), arrowprops={"arrowstyle": "->", "color": style.SOFT, "linewidth": 1})

    side, thin = 0.72, 0.144
    rows, columns, diagonal = x.mean(1, keepdim=True), x.mean(0).unsqueeze(1), x.diagonal().unsqueeze(1)
    mixed = (0.3 * diagonal + 0.3 * rows + 0.4 * columns).clamp(0, 1)
    number = torch.full((1, 1), 0.45)
    heads = {0.3: "input", 1.75: "contract", 3.75: "mix the channels", 5.55: "broadcast", 7.5: "output"}
    for left, head in heads.items():
        page.text(left, 0.24, head, size=style.TEXT, color=style.INK, weight="bold", va="center")
    box(x, 0.3, 1.55, side, side)
    centres = {2: 0.86, 1: 1.91, 0: 2.96}
    for rank, centre in centres.items():
        top = centre - side / 2
        bend = {
            "arrowstyle": "->",
            "color": style.SOFT,
            "linewidth": 1,
            "connectionstyle": f"arc3,rad={0.16 * (1 - rank)}",
        }
        page.annotate("", (1.65, centre), (1.08, 1.91), arrowprops=bend)
        page.text(4.3, centre - 0.17, f"rank {rank}", size=style.SMALL, color=style.SOFT, ha="center", va="center")
        if rank == 2:
            box(x, 1.75, top, side, side, "ab->ab")
            page.text(4.3, centre, "2 matrices", size=style.SMALL, ha="center", va="center")
            page.text(4.3, centre + 0.17, "n² rows", size=style.SMALL, ha="center", va="center", color=style.SOFT)
            box(0.5 * x + 0.5 * x.T, 5.55, top, side, side, "ab->ab")
        elif rank == 1:
            for column, (vector, name) in enumerate(((diagonal, "aa->a"), (rows, "ab->a"), (columns, "ab->b"))):
                box(vector, 1.82 + 0.48 * column, top, thin, side, name)
            page.text(4.3, centre, "3 x 3 matrices", size=style.SMALL, ha="center", va="center")
            page.text(4.3, centre + 0.17, "n rows", size=style.SMALL, ha="center", va="center", color=style.SOFT)
            flat = mixed.squeeze(1)
            for column, (matrix, name) in enumerate(
                ((torch.diag(flat), "a->aa"), (flat.unsqueeze(1).expand(5, 5), "a->ab"), (flat.expand(5, 5), "b->ab"))
            ):
                box(matrix, 5.4 + 0.56 * column, centre - 0.25, 0.5, 0.5, name)
        else:
            for column, name in enumerate(("aa->", "ab->")):
                box(number * (1 + 0.4 * column), 1.9 + 0.48 * column, centre - thin / 2, thin, thin, name)
            page.text(4.3, centre, "2 x 2 matrices", size=style.SMALL, ha="center", va="center")
            page.text(4.3, centre + 0.17, "1 row", size=style.SMALL, ha="center", va="center", color=style.SOFT)
            box(torch.diag(number.expand(5, 1).squeeze(1)), 5.5, centre - 0.25, 0.5, 0.5, "->aa")
            box(number.expand(5, 5), 6.1, centre - 0.25, 0.5, 0.5, "->ab")
        arrow(3.15, 3.68, centre)
        arrow(4.92, 5.28, centre)
        page.annotate("", (7.4, 1.91), (7.12, centre), arrowprops={**bend, "connectionstyle": "arc3,rad=0"})
    box((0.35 * x + 0.25 * x.T + 0.4 * mixed).clamp(0, 1), 7.5, 1.55, side, side)
    about = "Two maps multiply n² rows, nine n rows, four one row: three small products instead of fifteen large ones."
    page.text(0.3, 3.72, about, size=style.SMALL, color=style.SOFT, va="center")
    page.set(xlim=(0, width), ylim=(height, 0), aspect="auto")
    return figure


PICTURES = {"maps.png": draw_maps, "plan.png": draw_plan}

if __name__ == "__main__":
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else IMAGES
    save_figures({folder / name: draw() for name, draw in PICTURES.items()})
