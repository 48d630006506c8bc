"""The report on expressive power: a page that needs no other file, its Markdown, its picture and its record."""

import json
import os
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import nn

from bellnet import EquivariantLinear, EquivariantNet
from bellnet.data import Graph, as_graph
from bellnet.draw import new_figure
from experiments.expressive.networks import Cube, Model, matrices, models, prime_for, with_integers
from experiments.expressive.skip_links import NETWORKS, SPLITS, Learned, cross_validate
from experiments.expressive.suite import DRAWS, Row, Score, compare, from_brec, from_graph6, generated
from experiments.machine import circumstances
from experiments.page import MISSING, Page, Table, print_table
from experiments.report import circumstances_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure

CHANNELS = 4
COLOURS = ("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#d55e00", "#56b4e9", "#6b6b6b", "#222222")
PRIME = prime_for(2**33)
"""Small enough to be read, and to be exact for triples of ten nodes."""


def two_rings() -> dict[str, Any]:
    """Two graphs of networkx that 1-WL does not distinguish, with ten nodes and eleven edges each."""
    import networkx as nx

    decalin, pentagon = nx.cycle_graph(10), nx.cycle_graph(5)
    bicyclopentyl = nx.disjoint_union(pentagon, pentagon)
    for graph in (decalin, bicyclopentyl):
        graph.add_edge(0, 5)
    return {"two hexagons (decalin)": decalin, "two pentagons (bicyclopentyl)": bicyclopentyl}


def node_outputs(order: int, graphs: Sequence[Graph], *, seed: int = 0) -> list[list[int]]:
    """The outputs of a network of integers at the nodes of each graph."""
    shape = " ".join("n" * order)
    first = EquivariantLinear(f"n n -> {shape}", 2, CHANNELS, normalize="sum")
    rest = EquivariantNet(f"{shape} -> n", [*[CHANNELS] * 3, 1], normalize="sum", activation=lambda: Cube(PRIME))
    net = with_integers(nn.Sequential(first, Cube(PRIME), rest), PRIME, seed)
    with torch.no_grad():
        return [net(matrices(graph)).squeeze(-1).long().tolist() for graph in graphs]


def draw_pair(*, seed: int = 0) -> "Figure":
    """The pair, twice: nodes with their outputs of order 2, and with those of order 3."""
    import networkx as nx

    pair = two_rings()
    figure = new_figure(8, 6.4)
    for row, order in zip(figure.subplots(2, 2), (2, 3), strict=True):
        found = node_outputs(order, list(map(as_graph, pair.values())), seed=seed)
        colours = dict(zip(sorted({output for outputs in found for output in outputs}), COLOURS, strict=False))
        for axes, (name, graph), outputs in zip(row, pair.items(), found, strict=True):
            nx.draw(
                graph,
                nx.kamada_kawai_layout(graph),
                axes,
                node_color=[colours[output] for output in outputs],
                node_size=420,
                edgecolors="#222222",
                linewidths=0.6,
                edge_color="#6b6b6b",
                width=1.5,
                labels=dict(enumerate(outputs)),
                font_size=6,
                font_color="white",
            )
            axes.set_aspect("equal")
            axes.margins(0.15)
            axes.set_title(f"{name}\norder {order}: the sum is {sum(outputs) % PRIME}", fontsize=9)
    return figure


THEORY = {1: "1-WL", 2: "2-FWL", 3: "3-FWL"}
WRONG = "!"


def pairs_table(rows: Sequence[Row], models: Sequence[Model]) -> Table:
    """The number of pairs of each family that are distinguished, for each dimension in theory and by its models."""
    scores: dict[str, list[Score]] = {}
    for dimension in sorted({model.dimension for model in models}):
        scores[THEORY[dimension]] = [row.theory[dimension] for row in rows]
        scores |= {m.name: [row.scores[m.name] for row in rows] for m in models if m.dimension == dimension}
    cells = [[_cell(some[i], row.pairs) for some in scores.values()] for i, row in enumerate(rows)]
    notes = ["Columns with WL are theory; the networks to the right of each should distinguish the same pairs."]
    if any("of" in cell for line in cells for cell in line):
        largest = ", ".join(f"{model.name} {model.largest}" for model in models)
        notes.append(f'"of": the other graphs are too large for the network (maximum numbers of nodes: {largest}).')
    notes += [
        f"{WRONG} {row.family}, {name}: {', '.join(score.wrong)}"
        for row in rows
        for name, score in row.scores.items()
        if score.wrong
    ]
    if not any(model.name == "GIN" for model in models):
        notes.append("GIN is omitted, since PyTorch Geometric is not installed: pip install 'bellnet[pyg]'.")
    lines = tuple((row.family, str(row.pairs), *line) for row, line in zip(rows, cells, strict=True))
    return Table("Pairs of graphs that are distinguished", ("graphs", "pairs", *scores), lines, tuple(notes))


