"""A picture of two graphs that order 2 confuses: nodes with the numbers that networks give them, equal ones alike."""

from collections.abc import Sequence
from math import cos, pi, sin
from typing import TYPE_CHECKING

import torch
from torch import nn

from bellnet import EquivariantLinear, EquivariantNet
from bellnet.data import Graph, undirected
from bellnet.draw import new_figure
from experiments.expressive.networks import Cube, matrices, prime_for, whole

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Places = list[tuple[float, float]]

CHANNELS = 4
SHADES = ("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#d55e00", "#56b4e9", "#6b6b6b", "#222222")
PRIME = prime_for(2**33)
"""Small enough to be read, and to be exact for triples of ten nodes."""


def two_rings() -> list[tuple[str, Graph, Places]]:
    """Ten nodes and eleven edges, twice: two hexagons that share an edge, and two pentagons joined by one."""
    hexagons = [*zip(range(10), [*range(1, 10), 0], strict=True), (0, 5)]
    pentagons = [(node, (node + 1) % 5) for node in range(5)]
    pentagons += [(5 + one, 5 + other) for one, other in pentagons] + [(0, 5)]
    return [
        ("two hexagons (decalin)", undirected(10, hexagons), _hexagons()),
        ("two pentagons (bicyclopentyl)", undirected(10, pentagons), _pentagons()),
    ]


def _hexagons() -> Places:
    """Nodes 0 and 5 are shared."""
    left = [(cos(pi / 6 + pi / 3 * turn) - cos(pi / 6), sin(pi / 6 + pi / 3 * turn)) for turn in range(6)]
    right = [(-x, y) for x, y in left]
    return [left[0], *right[1:5], left[5], *left[1:5][::-1]]


def _pentagons() -> Places:
    left = [(cos(2 * pi / 5 * turn) - 1.5, sin(2 * pi / 5 * turn)) for turn in range(5)]
    return [*left, *((-x, y) for x, y in left)]


def values(order: int, graphs: Sequence[Graph], *, seed: int = 0) -> list[list[int]]:
    """The remainders that a network of whole numbers gives the nodes of each graph."""
    shape = " ".join("n" * order)
    first = EquivariantLinear(f"n n -> {shape}", 2, CHANNELS, normalize="sum")
    widths = [CHANNELS, CHANNELS, CHANNELS, 1]
    rest = EquivariantNet(f"{shape} -> n", widths, normalize="sum", activation=lambda: Cube(PRIME))
    net = whole(nn.Sequential(first, Cube(PRIME), rest), PRIME, seed)
    with torch.no_grad():
        return [net(matrices(graph)).squeeze(-1).long().tolist() for graph in graphs]


def confused(*, seed: int = 0) -> "Figure":
    """The pair, twice: nodes with the numbers that order 2 gives them, and with those of order 3."""
    pair = two_rings()
    figure = new_figure(8, 6.4)
    for row, order in zip(figure.subplots(2, 2), (2, 3), strict=True):
        found = values(order, [graph for _, graph, _ in pair], seed=seed)
        colours = dict(zip(sorted({number for numbers in found for number in numbers}), SHADES, strict=False))
        for axes, (name, graph, places), numbers in zip(row, pair, found, strict=True):
            _draw(axes, graph, places)
            for place, number in zip(places, numbers, strict=True):
                axes.scatter(*place, color=colours[number], s=420, edgecolors="#222222", linewidths=0.6, zorder=2)
                axes.text(*place, str(number), fontsize=6, ha="center", va="center", color="white", zorder=3)
            axes.set_title(f"{name}\norder {order}: {sum(numbers) % PRIME} altogether", fontsize=9)
    return figure


def _draw(axes: "Axes", graph: Graph, places: Places) -> None:
    for one, other in graph.edge_index.T.tolist():
        if one < other:
            (x, y), (z, w) = places[one], places[other]
            axes.plot([x, z], [y, w], color="#6b6b6b", linewidth=1.5, zorder=1)
    axes.set_aspect("equal")
    axes.set_axis_off()
    axes.margins(0.15)
