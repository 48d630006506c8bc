"""The basis as a picture: every map as a matrix of ones and zeros, and the biases on their right.

For "n n -> n n" this is Figure 1 of the paper. Lines separate the values of the first slot, finer ones single cells.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import ceil, prod
from typing import TYPE_CHECKING

from bellnet._utils.optional import require
from bellnet.draw import style
from bellnet.draw.diagrams import checked_spec, refuse_many
from bellnet.draw.style import Grid, fit_grid, fitting
from bellnet.errors import OptionError, count_of
from bellnet.plan import Plan, plan
from bellnet.plan.contraction import letters
from bellnet.plan.cost import check_sizes
from bellnet.spec import Spec

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from torch import Tensor

    from bellnet.draw.figure import Sheet

MOST_MAPS = 60
MOST_ROWS = 150
AGREEMENT = {"orbit": "exactly", "diagram": "at least"}
LABEL = 0.3


@dataclass(frozen=True)
class Picture:
    """A matrix of ones and zeros; `together` is how many rows, and columns, belong to one value of the first slot."""

    title: str
    matrix: "Tensor"
    together: tuple[int, int]


def draw_basis(spec: str | Spec, n: int | Mapping[str, int] = 5, *, basis: str = "orbit") -> "Figure":
    """Draw all maps of a spec as matrices, and its biases.

    The rows of a matrix are output indices and its columns input indices, the last slot fastest.

    Args:
        spec: The shape of source and target, for instance "n n -> n n".
        n: The number of nodes: one for all node sets, or a dict with one for each.
        basis: "orbit", one where the indices have exactly the equalities of the title, or "diagram", where they have
            at least those.

    Returns:
        A matplotlib figure; `figure.savefig("figure1.png")` writes it. Its axes are the maps in canonical order, then
        the biases, each with its title.
    """
    spec, call = checked_spec("draw_basis", spec)
    if basis not in AGREEMENT:
        raise OptionError(f"{call}: basis must be one of {', '.join(map(repr, AGREEMENT))}, not {basis!r}.")
    sizes = check_sizes(call, spec.node_sets, n, name="n", least=1)
    refuse_many(call, spec, MOST_MAPS, "maps", "use draw_diagrams, which has room for more")
    for side, slots in (("columns", spec.source), ("rows", spec.target)):
        if (length := prod(sizes[name] for name in slots)) > MOST_ROWS:
            raise OptionError(
                f"{call}: the matrices would have {length:,} {side}; a picture shows up to {MOST_ROWS}.\n"
                "Pass a smaller n: with as many nodes as slots, every map is there to see."
            )
    require("matplotlib", extra="draw", call=call)
    return _lay_out(spec, _about(sizes, basis), *_pictures(plan(spec), sizes, basis))


def _about(sizes: Mapping[str, int], basis: str) -> tuple[str, str]:
    nodes = [f"{name} = {size}" for name, size in sizes.items()]
    return (
        f"{', '.join([f'{basis} basis', *nodes])}; rows are output indices, columns input indices,",
        f"filled where the indices agree {AGREEMENT[basis]} as the letters say",
    )


def _lay_out(spec: Spec, about: tuple[str, str], maps: Sequence[Picture], biases: Sequence[Picture]) -> "Figure":
    from bellnet.draw.figure import Sheet

    cell, bias_cell = _cell_side(maps[0], most=0.2), _cell_side(biases[0], most=0.24)
    grid = fit_grid(len(maps), _panel_size(maps, cell))
    bias_panel = _panel_size(biases, bias_cell)
    bias_grid = Grid(len(biases), ceil(len(biases) / fitting(bias_panel[1], grid.height)), bias_panel)
    left, top = style.MARGIN, style.MARGIN + style.HEAD + LABEL
    rule = left + max(grid.width, 0.5) + 1.5 * style.GAP
    bias_left = rule + 1.5 * style.GAP
    bottom = top + max(grid.height, bias_grid.height)
    sheet = Sheet(spec, about, bias_left + max(bias_grid.width, 0.6) + style.MARGIN, bottom + style.MARGIN)
    sheet.rule((rule, top - LABEL), (rule, bottom))
    _draw_all(sheet, maps, grid, (left, top), cell=cell, color=style.MAP, names=("map", "maps"))
    _draw_all(sheet, biases, bias_grid, (bias_left, top), cell=bias_cell, color=style.BIAS, names=("bias", "biases"))
    return sheet.figure


def _cell_side(picture: Picture, *, most: float) -> float:
    rows, columns = picture.matrix.shape
    # Long matrices get more room rather than cells too small to see.
    least = 0.04 if min(rows, columns) <= 30 else 0.025
    return min(max(1.3 / rows, least), max(2.5 / columns, least), most)


def _panel_size(pictures: Sequence[Picture], cell: float) -> tuple[float, float]:
    rows, columns = pictures[0].matrix.shape
    widest = max(style.width_of_name(picture.title) for picture in pictures)
    return max(columns * cell, widest), rows * cell + style.TITLE


def _draw_all(
    sheet: "Sheet",
    pictures: Sequence[Picture],
    grid: Grid,
    position: tuple[float, float],
    *,
    cell: float,
    color: str,
    names: tuple[str, str],
) -> None:
    left, top = position
    sheet.write(left, top - LABEL, count_of(len(pictures), *names), size=style.TEXT, color=color, bold=True)
    for number, picture in enumerate(pictures):
        x, y = grid.position(number)
        _draw(sheet, picture, (left + x, top + y + style.TITLE), cell, color)


def _draw(sheet: "Sheet", picture: Picture, position: tuple[float, float], cell: float, color: str) -> None:
    from matplotlib.colors import ListedColormap

    rows, columns = picture.matrix.shape
    axes = sheet.panel(*position, columns * cell, rows * cell)
    colors = ListedColormap([style.PAPER, color])
    axes.imshow(picture.matrix.numpy(), cmap=colors, vmin=0, vmax=1, aspect="auto", interpolation="nearest")
    _separate(axes, picture, fine=cell > 0.03)
    for spine in axes.spines.values():
        spine.set(color=style.RULE, linewidth=style.THIN * 1.5)
    sheet.name(axes, picture.title)


def _separate(axes: "Axes", picture: Picture, *, fine: bool) -> None:
    """Draw lines between the values of the first slot, and fine ones between all cells."""
    from matplotlib.collections import LineCollection

    rows, columns = picture.matrix.shape
    between: list[list[tuple[float, float]]] = []
    others: list[list[tuple[float, float]]] = []
    for length, across, together, vertical in (
        (rows, columns, picture.together[0], False),
        (columns, rows, picture.together[1], True),
    ):
        for at in range(1, length):
            ends = [(-0.5, at - 0.5), (across - 0.5, at - 0.5)]
            line = [(y, x) for x, y in ends] if vertical else ends
            (others if at % together else between).append(line)
    if fine:
        axes.add_collection(LineCollection(others, colors=style.FAINT, linewidths=style.HAIR), autolim=False)
    axes.add_collection(LineCollection(between, colors=style.RULE, linewidths=style.THIN), autolim=False)


def _pictures(plan: Plan, sizes: Mapping[str, int], basis: str) -> tuple[list[Picture], list[Picture]]:
    """The maps and the biases, in canonical order."""
    from bellnet.backends.reference import basis_tensors, bias_tensors

    source, target = ([sizes[name] for name in slots] for slots in (plan.spec.source, plan.spec.target))
    maps = basis_tensors(plan, sizes, basis=basis).reshape(plan.n_maps, prod(source), prod(target)).mT
    biases = bias_tensors(plan, sizes, basis=basis).reshape(plan.n_biases, prod(target[:1]), prod(target[1:]))
    together = (prod(target[1:]), prod(source[1:]))
    return (
        [Picture(one.name, matrix, together) for one, matrix in zip(plan.diagrams, maps, strict=True)],
        [
            Picture(f"->{letters(pattern)}", matrix, (1, prod(target[2:])))
            for pattern, matrix in zip(plan.biases, biases, strict=True)
        ],
    )
