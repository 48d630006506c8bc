"""One cell of Table 3: a method, a data set and a split. A frozen value with a lasting key."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from bellnet.errors import OptionError
from experiments.cell import FromDataSet, Record, check_cell
from experiments.graph_data import load_graphs, parts_of
from experiments.methods import NAMES, method
from experiments.methods.base import AUTHORS, PROTOCOLS, Method, Task

if TYPE_CHECKING:
    from experiments.learner import Learner

SETS = ("MUTAG", "PTC_MR", "PROTEINS", "NCI1", "NCI109", "COLLAB", "IMDB-BINARY", "IMDB-MULTI")
SPLITS = tuple(range(10))
SEED = 100
QUICK_EPOCHS = 10
Pairs = tuple[tuple[str, Any], ...]


@dataclass(frozen=True, kw_only=True)
class GraphCell(FromDataSet):
    """The accuracy of a method on one split of a data set.

    Attributes:
        method: One of `methods.NAMES`.
        name: The data set, as its files are called.
        split: The number of a published split.
        options: Those of the method, by name; a mapping becomes pairs in order of the names.
        protocol: "fixed" trains on all training graphs and counts the last epoch; "nested" has a validation set, which
            selects the epoch, or whatever a method selects.
        seed: Of everything random, the validation set included.
        validation_part: One in so many training graphs of every class is in the validation set.
        table: Always "table3".
        data: The folder of the data set, as in `bellnet.data.tu.load`; like the two limits neither a part of the key
            nor of records.
        max_unpacked: The maximum size of a file in a zip, unpacked; None for the default.
        max_ratio: The maximum ratio of that size and of the size in the zip.
        epochs: The maximum number of epochs, from the options; one for methods that have none.
    """

    method: str
    name: str
    split: int
    options: Pairs
    protocol: str = "nested"
    seed: int = SEED
    validation_part: int = 9
    table: str = "table3"
    data: Path | None = field(default=None, compare=False)
    max_unpacked: float | None = field(default=None, compare=False)
    max_ratio: float | None = field(default=None, compare=False)
    epochs: int = field(default=1, init=False, compare=False)
    is_learned: bool = field(default=False, init=False, compare=False)

    def __post_init__(self) -> None:
        given: Any = self.options
        pairs = given.items() if isinstance(given, Mapping) else given
        object.__setattr__(self, "options", tuple(sorted((name, _frozen(value)) for name, value in pairs)))
        name: object = self.name
        mistakes = [] if isinstance(name, str) else [f"name must be the name of a data set, not {name!r}"]
        protocols: Sequence[str] = PROTOCOLS
        if self.method in NAMES:
            protocols = self.how.protocols
            mistakes += self.how.mistakes(dict(self.options))
        choices = {"table": ("table3",), "method": NAMES, "protocol": protocols}
        check_cell(self, choices=choices, minimum={"split": 0, "validation_part": 2}, more=mistakes)
        object.__setattr__(self, "epochs", self.how.max_epochs(dict(self.options)))
        object.__setattr__(self, "is_learned", self.how.is_learned)

    @property
    def key_parts(self) -> tuple[object, ...]:
        """The readable parts of the key.

        >>> cells_of_table3(["gin"], names=["MUTAG"], splits=[3])[0].key.rpartition("-")[0]
        'table3-MUTAG-3-gin-nested-100'
        """
        return self.table, self.name, self.split, self.method, self.protocol, self.seed

    @property
    def title(self) -> str:
        return f"{self.name}, split {self.split}, {self.row.replace(AUTHORS, '')}, {self.protocol}"

    @property
    def row(self) -> str:
        """The title of its row of the table."""
        return self.how.row(dict(self.options))

    @property
    def how(self) -> Method:
        """The method itself."""
        return method(self.method)

    def task(self) -> Task:
        """The data of the cell."""
        graphs = load_graphs(self.name, self.data, max_unpacked=self.max_unpacked, max_ratio=self.max_ratio)
        return Task(graphs, parts_of(self, graphs), self.seed)

    def learner(self) -> "Learner":
        from experiments.graph_learner import GraphLearner

        self.how.check_extra(f"table3 --method {self.method}")
        return GraphLearner(self.how, self.task(), dict(self.options))

    def compute(self, record: Record) -> dict[str, Any]:
        self.how.check_extra(f"table3 --method {self.method}")
        task = self.task()
        found = self.how.run(task, dict(self.options), record)
        return {"best_epoch": None, **found, "graphs": task.parts.counts()}

    def describe(self, record: Mapping[str, Any]) -> str:
        found = record.get("accuracy", record.get("validation", record.get("test")))
        return "" if found is None else f"accuracy {100 * found:.1f} %"

    def usual(self) -> "GraphCell":
        """The first split with the usual options and seed; with its own options where these are unknown."""
        options = dict(self.options)
        if self.how.is_available and self.name in SETS:
            options = self.how.usual(self.name, options)
        return GraphCell(method=self.method, name=self.name, split=0, options=_pairs(options), protocol=self.protocol)

    def settings(self) -> dict[str, Any]:
        """Everything that can be set, by name, apart from data set and split."""
        return {**dict(self.options), "seed": self.seed, "validation_part": self.validation_part}

    def changed(self, *, max_epochs: int | None = None, learning_rate: float | None = None) -> "GraphCell":
        """The same with another number of epochs or another learning rate, where the method has such."""
        changes = {self.how.epochs_option: max_epochs, "learning_rate": learning_rate}
        options = dict(self.options)
        options |= {name: value for name, value in changes.items() if name in options and value is not None}
        return replace(self, options=_pairs(options))

    def quick(self) -> "GraphCell":
        """The same with few epochs."""
        return self.changed(max_epochs=min(self.epochs, QUICK_EPOCHS))

    def to_json(self) -> dict[str, Any]:
        return {**self.compared(), "options": {name: _thawed(value) for name, value in self.options}}

    @classmethod
    def from_json(cls, found: Mapping[str, Any]) -> Self:
        if not isinstance(found.get("options"), Mapping):
            raise OptionError("This cell cannot be run: its options are no mapping.")
        return super().from_json(found)


def cells_of_table3(
    methods: Sequence[str] = NAMES[:1],
    *,
    names: Sequence[str] = SETS,
    splits: Sequence[int] = SPLITS,
    layouts: Sequence[str] = ("dense",),
    protocols: Sequence[str] = (),
    seed: int = SEED,
    data: Path | None = None,
) -> list[GraphCell]:
    """Cells of Table 3 with the usual options, one data set after the other, one method after the other.

    Args:
        methods: Some of `methods.NAMES`.
        names: Some of `SETS`.
        splits: Some of `SPLITS`.
        layouts: Layouts of methods that have one.
        protocols: Protocols of methods that have several; the first one of each method if empty.
        seed: The seed.
        data: The folder of the data sets.
    """
    for unknown in (name for name in names if name not in SETS):
        raise OptionError(f"cells_of_table3: names must be some of {', '.join(map(repr, SETS))}, not {unknown!r}.")
    for each in methods:
        method(each).check_extra(f"table3 --method {each}")
    return [
        GraphCell(method=each, name=name, split=split, options=_pairs(options), protocol=protocol, seed=seed, data=data)
        for name in dict.fromkeys(names)
        for each in dict.fromkeys(methods)
        for protocol in dict.fromkeys(protocols or method(each).protocols[:1])
        if protocol in method(each).protocols
        for options in _with_layouts(method(each).usual(name), layouts)
        for split in dict.fromkeys(splits)
    ]


def _with_layouts(options: dict[str, Any], layouts: Sequence[str]) -> list[dict[str, Any]]:
    has_layouts = options.get("layout") in ("dense", "sparse")
    return [{**options, "layout": layout} for layout in dict.fromkeys(layouts)] if has_layouts else [options]


def _pairs(options: Mapping[str, Any]) -> Pairs:
    return tuple(options.items())


def _frozen(value: Any) -> Any:
    return tuple(map(_frozen, value)) if isinstance(value, Iterable) and not isinstance(value, str) else value


def _thawed(value: Any) -> Any:
    return [*map(_thawed, value)] if isinstance(value, tuple) else value
