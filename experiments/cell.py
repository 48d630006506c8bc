"""A cell: the settings of one run, with a key that names it in records and files."""

import hashlib
import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, cast

from bellnet import data as sets
from bellnet.errors import OptionError

if TYPE_CHECKING:
    from experiments.learner import Learner


MAX_SEED = 2**32 - 1
Record = Callable[[dict[str, Any]], None]
"""Takes the figures of an epoch."""


class Cell(ABC):
    """The settings of one run; subclasses are frozen dataclasses.

    Attributes:
        table: The table it belongs to.
        seed: Of everything random.
        epochs: The maximum number of passes over the examples.
        is_learned: Whether Lightning trains it, by its `learner`; otherwise `compute` gives its result.
    """

    table: str
    seed: int
    epochs: int
    is_learned: bool

    @property
    @abstractmethod
    def title(self) -> str:
        """The name that is displayed."""

    @property
    @abstractmethod
    def key_parts(self) -> tuple[object, ...]:
        """The readable parts of the key."""

    @abstractmethod
    def describe(self, record: Mapping[str, Any]) -> str:
        """The main figure of an epoch, or of the result, as it is displayed."""

    @property
    def key(self) -> str:
        """A name for files and records: readable, and different for cells that differ in a field that is compared.

        It is made of what differs from the defaults, so that a field that is added later does not change it.
        """
        defaults = {each.name: each.default for each in fields(cast(Any, self))}
        changed = {name: value for name, value in self.compared().items() if value != defaults[name]}
        digest = hashlib.sha256(json.dumps(changed, sort_keys=True).encode()).hexdigest()[:10]
        return "-".join(map(str, (*self.key_parts, digest)))

    def compute(self, record: Record) -> dict[str, Any]:
        """The result, if Lightning does not train the cell. Such a cell that was stopped starts again."""
        raise NotImplementedError(f"{self.title} is trained by Lightning")

    def learner(self) -> "Learner":
        """The network, its data and its optimiser, new. This imports lightning."""
        raise NotImplementedError(f"{self.title} is not trained by Lightning")

    def compared(self) -> dict[str, Any]:
        """The fields that are compared, by name."""
        return {each.name: getattr(self, each.name) for each in fields(cast(Any, self)) if each.compare}

    def to_json(self) -> dict[str, Any]:
        """The same in the types of JSON."""
        return {name: list(value) if isinstance(value, tuple) else value for name, value in self.compared().items()}

    @classmethod
    def from_json(cls, found: Mapping[str, Any]) -> Self:
        """The cell that `to_json` has written."""
        return cls(**found)

    def parcel(self) -> "sets.tu.Parcel | None":
        """Its data set, for a machine that has no such folder; None if it generates its examples."""
        return None

    def sent(self, folder: Path | None) -> Self:
        """The same cell on another machine, where its data set is in that folder; None before that is known."""
        return self


class FromDataSet(Cell):
    """A cell of a data set, whose folder is neither a part of the key nor of records.

    Attributes:
        name: The data set, as its files are called.
        data: Its folder, as in `bellnet.data.tu.load`.
    """

    name: str
    data: Path | None

    def parcel(self) -> sets.tu.Parcel:
        return sets.tu.pack(self.name, self.data)

    def sent(self, folder: Path | None) -> Self:
        found: Self = replace(cast(Any, self), data=folder)
        return found


def check_cell(
    cell: Any,
    *,
    choices: Mapping[str, Sequence[str]],
    minimum: Mapping[str, int],
    positive: Sequence[str] = (),
    more: Sequence[str] = (),
) -> None:
    """Raise `OptionError` with everything that is wrong with the fields of a cell.

    Args:
        cell: The cell. Other seeds are computed from its seed, which is therefore limited.
        choices: The fields that are one of some words.
        minimum: The minimum of the integer fields.
        positive: The fields that are positive numbers.
        more: Other mistakes.
    """
    mistakes = [
        f"{name} must be one of {', '.join(map(repr, known))}, not {getattr(cell, name)!r}"
        for name, known in choices.items()
        if getattr(cell, name) not in known
    ]
    mistakes += [
        f"{name} must be an integer from {least} up, not {getattr(cell, name)!r}"
        for name, least in minimum.items()
        if type(getattr(cell, name)) is not int or getattr(cell, name) < least
    ]
    if type(cell.seed) is not int or not 0 <= cell.seed <= MAX_SEED:
        mistakes.append(f"seed must be an integer from 0 to {MAX_SEED}, not {cell.seed!r}")
    mistakes += [
        f"{name} must be a positive number, not {getattr(cell, name)!r}"
        for name in positive
        if not 0 < getattr(cell, name) < float("inf")
    ]
    mistakes += more
    if mistakes:
        raise OptionError("This cell cannot be run:\n" + "\n".join(f"  - {mistake}" for mistake in mistakes))
