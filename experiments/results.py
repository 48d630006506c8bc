"""The results of a directory: final records and epochs of cells of tables. A record that is none is named."""

from collections.abc import Mapping
from typing import Any

from bellnet.errors import BellnetError, DataError
from experiments.config import TABLES, Cell
from experiments.graph_cells import GraphCell
from experiments.method_cells import MethodCell
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
        key, shown = record["key"], shown_of(cell_of(record["config"]))
        found[key] = recorded.get(key, [])
        lacking = [epoch["epoch"] for epoch in found[key] if not is_number(epoch.get(shown))]
        wrong += "".join(f'  - "{key}", epoch {number}, has no {shown}\n' for number in lacking)
    if wrong:
        raise DataError(
            f'{records.path}: lines of the kind "epoch" are not whole:\n{wrong}'
            "Delete these lines. Their cells keep their results; curves and the best averaged epoch do without them."
        )
    return found


def cell_of(config: Mapping[str, Any]) -> Cell | GraphCell | MethodCell:
    """The cell that a record is of."""
    if config.get("table") in TABLES:
        return Cell.from_json(config)
    return MethodCell.from_json(config) if "method" in config else GraphCell.from_json(config)


def shown_of(cell: Cell | GraphCell | MethodCell) -> str:
    """What the curves of a cell show: the accuracy on test graphs wherever that is recorded."""
    if isinstance(cell, Cell):
        return "validation"
    return "validation" if isinstance(cell, GraphCell) and cell.protocol == "nested" else "test"


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
    if isinstance(cell, Cell):
        errors = record.get("errors")
        figures |= errors if isinstance(errors, dict) and errors else {"errors": None}
    else:
        figures["accuracy"] = record.get("accuracy")
    return next((name for name, value in figures.items() if not is_number(value)), "")
