"""The paper's Tables 1 and 2, from records: our figures beside the paper's."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import TYPE_CHECKING, Any

from experiments.matrix_cell import LAYERS, TASKS, MatrixCell

if TYPE_CHECKING:
    from rich.table import Table as RichTable

PAPER1: dict[str, dict[str, tuple[float, ...]]] = {
    "bellnet": {
        "symmetric": (1e-5, 7e-6, 2e-5),
        "diagonal": (8e-6, 7e-6, 1e-4),
        "singular": (0.015, 0.0084, 0.0054, 0.0016),
        "trace": (0.005, 0.001, 0.003),
    },
    "hartford": {
        "symmetric": (2.09, 2.09, 2.09),
        "diagonal": (0.81, 0.81, 0.81),
        "singular": (0.043, 0.044, 0.043, 0.043),
        "trace": (316.22, 311.55, 307.97),
    },
    "trivial": {"symmetric": (4.17,) * 3, "diagonal": (0.21,) * 3, "singular": (0.025,) * 4, "trace": (333.33,) * 3},
}
PAPER2: dict[str, dict[int, float]] = {
    "symmetric": {30: 0.0053, 40: 3.8e-5, 50: 0.0013},
    "singular": {30: 0.0108, 40: 0.0084, 50: 0.0096},
    "diagonal": {30: 0.0150, 40: 1.5e-5, 50: 0.0055},
}
SUBJECTS2 = (*PAPER2, "trace", "trace per node")
"""The rows of Table 2; the paper has no figures for the trace and says that it did not generalise."""
PAPER_SETUP = (40, 10_000, 1_000)
"""The paper's number of nodes, of examples to learn from and to test on."""
MISSING = "-"
BETTER, EQUAL, WORSE = "better", "equal", "worse"
TOLERANCE = 0.05
"""Figures that differ by less than this fraction count as equal: the paper rounds, and other examples were drawn."""

Finished = Sequence[Mapping[str, Any]]


@dataclass(frozen=True)
class Table:
    """A table of words: its title, its head, its rows, and what to know about it; `left` columns are no figures."""

    title: str
    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    notes: tuple[str, ...] = ()
    left: int = 1

    def markdown(self) -> str:
        """As Markdown."""
        lines = [self.head, tuple("---" for _ in self.head), *self.rows]
        table = "\n".join(f"| {' | '.join(line)} |" for line in lines)
        return "\n\n".join([f"## {self.title}", table, *self.notes])

    def html(self, *, level: int = 2) -> str:
        """As HTML, with its title as a heading of that level."""
        from html import escape

        def row(cells: tuple[str, ...], tag: str) -> str:
            kinds = ["word" if place < self.left else cell for place, cell in enumerate(cells)]
            both = zip(kinds, cells, strict=True)
            return "<tr>" + "".join(f'<{tag} class="{escape(k)}">{escape(c)}</{tag}>' for k, c in both) + "</tr>"

        lines = [row(self.head, "th"), *(row(cells, "td") for cells in self.rows)]
        notes = "".join(f'<p class="note">{escape(note)}</p>' for note in self.notes)
        rows = "\n".join(lines)
        title = f"<h{level}>{escape(self.title)}</h{level}>"
        return f'{title}\n<div class="wide"><table>\n{rows}\n</table></div>\n{notes}'

    def rich(self) -> "RichTable":
        """As rich prints it."""
        from rich.table import Table as RichTable

        colours = {BETTER: "green", WORSE: "red", "✓": "green", "✗": "red"}
        table = RichTable(title=self.title, caption="\n".join(self.notes) or None)
        for number, name in enumerate(self.head):
            table.add_column(name, justify="left" if number < self.left else "right")
        for row in self.rows:
            table.add_row(*(f"[{colours[cell]}]{cell}[/]" if cell in colours else cell for cell in row))
        return table


def verdict(found: float, paper: float) -> str:
    """Whether an error is smaller than the paper's, larger, or the same up to `TOLERANCE`."""
    if abs(found - paper) <= TOLERANCE * paper:
        return EQUAL
    return BETTER if found < paper else WORSE


def table1(finished: Finished) -> Table:
    """Table 1: the error of each method on each task, with the paper's figure beside it."""
    chosen = choose(finished, "table1")
    comparable = _is_comparable(chosen)
    rows = []
    for task in TASKS:
        for place, layers in enumerate(LAYERS[task]):
            row = [task, str(layers)]
            for method, paper in PAPER1.items():
                found = mean_error(chosen.get((task, layers, method), ()), None)
                row += [figure(found), figure(paper[task][place])]
                if method == "bellnet":
                    row.append(_verdict(found, paper[task][place], comparable))
            rows.append(tuple(row))
    head = ("task", "layers", "bellnet", "paper", "bellnet is", "Hartford", "paper", "trivial", "paper")
    return Table("Table 1: mean square error on the test set", head, tuple(rows), _notes(chosen, len(rows) * 3))


