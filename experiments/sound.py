"""Records that hold what tables and pictures need; any others are named, so that nothing is drawn from half of them."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from bellnet.errors import BellnetError, DataError
from experiments.config import TABLES, Cell
from experiments.figures import is_amount, is_error, is_number, is_share
from experiments.graph_cells import GraphCell
from experiments.method_cells import MethodCell
from experiments.records import Records

Epochs = dict[str, list[dict[str, Any]]]
DIGITS = 10
"""Numbers of nodes and epochs have no more."""


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
        key = record["key"]
        found[key] = recorded.get(key, [])
        for epoch in found[key]:
            if mistake := _mistake_in_epoch(epoch, record["config"]):
                number = str(epoch["epoch"])
                wrong.append(
                    f'"{key}", epoch {number if len(number) <= DIGITS else number[:DIGITS] + "..."}, {mistake}'
                )
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
    except (BellnetError, RecursionError, TypeError):
        return "has a config that is no cell of a table"
    if isinstance(cell, Cell):
        figures, is_possible = _errors(record), is_error
    else:
        figures, is_possible = {"accuracy": record.get("accuracy")}, is_share
    mistakes = [_mistake_in_figure(name, value, is_possible) for name, value in figures.items()]
    mistakes.append(_mistake_in_figure("seconds", record.get("seconds"), is_amount))
    if isinstance(cell, Cell) and isinstance(record.get("said"), list) and not _is_output(record["said"], cell.n):
        mistakes.append(f"has a said that is no output for {cell.n} nodes")
    return next(filter(None, mistakes), "")


def _mistake_in_epoch(epoch: Mapping[str, Any], config: Mapping[str, Any]) -> str:
    """What is wrong with an epoch of a cell, in words; nothing if it is sound."""
    cell = _cell(config)
    if epoch["epoch"] >= cell.epochs:
        return f"is none of the {cell.epochs} that the cell has"
    if isinstance(cell, Cell):
        return _mistake_in_figure("validation", epoch.get("validation"), is_error)
    shown = shown_of(cell)
    return _mistake_in_figure(shown, epoch.get(shown), is_share)


def shown_of(cell: GraphCell | MethodCell) -> str:
    """What the curves of a cell of graphs show: the accuracy on test graphs wherever that is recorded."""
    return "validation" if isinstance(cell, GraphCell) and cell.protocol == "nested" else "test"


def cell_of(config: Mapping[str, Any]) -> Cell | GraphCell | MethodCell:
    """The cell that a record is of."""
    if config.get("table") in TABLES:
        return Cell.from_json(config)
    return MethodCell.from_json(config) if "method" in config else GraphCell.from_json(config)


def _mistake_in_figure(name: str, value: Any, is_possible: Callable[[float], bool]) -> str:
    if not is_number(value):
        return f"has no {name}"
    return "" if is_possible(value) else f"has an impossible number for {name}"


def _errors(record: Mapping[str, Any]) -> dict[str, Any]:
    """The errors of a cell of Tables 1 and 2, by words; its validation, if it has any, is one of them."""
    errors, validation = record.get("errors"), record.get("validation")
    if not isinstance(errors, dict) or not errors or not all(map(_is_size, errors)):
        return {"errors": None}
    figures = {f"error for {size} nodes": error for size, error in errors.items()}
    return figures if validation is None else {**figures, "validation": validation}


def _is_size(size: str) -> bool:
    return size.isdecimal() and len(size) <= DIGITS


def _is_output(said: list[Any], n: int) -> bool:
    """Whether these are numbers for n nodes, or for all pairs of them, that can be drawn."""
    rows = said if all(isinstance(row, list) and len(row) == n for row in said) else [said]
    return len(said) == n and all(is_number(value) and is_error(abs(value)) for row in rows for value in row)


def _cell(config: Mapping[str, Any]) -> Cell | GraphCell | MethodCell:
    found = cell_of(config)
    if any(is_number(value) and not is_amount(abs(value)) for value in _values(config)):
        raise DataError("no cell has such a number")
    return found


def _values(config: Any) -> Iterator[Any]:
    """All values of a config, also those of its options."""
    if isinstance(config, dict | list):
        for value in config.values() if isinstance(config, dict) else config:
            yield from _values(value)
    else:
        yield config
