"""Results of a directory, and the paper's Tables 1 and 2 with them."""

from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import Any

from bellnet.errors import BellnetError, DataError
from experiments.graph_cell import GraphCell
from experiments.matrix_cell import LAYERS, TABLES, TASKS, MatrixCell
from experiments.page import MISSING, Table
from experiments.records import Record, Records

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
"""The rows of Table 2; the paper has no figures for the trace and states that it did not generalise."""
PAPER_SETUP = (40, 10_000, 1_000)
"""The paper's number of nodes, of training examples and of test examples."""
BETTER, EQUAL, WORSE = "better", "equal", "worse"
TOLERANCE = 0.05
"""Figures that differ by less than this fraction count as equal: the paper rounds, and examples are random."""

Place = tuple[str, int, str]
"""Subject, number of layers, method."""


def results_of(records: Records) -> list[Record]:
    """The records of a directory, all of which are results of cells of tables."""
    found = records.read()
    wrong = "".join(f'  - "{key}" has no {lack}\n' for key, record in found.items() if (lack := _lack(record)))
    if wrong:
        raise DataError(
            f"{records.path}: lines are not results of a table:\n{wrong}"
            "Delete the lines with these keys. A command that needs such a cell runs it again."
        )
    return list(found.values())


def cell_of(record: Mapping[str, Any]) -> MatrixCell | GraphCell:
    """The cell of a record."""
    config = record["config"]
    return MatrixCell.from_json(config) if config.get("table") in TABLES else GraphCell.from_json(config)


def _lack(record: Mapping[str, Any]) -> str:
    """What a record lacks of a result; nothing if it is one."""
    for name in ("config", "curves", "versions", "machine"):
        if not isinstance(record.get(name), dict):
            return name
    try:
        cell = cell_of(record)
    except (BellnetError, TypeError):
        return "config of a cell of a table"
    figures = {"seconds": record.get("seconds")}
    if isinstance(cell, MatrixCell):
        errors = record.get("errors")
        figures |= errors if isinstance(errors, dict) and errors else {"errors": None}
    else:
        figures["accuracy"] = record.get("accuracy")
    for name, curve in record["curves"].items():
        figures |= {f"{name} of epoch {epoch}": value for epoch, value in enumerate(curve, 1)}
    return next((name for name, value in figures.items() if type(value) not in (int, float)), "")


def table1(finished: Sequence[Record]) -> Table:
    """Table 1: the error of each method on each task, with the paper's figure beside it."""
    chosen = choose(finished, "table1")
    comparable = _is_comparable(chosen)
    rows = []
    for task in TASKS:
        for index, layers in enumerate(LAYERS[task]):
            row = [task, str(layers)]
            for method, paper in PAPER1.items():
                found = mean_error(chosen.get((task, layers, method), ()))
                row += [figure(found), figure(paper[task][index])]
                if method == "bellnet":
                    row.append(_verdict(found, paper[task][index], comparable))
            rows.append(tuple(row))
    head = ("task", "layers", "bellnet", "paper", "bellnet is", "Hartford", "paper", "trivial", "paper")
    return Table("Table 1: mean square error on the test set", head, tuple(rows), _notes(chosen, len(rows) * 3))


def table2(finished: Sequence[Record]) -> Table:
    """Table 2: networks that were trained on matrices of one size, tested on other sizes."""
    chosen = choose(finished, "table2")
    comparable = _is_comparable(chosen)
    rows = []
    for subject in SUBJECTS2:
        for layers in sorted({key[1] for key in chosen if key[0] == subject}) or [2]:
            row = [subject, str(layers)]
            for n in (30, 40, 50):
                paper = PAPER2.get(subject, {}).get(n)
                found = mean_error(chosen.get((subject, layers, "bellnet"), ()), n)
                row += [figure(found), figure(paper), _verdict(found, paper, comparable)]
            rows.append(tuple(row))
    head = ("task", "layers", *(word for n in (30, 40, 50) for word in (f"n={n}", "paper", "bellnet is")))
    title = "Table 2: mean square error on matrices of other sizes than trained on"
    return Table(title, head, tuple(rows), _notes(chosen, len(rows)))


