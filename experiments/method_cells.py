"""One cell of Table 3 for any method but the paper's network: a frozen value with a lasting key.

What is chosen is chosen within the training graphs: the protocol is "nested". The graphs that are kept aside are those
of a nested `GraphCell` of the same seed.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib import metadata
from pathlib import Path
from typing import Any, Self

from bellnet.errors import OptionError
from experiments.cell import FromDataSet, Record, check_cell
from experiments.graph_cells import QUICK_EPOCHS, SEED, SETS, SPLITS
from experiments.graph_data import load_graphs, parts_of
from experiments.methods import NAMES, method
from experiments.methods.base import Method, Task

Pairs = tuple[tuple[str, Any], ...]


@dataclass(frozen=True, kw_only=True)
class MethodCell(FromDataSet):
    """What one split adds to a figure of Table 3, by some method.

    Attributes:
        method: One of `methods.NAMES`.
        name: The data set, as its files are called.
        split: Which of its published splits.
        options: Those of the method, by name; a mapping becomes pairs in order of the names.
        seed: Of everything random, and of which graphs are kept aside.
        held_out: One of so many training graphs is kept aside, of every class alike.
        protocol: Always "nested".
        table: Always "table3".
        data: Where the data set is, as in `bellnet.data.tu.load`. No part of the key, nor of records.
        max_unpacked: How much a file in a zip may unpack to, as there; None for what is usual. No part of them either.
        max_ratio: The same, for each byte in the zip.
        epochs: The most passes over the graphs, made of the options; one for methods that have none.
    """

    method: str
    name: str
    split: int
    options: Pairs
    seed: int = SEED
    held_out: int = 9
    protocol: str = "nested"
    table: str = "table3"
    data: Path | None = field(default=None, compare=False)
    max_unpacked: float | None = field(default=None, compare=False)
    max_ratio: float | None = field(default=None, compare=False)
    epochs: int = field(default=1, init=False, compare=False)
    is_learned = False

    def __post_init__(self) -> None:
        given: Any = self.options
        pairs = given.items() if isinstance(given, Mapping) else given
        object.__setattr__(self, "options", tuple(sorted((name, _frozen(value)) for name, value in pairs)))
        name: object = self.name
        more = [] if isinstance(name, str) else [f"name must be the name of a data set, not {name!r}"]
        how = method(self.method) if self.method in NAMES else None
        if how is not None and how.epochs_option is not None:
            value = dict(self.options).get(how.epochs_option)
            if not how.takes_epochs(value):
                more.append(f"the option {how.epochs_option} must be an integer from 1 up, not {value!r}")
        choices = {"table": ("table3",), "method": NAMES, "protocol": ("nested",)}
        check_cell(self, choices=choices, least={"split": 0, "held_out": 2}, more=more)
        object.__setattr__(self, "epochs", self.how.epochs(dict(self.options)))

    @property
    def key_parts(self) -> tuple[object, ...]:
        """The readable parts of the key.

        >>> cells_of_methods(["gin"], names=["MUTAG"], splits=[3])[0].key.rpartition("-")[0]
        'table3-MUTAG-3-gin-nested-100'
        """
        return self.table, self.name, self.split, self.method, self.protocol, self.seed

    @property
    def title(self) -> str:
        """A name for people."""
        return f"{self.name}, split {self.split}, {self.method}"

    @property
    def row(self) -> str:
        """What a table calls the row that it belongs to."""
        return self.how.title

    @property
    def how(self) -> Method:
        """The method itself."""
        return method(self.method)

    def compute(self, record: Record) -> dict[str, Any]:
        """What the method gives. It keeps nothing between epochs: a cell that was stopped starts again."""
        how = self.how
        how.check_extra(f"table3 --method {self.method}")
        graphs = load_graphs(self.name, self.data, max_unpacked=self.max_unpacked, max_ratio=self.max_ratio)
        parts = parts_of(self, graphs)
        found = how.run(Task(graphs, parts, self.seed), dict(self.options), record)
        return {
            "best_epoch": None,
            **found,
            "graphs": {name: len(getattr(parts, name)) for name in ("train", "validation", "test")},
            "packages": {package: _version(package) for package in how.packages},
        }

    def say(self, record: Mapping[str, Any]) -> str:
        """The accuracy: in the end on the test graphs, before that on those kept aside."""
        found = record.get("accuracy", record.get("validation"))
        return "" if found is None else f"accuracy {100 * found:.1f} %"

    def usual(self) -> "MethodCell":
        """The first split with the usual options and seed; the cell itself where these cannot be known."""
        options = _pairs(self.how.usual()) if self.how.is_available else self.options
        return MethodCell(method=self.method, name=self.name, split=0, options=options)

    def settings(self) -> dict[str, Any]:
        """Everything that can be set, by name, apart from data set and split."""
        return {**dict(self.options), "seed": self.seed, "held_out": self.held_out}

    def changed(self, *, epochs: int | None = None, rate: float | None = None) -> "MethodCell":
        """The same with other epochs or another rate, where the method has such."""
        changes = {self.how.epochs_option: epochs, self.how.rate_option: rate}
        named = {name: value for name, value in changes.items() if name is not None and value is not None}
        return replace(self, options=_pairs({**dict(self.options), **named}))

    def to_json(self) -> dict[str, Any]:
        """The fields that count, as JSON has them."""
        return {**self.counted(), "options": {name: _thawed(value) for name, value in self.options}}

    @classmethod
    def from_json(cls, found: Mapping[str, Any]) -> Self:
        """The cell that `to_json` has written."""
        if not isinstance(found.get("options"), Mapping):
            raise OptionError("This cell cannot be run: its options are no mapping.")
        return super().from_json(found)


def cells_of_methods(
    methods: Sequence[str],
    *,
    names: Sequence[str] = SETS,
    splits: Sequence[int] = SPLITS,
    seed: int = SEED,
    data: Path | None = None,
) -> list[MethodCell]:
    """Cells of Table 3 with the usual options, one data set after the other, one method after the other."""
    several = {each: method(each) for each in methods}
    for each, how in several.items():
        how.check_extra(f"table3 --method {each}")
    return [
        MethodCell(method=each, name=name, split=split, options=_pairs(how.usual()), seed=seed, data=data)
        for name in dict.fromkeys(names)
        for each, how in several.items()
        for split in dict.fromkeys(splits)
    ]


def quick_method(cell: MethodCell) -> MethodCell:
    """The same cell with few epochs, where there are any: seconds instead of minutes, and less accurate."""
    return cell.changed(epochs=min(cell.epochs, QUICK_EPOCHS))


def _version(package: str) -> str:
    return metadata.version({"sklearn": "scikit-learn"}.get(package, package))


def _pairs(options: Mapping[str, Any]) -> Pairs:
    return tuple(options.items())


def _frozen(value: Any) -> Any:
    return tuple(map(_frozen, value)) if isinstance(value, Iterable) and not isinstance(value, str) else value


def _thawed(value: Any) -> Any:
    return [*map(_thawed, value)] if isinstance(value, tuple) else value