def table2(finished: Finished) -> Table:
    """Table 2: networks that learned from matrices of one size, tested on other sizes."""
    chosen = choose(finished, "table2")
    comparable = _is_comparable(chosen)
    rows = []
    for subject in SUBJECTS2:
        for layers in sorted({key[1] for key in chosen if key[0] == subject}) or [2]:
            row = [subject, str(layers)]
            for n in (30, 40, 50):
                found, paper = (
                    mean_error(chosen.get((subject, layers, "bellnet"), ()), n),
                    PAPER2.get(subject, {}).get(n),
                )
                row += [figure(found), figure(paper), _verdict(found, paper, comparable)]
            rows.append(tuple(row))
    head = ("task", "layers", *(word for n in (30, 40, 50) for word in (f"n={n}", "paper", "bellnet is")))
    title = "Table 2: mean square error on matrices of other sizes than learned from"
    return Table(title, head, tuple(rows), _notes(chosen, len(rows)))


def sizes_table(finished: Finished) -> Table:
    """The error of the networks of Table 2 for every number of nodes that they were tested with."""
    chosen = choose(finished, "table2")
    columns = sorted(chosen, key=lambda place: (SUBJECTS2.index(place[0]), place[1]))
    sizes = sorted({int(n) for records in chosen.values() for record in records for n in record["errors"]})
    rows = tuple((str(n), *(figure(mean_error(chosen[column], n)) for column in columns)) for n in sizes)
    head = ("n", *(f"{subject}, {layers} layers" for subject, layers, _ in columns))
    return Table("Error against the number of nodes", head, rows)


Place = tuple[str, int, str]


def choose(finished: Finished, table: str) -> dict[Place, list[Mapping[str, Any]]]:
    """For each subject, number of layers and method, one record for each seed: the one that validates best.

    Only the set-up with the most training examples counts, so a quick run does not mix with a whole one. The test
    set has no say in this.
    """
    found = [
        (MatrixCell.from_json(record["config"]), record) for record in finished if record["config"]["table"] == table
    ]
    most = max((cell.train for cell, _ in found), default=0)
    best: dict[Place, dict[int, Mapping[str, Any]]] = {}
    for cell, record in found:
        if cell.train == most:
            seeds = best.setdefault((cell.subject, cell.layers, cell.method), {})
            held = seeds.get(cell.seed)
            if held is None or _validation(record) < _validation(held):
                seeds[cell.seed] = record
    return {place: [seeds[seed] for seed in sorted(seeds)] for place, seeds in best.items()}


def _setups(chosen: Mapping[Place, Sequence[Mapping[str, Any]]]) -> list[tuple[int, int, int]]:
    cells = [MatrixCell.from_json(record["config"]) for records in chosen.values() for record in records]
    return sorted({(cell.n, cell.train, cell.test) for cell in cells})


def _is_comparable(chosen: Mapping[Place, Sequence[Mapping[str, Any]]]) -> bool:
    return all(n == PAPER_SETUP[0] for n, _, _ in _setups(chosen))


def _verdict(found: float | None, paper: float | None, comparable: bool) -> str:
    return verdict(found, paper) if found is not None and paper is not None and comparable else MISSING


def _validation(record: Mapping[str, Any]) -> float:
    error = record["validation"]
    # A run that has diverged validates as not-a-number, which is smaller than nothing.
    return float("inf") if error is None or error != error else float(error)


def mean_error(records: Sequence[Mapping[str, Any]], n: int | None) -> float | None:
    """The mean over seeds of the error with n nodes, or with as many as were learned from."""
    found = [record["errors"].get(str(record["config"]["n"] if n is None else n)) for record in records]
    figures = [error for error in found if error is not None]
    return fmean(figures) if figures else None


def figure(error: float | None) -> str:
    """An error as tables show it."""
    if error is None:
        return MISSING
    return f"{error:.1e}" if 0 < abs(error) < 1e-3 else f"{error:.4g}"


def _notes(chosen: Mapping[Place, Sequence[Mapping[str, Any]]], wanted: int) -> tuple[str, ...]:
    notes = ["k layers are k equivariant layers of 8 channels with ReLU; the output layer is not counted."]
    if len(chosen) < wanted:
        notes.append(f"{len(chosen)} of {wanted} cells have been run.")
    for n, train, test in _setups(chosen):
        notes.append(f"Learned with n={n} from {train} examples, tested on {test}.")
    if not _is_comparable(chosen):
        notes.append("The paper has n=40, 10000 and 1000: these figures cannot be compared with its own.")
    elif any(setup != PAPER_SETUP for setup in _setups(chosen)):
        notes.append("The paper learned from 10000 examples and tested on 1000; leave out --quick to do the same.")
    seeds = max((len(records) for records in chosen.values()), default=0)
    if seeds > 1:
        notes.append(f"Means over up to {seeds} seeds.")
    return tuple(notes)
