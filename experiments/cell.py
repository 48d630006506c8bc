"""What the machinery that runs, shows and records cells knows of them, whatever they are cells of."""

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import Field, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, Self

from bellnet import data as sets
from bellnet.errors import OptionError

if TYPE_CHECKING:
    from experiments.learner import Learner


SEEDS = 2**32
Record = Callable[[dict[str, Any]], None]
"""Takes what an epoch gave."""


class Runnable(Protocol):
    """A frozen value that says what to run. There are three kinds.

    `Cell` is of matrices, `GraphCell` of graphs and the paper's network, `MethodCell` of graphs and any other method.
    """

    @property
    def table(self) -> str:
        """The table it belongs to."""

    @property
    def key(self) -> str:
        """A name for files and records that never changes."""

    @property
    def title(self) -> str:
        """A name for people."""

    @property
    def seed(self) -> int:
        """Of everything random."""

    @property
    def epochs(self) -> int:
        """Passes over the examples."""

    @property
    def is_learned(self) -> bool:
        """Whether there is anything to train; what need not be trained is run first."""

    def to_json(self) -> dict[str, Any]:
        """The fields, as JSON has them."""

    def compute(self, record: Record) -> dict[str, Any] | None:
        """The result of a cell that needs no training by Lightning; None if it does.

        Such a cell that was stopped starts again.
        """

    def learner(self) -> "Learner":
        """The network, its data and its optimiser, new. This imports lightning."""

    def say(self, record: Mapping[str, Any]) -> str:
        """The record of an epoch, or the final one, in a word or two."""

    def parcel(self) -> "sets.tu.Parcel | None":
        """Its data set, for a machine that has no such folder; None if it makes its examples itself."""

    def sent(self, folder: Path | None) -> "Runnable":
        """The same cell on another machine, where its data set is in that folder; None before that is known."""


def check_cell(
    cell: Any,
    *,
    choices: Mapping[str, Sequence[str]],
    least: Mapping[str, int],
    positive: Sequence[str] = (),
    more: Sequence[str] = (),
) -> None:
    """Raise `OptionError` with everything that is wrong with the fields of a cell.

    Args:
        cell: The cell. Other seeds are made from its seed, which must leave room below the largest that torch takes.
        choices: The fields that are one of some words.
        least: The integer fields, with the least that each can be.
        positive: The fields that are positive numbers.
        more: What else is wrong.
    """
    values = {each.name: getattr(cell, each.name) for each in fields(cell)}
    mistakes = [
        f"{name} must be one of {', '.join(map(repr, known))}, not {values[name]!r}"
        for name, known in choices.items()
        if values[name] not in known
    ]
    mistakes += [
        f"{name} must be an integer from {start} up, not {values[name]!r}"
        for name, start in least.items()
        if type(values[name]) is not int or values[name] < start
    ]
    if type(values["seed"]) is not int or not 0 <= values["seed"] < SEEDS:
        mistakes.append(f"seed must be an integer from 0 to {SEEDS - 1}, not {values['seed']!r}")
    mistakes += [
        f"{name} must be a positive number, not {values[name]!r}"
        for name in positive
        if not 0 < values[name] < float("inf")
    ]
    mistakes += more
    if mistakes:
        raise OptionError("This cell cannot be run:\n" + "\n".join(f"  - {mistake}" for mistake in mistakes))


def digest(values: Mapping[str, Any], known: "tuple[Field[Any], ...]") -> str:
    """Ten letters and digits that differ whenever a field does.

    They are made of what differs from the defaults, so a field that is added later does not change them.
    """
    usual = {field.name: field.default for field in known}
    chosen = {name: value for name, value in values.items() if value != usual[name]}
    return hashlib.sha256(json.dumps(chosen, sort_keys=True).encode()).hexdigest()[:10]


class FromDataSet:
    """A frozen dataclass with the name of a data set, and where that is: on another machine it is elsewhere.

    Attributes:
        name: The data set, as its files are called.
        data: Where it is, as in `bellnet.data.tu.load`.
    """

    name: str
    data: Path | None
    is_learned = True

    def counted(self) -> dict[str, Any]:
        """The fields that count in comparing cells, by name."""
        cell: Any = self
        return {each.name: getattr(self, each.name) for each in fields(cell) if each.compare}

    @classmethod
    def from_json(cls, found: Mapping[str, Any]) -> Self:
        """The cell that `to_json` has written."""
        return cls(**found)

    def parcel(self) -> sets.tu.Parcel:
        """Its data set, for a machine that has no such folder."""
        return sets.tu.pack(self.name, self.data)

    def sent(self, folder: Path | None) -> Self:
        """The same cell on another machine, where its data set is in that folder."""
        cell: Any = self
        found: Self = replace(cell, data=folder)
        return found