def _cell(score: Score, pairs: int) -> str:
    if score.pairs == 0:
        return MISSING
    count = str(score.distinguished) if score.pairs == pairs else f"{score.distinguished} of {score.pairs}"
    return f"{count} {WRONG}" if score.wrong else count


def learned_table(learned: Sequence[Learned]) -> Table:
    """The accuracy of networks on the classes of circular skip links."""
    rows = tuple(
        (one.name, f"{one.mean:.1%}", f"{min(one.accuracies):.0%}", str(len(one.accuracies)), f"{one.seconds:.0f}")
        for one in learned
    )
    head = ("network", "accuracy", "least", "test sets", "seconds")
    return Table("Circular skip links, ten classes, learned", head, rows)


CAPTION = "Two graphs that order 2 does not distinguish: outputs of networks at their nodes, equal ones in one colour"
CRITERION = (
    f"Two graphs are distinguished if one of {DRAWS} networks with random weights has different outputs for them. "
    "Networks run in float64 on integers: weights are integers, sums are not divided, the activation is the cube, and "
    "every layer is followed by the remainder modulo a prime. All integers stay below 2^53, so nothing is rounded. "
    "Every graph is also permuted at random, which must not change its outputs; otherwise the run ends with an error.",
    "A network has two layers more than WL has rounds on its graphs.",
    "Different remainders prove that the network with these weights and the activation x^3 distinguishes the graphs. "
    "Equal ones prove nothing by themselves; they agree with theory, which is computed for every pair: 1-WL (colour "
    "refinement) and its folklore forms on pairs and on triples (2-FWL, 3-FWL), with integers as colours.",
)


def write(
    directory: Path, rows: Sequence[Row], models: Sequence[Model], learned: Sequence[Learned], setup: dict[str, Any]
) -> list[Path]:
    """Write the report; the files written."""
    where = circumstances()
    record = {**setup, "rows": [asdict(row) for row in rows], "learned": [asdict(one) for one in learned], **where}
    page = Page("Expressive power")
    page.table(pairs_table(rows, models))
    if learned:
        page.table(learned_table(learned))
    page.heading(CAPTION)
    page.picture(draw_pair(seed=setup["seed"]), CAPTION, file="pair.png")
    page.heading("The criterion")
    for paragraph in CRITERION:
        page.words(paragraph)
    page.heading("Circumstances")
    page.items([*(f"{key}: {value}" for key, value in setup.items()), *circumstances_of([where])])
    return page.write(directory, {"record.json": (json.dumps(record, indent=1, ensure_ascii=False) + "\n").encode()})


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
    progress: Callable[[str], None] = print,
) -> bool:
    """Compare networks with theory, train some on circular skip links, write the report; whether all is as expected."""
    given = [*map(from_graph6, graph6), *(() if brec is None else from_brec(brec))]  # files are read before any work
    used, rows = models(quick=quick), []
    for family in (*generated(quick=quick, seed=seed), *given):
        progress(f"{family[0]}: {sum(group.n_pairs for group in family[1])} pairs")
        rows.append(compare(family, used, seed=seed, progress=progress))
    print_table(pairs_table(rows, used))
    learned: list[Learned] = []
    setup = {"seed": seed, "quick": quick, "graph6": [Path(path).name for path in graph6], "brec": brec is not None}
    written = write(directory, rows, used, learned, setup)  # and again after each training
    for name in (QUICK if quick else tuple(NETWORKS)) if train else ():
        progress(f"circular skip links, learned by {name}")
        learned.append(cross_validate(name, splits=1 if quick else SPLITS, seed=seed))
        written = write(directory, rows, used, learned, setup)
    if learned:
        print_table(learned_table(learned))
    print("\n".join(f"wrote {path}" for path in written))
    return all(row.agrees for row in rows)
