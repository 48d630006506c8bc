"""What cells of data sets have in common: on another machine their graphs lie elsewhere."""

from dataclasses import replace
from pathlib import Path
from typing import Any, Self

from bellnet import data as sets


class FromDataSet:
    """A frozen dataclass with the name of a data set, and where that is.

    Attributes:
        name: The data set, as its files are called.
        data: Where it is, as in `bellnet.data.tu.load`.
    """

    name: str
    data: Path | None

    def parcel(self) -> sets.tu.Parcel:
        """Its data set, for a machine that has no such folder."""
        return sets.tu.pack(self.name, self.data)

    def sent(self, folder: Path | None) -> Self:
        """The same cell on another machine, where its data set is in that folder."""
        cell: Any = self
        found: Self = replace(cell, data=folder)
        return found
