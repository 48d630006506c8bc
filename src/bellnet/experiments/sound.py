"""Records that hold what tables and pictures need; any others are named, so that nothing is drawn from half of them."""

from collections.abc import Mapping
from typing import Any

from bellnet.errors import BellnetError, DataError
from bellnet.experiments.cell import Runnable
from bellnet.experiments.config import TABLES, Cell
from bellnet.experiments.graph_cells import GraphCell
from bellnet.experiments.records import Records

Epochs = dict[str, list[dict[str, Any]]]


def sound_results(records: Records) -> list[dict[str, Any]]:
    """The final records of a directory: results of cells of a table, with all their figures."""
    found = records.finished()
    wrong = [f'"{key}" {mistake}' for key, record in found.items() if (mistake := _mistake(record))]
    if wrong:
        raise DataError(
            f'{records.path}: lines of the kind "cell" are not results of a table:\n'
            + "".join(f"  - {words}\n" for words in wrong)
            + "Delete the lines with these keys and that kind. A command that wants such a cell runs what it lacks."
        )
    return list(found.values())


def sound_epochs(records: Records) -> Epochs:
    """The epochs of the finished cells of a directory, with the figure that their curves show."""
    recorded = records.epochs()
    found: Epochs = {}
    wrong: list[str] = []
    for record in sound_results(records):
        key, shown = record["key"], _shown(record["config"])
        found[key] = recorded.get(key, [])
        numbers = [epoch["epoch"] for epoch in found[key] if not _is_number(epoch.get(shown))]
        wrong += [f'"{key}", epoch {number}, has no {shown}' for number in numbers]
    if wrong:
        raise DataError(
            f'{records.path}: lines of the kind "epoch" are not whole:\n'
            + "".join(f"  - {words}\n" for words in wrong)
            + "Delete these lines. Their cells keep their results; curves and the best averaged epoch do without them."
        )
    return found


def _mistake(record: Mapping[str, Any]) -> str:
    """What a final record lacks, in words; nothing if it is sound."""
    for name in ("config", "versions", "machine"):
        if not isinstance(record.get(name), dict):
            return f"has no {name}"
    try:
        cell = _cell(record["config"])
    except (BellnetError, TypeError):
        return "has a config that is no cell of a table"
    figures = _figures(record) if isinstance(cell, Cell) else {"accuracy": record.get("accuracy")}
    lacking = [name for name, value in {**figures, "seconds": record.get("seconds")}.items() if not _is_number(value)]
    return f"has no {lacking[0]}" if lacking else ""


def _figures(record: Mapping[str, Any]) -> dict[str, Any]:
    """The errors of a cell of Tables 1 and 2, by words; its validation, if it has any, is one of them."""
    errors, validation = record.get("errors"), record.get("validation")
    if not isinstance(errors, dict) or not errors or not all(size.isdecimal() for size in errors):
        return {"errors": None}
    figures = {f"error for {size} nodes": error for size, error in errors.items()}
    return figures if validation is None else {**figures, "validation": validation}


def _cell(config: Mapping[str, Any]) -> Runnable:
    return Cell.from_json(config) if config.get("table") in TABLES else GraphCell.from_json(config)


def _shown(config: Mapping[str, Any]) -> str:
    """The figure of an epoch that a curve shows."""
    return "test" if config["table"] not in TABLES and GraphCell.from_json(config).protocol == "fixed" else "validation"


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
