"""The basis as a picture: every map a matrix of ones and zeros, and the biases set apart on their right.

For "n n -> n n" this is Figure 1 of the paper. Lines part the values of the first slot, finer ones the single cells.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import ceil, prod
from typing import TYPE_CHECKING

from bellnet._utils.optional import require
from bellnet.draw import style
from bellnet.draw.diagrams import refuse_several
from bellnet.draw.style import Grid, fit_grid, fitting
from bellnet.errors import OptionError, SizesError
from bellnet.plan import Plan, count_maps, plan, short_count, short_spec
from bellnet.plan.contraction import letters
from bellnet.spec import Spec, parse_spec

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
    spec = parse_spec(spec)
    call = f'draw_basis("{short_spec(spec)}")'
    refuse_several(call, spec)
    if basis not in AGREEMENT:
        raise OptionError(f"{call}: basis must be one of {', '.join(map(repr, AGREEMENT))}, not {basis!r}.")
    sizes = sizes_of_sets(call, spec, n)
    _refuse_giants(call, spec, sizes)
    require("matplotlib", extra="draw", call=call)
    the_plan = plan(spec)
    maps = pictures_of_maps(the_plan, sizes, basis=basis)
    biases = pictures_of_biases(the_plan, sizes, basis=basis)
    return _lay_out(spec, _about(sizes, basis), maps, biases)


def _refuse_giants(call: str, spec: Spec, sizes: Mapping[str, int]) -> None:
    if (n_maps := count_maps(spec)) > MOST_MAPS:
        raise OptionError(
            f"{call}: there are {short_count(n_maps)} maps; a picture shows up to {MOST_MAPS}.\n"
            "Lower the order, or use draw_diagrams, which has room for more."
        )
    for side, slots in (("columns", spec.source), ("rows", spec.target)):
        if (length := prod(sizes[name] for name in slots)) > MOST_ROWS:
            raise OptionError(
                f"{call}: the matrices would have {length:,} {side}; a picture shows up to {MOST_ROWS}.\n"
                "Pass a smaller n: with as many nodes as slots, every map is there to see."
            )


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
    place: tuple[float, float],
    *,
    cell: float,
    color: str,
    names: tuple[str, str],
) -> None:
    left, top = place
    label = f"{len(pictures)} {names[len(pictures) > 1]}"
    sheet.write(left, top - LABEL, label, size=style.TEXT, color=color, bold=True)
    for number, picture in enumerate(pictures):
        x, y = grid.place(number)
        _draw(sheet, picture, (left + x, top + y + style.TITLE), cell, color)


def _draw(sheet: "Sheet", picture: Picture, place: tuple[float, float], cell: float, color: str) -> None:
    from matplotlib.colors import ListedColormap

    rows, columns = picture.matrix.shape
    axes = sheet.panel(*place, columns * cell, rows * cell)
    colors = ListedColormap([style.PAPER, color])
    axes.imshow(picture.matrix.numpy(), cmap=colors, vmin=0, vmax=1, aspect="auto", interpolation="nearest")
    _part(axes, picture, fine=cell > 0.03)
    for spine in axes.spines.values():
        spine.set(color=style.RULE, linewidth=style.THIN * 1.5)
    sheet.name(axes, picture.title)


def _part(axes: "Axes", picture: Picture, *, fine: bool) -> None:
    """Draw lines between the values of the first slot, and fine ones between all cells."""
    from matplotlib.collections import LineCollection

    rows, columns = picture.matrix.shape
    parting: list[list[tuple[float, float]]] = []
    others: list[list[tuple[float, float]]] = []
    for length, across, together, vertical in (
        (rows, columns, picture.together[0], False),
        (columns, rows, picture.together[1], True),
    ):
        for at in range(1, length):
            ends = [(-0.5, at - 0.5), (across - 0.5, at - 0.5)]
            line = [(y, x) for x, y in ends] if vertical else ends
            (others if at % together else parting).append(line)
    if fine:
        axes.add_collection(LineCollection(others, colors=style.FAINT, linewidths=style.HAIR), autolim=False)
    axes.add_collection(LineCollection(parting, colors=style.RULE, linewidths=style.THIN), autolim=False)


def pictures_of_maps(plan: Plan, sizes: Mapping[str, int], *, basis: str) -> list[Picture]:
    """One for every map, in canonical order."""
    from bellnet.backends.reference import basis_tensors

    source, target = ([sizes[name] for name in slots] for slots in (plan.spec.source, plan.spec.target))
    tensors = basis_tensors(plan, sizes, basis=basis).reshape(plan.n_maps, prod(source), prod(target)).mT
    together = (prod(target[1:]), prod(source[1:]))
    titles = [diagram.name for diagram in plan.diagrams]
    return [Picture(title, matrix, together) for title, matrix in zip(titles, tensors, strict=True)]


def pictures_of_biases(plan: Plan, sizes: Mapping[str, int], *, basis: str) -> list[Picture]:
    """One for every bias, in canonical order."""
    from bellnet.backends.reference import bias_tensors

    target = [sizes[name] for name in plan.spec.target]
    tensors = bias_tensors(plan, sizes, basis=basis).reshape(plan.n_biases, prod(target[:1]), prod(target[1:]))
    together = (1, prod(target[2:]))
    titles = [f"->{letters(partition)}" for partition in plan.biases]
    return [Picture(title, matrix, together) for title, matrix in zip(titles, tensors, strict=True)]


def sizes_of_sets(call: str, spec: Spec, n: int | Mapping[str, int]) -> dict[str, int]:
    """The number of nodes of every node set, from one number for all or a number for each."""
    sizes = dict(n) if isinstance(n, Mapping) else dict.fromkeys(spec.node_sets, n)
    example = f"{{{', '.join(f'{name!r}: 4' for name in spec.node_sets)}}}"
    if missing := [name for name in spec.node_sets if name not in sizes]:
        raise SizesError(f"{call}: n has no entry for node set {missing[0]!r}.\nPass one number for all, or {example}.")
    if unknown := [name for name in sizes if name not in spec.node_sets]:
        known = ", ".join(map(repr, spec.node_sets)) or "none"
        raise SizesError(f"{call}: n has an entry for {unknown[0]!r}, but the node sets are {known}.")
    for name, size in sizes.items():
        if not _is_count(size):
            raise SizesError(f"{call}: the number of nodes of {name!r} must be a whole number from 1 up, not {size!r}.")
    return sizes


def _is_count(size: object) -> bool:
    return isinstance(size, int) and not isinstance(size, bool) and size >= 1
