"""The report of what networks tell apart: a page that needs no other file, its Markdown, its picture and its record."""

import json
import os
from collections.abc import Callable, Sequence
from dataclasses import asdict
from math import cos, pi, sin
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import nn

from bellnet import EquivariantLinear, EquivariantNet
from bellnet.data import Graph, undirected
from bellnet.draw import new_figure
from experiments.expressive.networks import Cube, Model, matrices, prime_for, whole
from experiments.expressive.skip_links import NETWORKS, SPLITS, Learned, learn
from experiments.expressive.suite import DRAWS, Row, Score, compare, from_brec, from_graph6, made_here, models
from experiments.machine import circumstances
from experiments.report import png, write_pages
from experiments.tables import MISSING, Table

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


THEORY = {1: "1-WL", 2: "2-FWL", 3: "3-FWL"}
"""What colour refinement of a dimension is called; the folklore form, which in dimension 1 is the only one."""
WRONG = "!"


def columns(asked: Sequence[Model]) -> list[Model | int]:
    """Dimensions of colour refinement, each before the models that should tell apart the same."""
    shown: list[Model | int] = []
    for dimension in sorted({model.dimension for model in asked}):
        shown += [dimension, *(model for model in asked if model.dimension == dimension)]
    return shown


def told_table(rows: Sequence[Row], asked: Sequence[Model]) -> Table:
    """How many pairs of each family are told apart."""
    shown = columns(asked)
    head = ("graphs", "pairs", *(THEORY[one] if isinstance(one, int) else one.name for one in shown))
    cells = tuple((row.family, str(row.pairs), *(_cell(row, one) for one in shown)) for row in rows)
    notes = [
        "Columns named WL are theory, exact colour refinement; networks after each should tell apart the same pairs."
    ]
    if any("of" in cell for line in cells for cell in line[2:]):
        largest = ", ".join(f"{model.name} {model.largest}" for model in asked)
        notes.append(f"Where it says how many of: the other graphs are too large to ask (nodes at most: {largest}).")
    notes += [
        f"{WRONG} {row.family}, {name}: {', '.join(score.wrong)}"
        for row in rows
        for name, score in row.scores.items()
        if score.wrong
    ]
    if not any(model.name == "GIN" for model in asked):
        notes.append("GIN is left out, since PyTorch Geometric is not installed: pip install 'bellnet[pyg]'.")
    return Table("Pairs of graphs told apart", head, cells, tuple(notes))


def _cell(row: Row, column: Model | int) -> str:
    score = row.theory[column] if isinstance(column, int) else row.scores[column.name]
    return _words(score, row.pairs)


def _words(score: Score, pairs: int) -> str:
    if score.pairs == 0:
        return MISSING
    told = str(score.told) if score.pairs == pairs else f"{score.told} of {score.pairs}"
    return f"{told} {WRONG}" if score.wrong else told


def learned_table(learned: Sequence[Learned]) -> Table:
    """How accurately networks name the skip of graphs that they have not seen."""
    rows = tuple(
        (one.name, f"{one.mean:.1%}", f"{min(one.accuracies):.0%}", str(len(one.accuracies)), f"{one.seconds:.0f}")
        for one in learned
    )
    head = ("network", "accuracy", "least", "test sets", "seconds")
    return Table("Circular skip links, ten classes, learned", head, rows)


def lines(table: Table) -> list[str]:
    """A table as plain text."""
    cells = [table.head, *table.rows]
    widths = [max(len(line[place]) for line in cells) for place in range(len(table.head))]

    def line(words: Sequence[str]) -> str:
        padded = [
            words[0].ljust(widths[0]),
            *(word.rjust(width) for word, width in zip(words[1:], widths[1:], strict=True)),
        ]
        return "  ".join(padded).rstrip()

    return [table.title, "", *(f"  {line(words)}" for words in cells), *(["", *table.notes] if table.notes else [])]


TITLE = "What networks can tell apart"
PICTURE, RECORD = "confused.png", "record.json"
CAPTION = "Two graphs that order 2 confuses: the numbers that networks give their nodes, and equal ones in one colour"
CRITERION = (
    f"Two graphs are told apart if one of {DRAWS} networks with random weights gives them different numbers. Networks "
    "run in float64 on whole numbers: weights are whole, sums are not divided, the activation is the cube, and after "
    "every layer the remainder by a prime is taken. All numbers stay below 2^53, so nothing is rounded. Every graph is "
    "also renumbered at random, and has to get exactly the same numbers; if not, the run ends with an error. So "
    "no network is credited with its own rounding, and differences that means would make faint count as well.",
    "A network has a layer for every round that colour refinement takes on its graphs, and two more.",
    "A difference of remainders proves that the network with these weights and the activation x^3 tells the graphs "
    "apart. That none is found proves nothing by itself; it agrees with theory, which is computed for every pair: "
    "colour refinement (1-WL) and its folklore forms on pairs and on triples (2-FWL, 3-FWL), with whole numbers "
    "for colours.",
)


def write(
    directory: Path, rows: Sequence[Row], asked: Sequence[Model], learned: Sequence[Learned], *, setup: dict[str, Any]
) -> list[Path]:
    """Write the report; the files written."""
    tables = [told_table(rows, asked), *([learned_table(learned)] if learned else [])]
    found = circumstances()
    record = {**setup, "rows": [asdict(row) for row in rows], "learned": [asdict(one) for one in learned], **found}
    about = [f"{key}: {value}" for key, value in setup.items()]
    for name in ("versions", "machine"):
        about.append(f"{name}: {', '.join(f'{key} {value}' for key, value in found[name].items())}")
    about += [f"commit: {found['commit']}"] if found["commit"] else []
    return write_pages(
        directory,
        TITLE,
        tables,
        {PICTURE: (CAPTION, png(confused(seed=setup["seed"])))},
        about=about,
        text={"The criterion": CRITERION},
        more={RECORD: (json.dumps(record, indent=1, ensure_ascii=False) + "\n").encode()},
    )


QUICK = ("order 2", "order 2 with products")
"""The networks that a quick run trains; order 3 takes half a minute for each test set."""


def run_expressive(
    directory: Path,
    *,
    quick: bool = False,
    seed: int = 0,
    graph6: Sequence[str | os.PathLike[str]] = (),
    brec: str | os.PathLike[str] | None = None,
    train: bool = True,
    say: Callable[[str], None] = print,
    progress: Callable[[str], None] = print,
) -> bool:
    """Compare networks with theory, train some on circular skip links, write the report; whether all is as expected."""
    given = [*map(from_graph6, graph6), *(() if brec is None else from_brec(brec))]  # what cannot be read is said first
    asked, rows = models(quick=quick), []
    for family in (*made_here(quick=quick, seed=seed), *given):
        progress(f"{family.name}: {family.n_pairs} pairs")
        rows.append(compare(family, asked, seed=seed, progress=progress))
    say("\n".join(lines(told_table(rows, asked))))
    learned: list[Learned] = []
    setup = {"seed": seed, "quick": quick, "graph6": [Path(path).name for path in graph6], "brec": brec is not None}
    written = write(directory, rows, asked, learned, setup=setup)  # and again with whatever is learned
    for name in (QUICK if quick else tuple(NETWORKS)) if train else ():
        progress(f"circular skip links, learned by {name}")
        learned.append(learn(name, splits=1 if quick else SPLITS, seed=seed))
        written = write(directory, rows, asked, learned, setup=setup)
    if learned:
        say("\n" + "\n".join(lines(learned_table(learned))))
    say("\n" + "\n".join(f"wrote {path}" for path in written))
    return all(row.agrees for row in rows)
