"""One cell of Table 3: which data set and split, which network, how it is trained. A frozen value with a lasting key.

The network and the training are those of the paper's authors; `TRAINING` has what they chose for each data set.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bellnet.errors import OptionError
from experiments.cell import FromDataSet, check_cell

if TYPE_CHECKING:
    from experiments.learner import Learner

SETS = ("MUTAG", "PTC_MR", "PROTEINS", "NCI1", "NCI109", "COLLAB", "IMDB-BINARY", "IMDB-MULTI")
SPLITS = tuple(range(10))
LAYOUTS = ("dense", "sparse")
PROTOCOLS = ("fixed", "nested")
SEED = 100
AUTHORS = " (authors' set-up)"


@dataclass(frozen=True)
class GraphTraining:
    """How a data set is learned: the fields of a cell of the same names.

    The authors' rate falls after every 4 N steps, where N graphs are learned from: twenty passes if all batches had
    five graphs. Many have fewer, since all graphs of a batch are of one size, so that is 13 to 19 epochs. Here those
    are rounded to whole ones.
    """

    rate: float
    decay: float
    epochs: int
    decay_every: int


TRAINING = {
    "MUTAG": GraphTraining(0.00512, 0.7, 130, 16),
    "PTC_MR": GraphTraining(0.00128, 0.6, 9, 15),  # theirs would fall after 13 epochs, when all nine are over, too
    "PROTEINS": GraphTraining(0.00064, 0.7, 20, 14),
    "NCI1": GraphTraining(0.00256, 0.7, 99, 19),
    "NCI109": GraphTraining(0.00256, 0.7, 99, 19),
    "COLLAB": GraphTraining(0.00256, 0.7, 100, 17),
    "IMDB-BINARY": GraphTraining(0.00064, 0.4, 40, 17),
    "IMDB-MULTI": GraphTraining(0.00064, 0.7, 150, 18),
}


@dataclass(frozen=True, kw_only=True)
class GraphCell(FromDataSet):
    """What one split adds to a figure of Table 3.

    Attributes:
        name: The data set, as its files are called.
        split: Which of its published splits.
        epochs: Passes over the graphs that are learned from.
        rate: The learning rate that Adam begins with.
        decay: The factor of the learning rate after every `decay_every` epochs.
        layout: "dense" has a value for every pair of nodes, "sparse" for edges and nodes only.
        protocol: "fixed" learns from all training graphs and counts the last epoch; "nested" keeps some of them
            aside, and counts the epoch that classifies most of these.
        seed: Of the initial weights, the order of the graphs, and which graphs are kept aside.
        channels: Of the equivariant layers, each followed by ReLU.
        hidden: The widths of the fully connected layers, each followed by ReLU.
        batch: The most graphs in a step; all have the same number of nodes.
        decay_every: Epochs with the same learning rate.
        last_rate: The learning rate does not fall below this.
        held_out: With "nested", one of so many training graphs is kept aside, of every class alike.
        table: Always "table3".
        data: Where the data set is, as in `bellnet.data.tu.load`. No part of the key, nor of records.
        max_unpacked: How much a file in a zip may unpack to, as there; None for what is usual. No part of them either.
        max_ratio: The same, for each byte in the zip.
    """

    name: str
    split: int
    epochs: int
    rate: float
    decay: float
    layout: str = "dense"
    protocol: str = "fixed"
    seed: int = SEED
    channels: tuple[int, ...] = (16, 32, 256)
    hidden: tuple[int, ...] = (512, 256)
    batch: int = 5
    decay_every: int = 15
    last_rate: float = 1e-5
    held_out: int = 9
    table: str = "table3"
    data: Path | None = field(default=None, compare=False)
    max_unpacked: float | None = field(default=None, compare=False)
    max_ratio: float | None = field(default=None, compare=False)

    def __post_init__(self) -> None:
        for several in ("channels", "hidden"):
            object.__setattr__(self, several, tuple(getattr(self, several)))
        more = [
            f"{name} must be integers from 1 up, at least one, not {getattr(self, name)!r}"
            for name in ("channels", "hidden")
            if not getattr(self, name) or any(type(width) is not int or width < 1 for width in getattr(self, name))
        ]
        if not 0 < self.decay <= 1:
            more.append(f"decay must be a factor above 0, at most 1, not {self.decay!r}")
        least = {"split": 0, "epochs": 1, "batch": 1, "decay_every": 1, "held_out": 2}
        choices = {"table": ("table3",), "layout": LAYOUTS, "protocol": PROTOCOLS}
        check_cell(self, choices=choices, least=least, positive=["rate", "last_rate"], more=more)

    @property
    def key_parts(self) -> tuple[object, ...]:
        """The readable parts of the key.

        >>> cells_of_table3(names=["MUTAG"], splits=[3])[0].key.rpartition("-")[0]
        'table3-MUTAG-3-dense-fixed-100'
        """
        return self.table, self.name, self.split, self.layout, self.protocol, self.seed

    @property
    def title(self) -> str:
        """A name for people."""
        return f"{self.name}, split {self.split}, {self.layout}, {self.protocol}"

    @property
    def row(self) -> str:
        """What a table calls the row that it belongs to."""
        return f"IGN{AUTHORS}, {self.layout}"

    def rate_in(self, epoch: int) -> float:
        """The learning rate in an epoch, the first being 0: it falls in steps, but not below `last_rate`."""
        fallen = self.rate * self.decay ** (epoch // self.decay_every)
        return max(fallen, min(self.rate, self.last_rate))

    def learner(self) -> "Learner":
        """The network, its graphs and its optimiser."""
        from experiments.graph_module import GraphModule

        return GraphModule(self)

    def say(self, record: Mapping[str, Any]) -> str:
        """The accuracy: on the test graphs where there is one, otherwise on those kept aside."""
        found = record.get("accuracy", record.get("test", record.get("validation")))
        return "" if found is None else f"accuracy {100 * found:.1f} %"

    def usual(self) -> "GraphCell":
        """The authors' set-up for the first split, with the same data set, layout and protocol."""
        training = asdict(TRAINING[self.name]) if self.name in TRAINING else {}
        return GraphCell(
            name=self.name,
            split=0,
            layout=self.layout,
            protocol=self.protocol,
            **{"epochs": self.epochs, "rate": self.rate, "decay": self.decay, **training},
        )

    def settings(self) -> dict[str, Any]:
        """Everything that can be set, by name, apart from data set and split."""
        return {name: value for name, value in self.counted().items() if name not in ("name", "split", "table")}


def cells_of_table3(
    *,
    names: Sequence[str] = SETS,
    splits: Sequence[int] = SPLITS,
    layouts: Sequence[str] = LAYOUTS[:1],
    protocols: Sequence[str] = PROTOCOLS[:1],
    seed: int = SEED,
    data: Path | None = None,
) -> list[GraphCell]:
    """The cells of Table 3, or some of them, one data set after the other."""
    unknown = [name for name in names if name not in TRAINING]
    if unknown:
        raise OptionError(
            f"cells_of_table3: names must be some of {', '.join(map(repr, SETS))}, not {', '.join(map(repr, unknown))}."
        )
    return [
        GraphCell(
            name=name, split=split, layout=layout, protocol=protocol, seed=seed, data=data, **asdict(TRAINING[name])
        )
        for name in dict.fromkeys(names)
        for protocol in dict.fromkeys(protocols)
        for layout in dict.fromkeys(layouts)
        for split in dict.fromkeys(splits)
    ]


QUICK_EPOCHS = 10


def quick_graphs(cell: GraphCell) -> GraphCell:
    """The same cell with few epochs: seconds instead of minutes, and less accurate."""
    return replace(cell, epochs=min(cell.epochs, QUICK_EPOCHS))