def sizes_table(finished: Sequence[Record]) -> Table:
    """The error of the networks of Table 2 for every number of nodes of the test."""
    chosen = choose(finished, "table2")
    columns = sorted(chosen, key=lambda place: (SUBJECTS2.index(place[0]), place[1]))
    sizes = sorted({int(n) for records in chosen.values() for record in records for n in record["errors"]})
    rows = tuple((str(n), *(figure(mean_error(chosen[column], n)) for column in columns)) for n in sizes)
    head = ("n", *(f"{subject}, {layers} layers" for subject, layers, _ in columns))
    return Table("Error against the number of nodes", head, rows)


def choose(finished: Sequence[Record], table: str) -> dict[Place, list[Record]]:
    """For each subject, number of layers and method, for each seed the record with the smallest validation error.

    Only the set-up with the most training examples counts, so that a quick run does not mix with a whole one.
    """
    records = [record for record in finished if record["config"]["table"] == table]
    most = max((record["config"]["train"] for record in records), default=0)
    best: dict[Place, dict[int, Record]] = {}
    for record in records:
        cell = MatrixCell.from_json(record["config"])
        if cell.train == most:
            seeds = best.setdefault((cell.subject, cell.layers, cell.method), {})
            if cell.seed not in seeds or _validation(record) < _validation(seeds[cell.seed]):
                seeds[cell.seed] = record
    return {place: [seeds[seed] for seed in sorted(seeds)] for place, seeds in best.items()}


def _validation(record: Record) -> float:
    error = record["validation"]
    return float("inf") if error is None or error != error else float(error)  # NaN if the run has diverged


def _setups(chosen: Mapping[Place, Sequence[Record]]) -> list[tuple[int, ...]]:
    configs = [record["config"] for records in chosen.values() for record in records]
    return sorted({tuple(config[name] for name in ("n", "train", "test")) for config in configs})


def _is_comparable(chosen: Mapping[Place, Sequence[Record]]) -> bool:
    return all(setup[0] == PAPER_SETUP[0] for setup in _setups(chosen))


def verdict(found: float, paper: float) -> str:
    """Whether an error is smaller than the paper's, larger, or the same up to `TOLERANCE`."""
    if abs(found - paper) <= TOLERANCE * paper:
        return EQUAL
    return BETTER if found < paper else WORSE


def _verdict(found: float | None, paper: float | None, comparable: bool) -> str:
    return verdict(found, paper) if found is not None and paper is not None and comparable else MISSING


def mean_error(records: Sequence[Record], n: int | None = None) -> float | None:
    """The mean over seeds of the error with n nodes, or with as many as in training."""
    found = [record["errors"].get(str(record["config"]["n"] if n is None else n)) for record in records]
    errors = [error for error in found if error is not None]
    return fmean(errors) if errors else None


def figure(error: float | None) -> str:
    """An error as tables show it."""
    if error is None:
        return MISSING
    return f"{error:.1e}" if 0 < abs(error) < 1e-3 else f"{error:.4g}"


def _notes(chosen: Mapping[Place, Sequence[Record]], wanted: int) -> tuple[str, ...]:
    notes = ["k layers are k equivariant layers of 8 channels with ReLU; the output layer is not counted."]
    if len(chosen) < wanted:
        notes.append(f"{len(chosen)} of {wanted} cells have been run.")
    for n, train, test in _setups(chosen):
        notes.append(f"Trained with n={n} on {train} examples, tested on {test}.")
    if not _is_comparable(chosen):
        notes.append("The paper has n=40, 10000 and 1000: these figures cannot be compared with its own.")
    elif any(setup != PAPER_SETUP for setup in _setups(chosen)):
        notes.append("The paper trained on 10000 examples and tested on 1000; leave out --quick to do the same.")
    seeds = max(map(len, chosen.values()), default=0)
    return (*notes, *[f"Means over up to {seeds} seeds."] * (seeds > 1))
