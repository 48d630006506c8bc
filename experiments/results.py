"""The results of a directory: final records and epochs of cells of tables. A record that is none is named."""

from collections.abc import Mapping, Sequence
from typing import Any

from bellnet.errors import BellnetError, DataError
from experiments.graph_cell import GraphCell
from experiments.matrix_cell import TABLES, MatrixCell
from experiments.records import Records, is_number


def results_of(records: Records) -> list[dict[str, Any]]:
    """The final records of a directory: results of cells of a table, with all their figures."""
    found = records.finished()
    wrong = "".join(f'  - "{key}" has no {lack}\n' for key, record in found.items() if (lack := _lack(record)))
    if wrong:
        raise DataError(
            f'{records.path}: lines of the kind "cell" are not results of a table:\n{wrong}'
            "Delete the lines with these keys and that kind. A command that wants such a cell runs what it lacks."
        )
    return list(found.values())


def epochs_of(records: Records) -> dict[str, list[dict[str, Any]]]:
    """The epochs of the finished cells of a directory, with the figure that their curves show."""
    recorded, wrong = records.epochs(), ""
    found: dict[str, list[dict[str, Any]]] = {}
    for record in results_of(records):
        key = record["key"]
        found[key] = recorded.get(key, [])
        shown = curve_of(found[key])
        lacking = [epoch["epoch"] for epoch in found[key] if not is_number(epoch.get(shown))]
        wrong += "".join(f'  - "{key}", epoch {number}, has no {shown}\n' for number in lacking)
    if wrong:
        raise DataError(
            f'{records.path}: lines of the kind "epoch" are not whole:\n{wrong}'
            "Delete these lines. Their cells keep their results; curves and the best averaged epoch do without them."
        )
    return found


def cell_of(config: Mapping[str, Any]) -> MatrixCell | GraphCell:
    """The cell of a record."""
    return MatrixCell.from_json(config) if config.get("table") in TABLES else GraphCell.from_json(config)


def curve_of(epochs: Sequence[Mapping[str, Any]]) -> str:
    """The figure of epochs that curves show: the accuracy on test graphs if that is recorded."""
    return "test" if any("test" in epoch for epoch in epochs) else "validation"


def _lack(record: Mapping[str, Any]) -> str:
    """What a final record lacks of a result; nothing if it is one."""
    for name in ("config", "versions", "machine"):
        if not isinstance(record.get(name), dict):
            return name
    try:
        cell = cell_of(record["config"])
    except (BellnetError, TypeError):
        return "config of a cell of a table"
    figures = {"seconds": record.get("seconds")}
    if isinstance(cell, MatrixCell):
        errors = record.get("errors")
        figures |= errors if isinstance(errors, dict) and errors else {"errors": None}
    else:
        figures["accuracy"] = record.get("accuracy")
    return next((name for name, value in figures.items() if not is_number(value)), "")
