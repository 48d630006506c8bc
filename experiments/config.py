"""One cell of a table: which task, which network, how it is trained. A frozen value with a key that never changes.

Layers are counted as in the paper: k layers are k equivariant layers of 8 channels, each followed by ReLU, and then the
output layer, which is not counted: one more equivariant layer to the target, or, for the trace, one value for each
orbit and a single fully connected layer.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

from bellnet.errors import OptionError
from experiments.cell import Record, Runnable, check_cell

if TYPE_CHECKING:
    from experiments.learner import Learner

TASKS = ("symmetric", "diagonal", "singular", "trace")
METHODS = ("ours", "hartford", "trivial")
LAYERS = {"symmetric": (1, 2, 3), "diagonal": (1, 2, 3), "singular": (1, 2, 3, 4), "trace": (1, 2, 3)}
TABLES = ("table1", "table2")
SIZES = {"table1": (20, 30, 40, 50, 60), "table2": tuple(range(10, 101, 10))}
"""The numbers of nodes that networks are tested with; the paper has 40 in Table 1 and 30, 40 and 50 in Table 2."""
TABLE2_TASKS = ("symmetric", "singular", "diagonal", "trace")
TABLE2_LAYERS = 2
READOUTS = ("mean", "max")


@dataclass(frozen=True)
class Training:
    """How a task is learned: the fields of a cell of the same names."""

    rate: float
    epochs: int
    first_bias: float
    decay: float


# Found by validation, with few trials. Small batches help most. Inputs are centred, so a large bias makes ReLU begin as
# the identity: a function that is linear need not first unlearn its kink. Decay makes maps that cancel each other with
# 40 nodes, and with 40 nodes only, go to zero.
TRAINING = {
    "symmetric": Training(0.01, 20, 10.0, 1.0),
    "diagonal": Training(0.01, 20, 10.0, 0.3),
    "singular": Training(0.01, 40, 0.0, 0.0),
    "trace": Training(0.01, 20, 10.0, 0.1),
}
TRAINING_MAX = Training(0.03, 20, 0.0, 0.0)
"""The trace read out by a maximum."""
TRAINING_OF_LAYERS = {
    ("symmetric", 3): Training(0.003, 20, 10.0, 0.0),
    ("singular", 1): Training(0.01, 120, 0.0, 0.0),
    ("singular", 4): Training(0.01, 120, 0.0, 0.0),
}
"""Where one number of layers needs something else: a smaller rate, or more time."""


@dataclass(frozen=True, kw_only=True)
class Cell(Runnable):
    """What one figure of a table comes from.

    Attributes:
        table: The table it belongs to.
        task: One of the paper's four.
        layers: The hidden equivariant layers; the output layer is not counted.
        method: All equivariant maps ("ours"), those of Hartford et al., or the mean of the training targets.
        seed: Of the examples, the initial weights and the order of the examples.
        n: The number of rows and columns of the matrices that are learned from.
        train: The examples on the training side, those for validation included.
        validation: How many of these are kept aside, to choose the epoch and the learning rate.
        test: The examples that the reported error is measured on, once, at the very end.
        sizes: The numbers of nodes that it is tested at.
        channels: Of each hidden layer.
        epochs: Passes over the examples.
        batch: Examples in a step.
        first_bias: Where the biases of the hidden layers begin; the other biases begin at zero.
        readout: How the network of the trace sums up each orbit: "max", as in the paper, or "mean".
        per_node: Whether the network says its answer for one node, to be multiplied by their number. Its sums are
            means, so what it says does not grow with the matrix; a trace does.
        rate: The learning rate that Adam begins with.
        last_rate: The learning rate at the end of its cosine, as a fraction of the first.
        decay: How strongly Adam pulls weights to zero at first; this falls with the square of the rate.
    """

    table: str
    task: str
    layers: int
    method: str
    seed: int = 0
    n: int = 40
    train: int = 10_000
    validation: int = 1_000
    test: int = 1_000
    sizes: tuple[int, ...] = (40,)
    channels: int = 8
    epochs: int = 20
    batch: int = 10
    first_bias: float = 0.0
    readout: str = "max"
    per_node: bool = False
    rate: float = 0.01
    last_rate: float = 1e-4
    decay: float = 0.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "sizes", tuple(self.sizes))
        object.__setattr__(self, "is_learned", self.method != "trivial")
        more = []
        if not 0 <= self.decay < float("inf"):
            more.append(f"decay must be a number from 0 up, not {self.decay!r}")
        counts = ("layers", "n", "train", "validation", "test", "channels", "epochs", "batch")
        choices = {"table": TABLES, "task": TASKS, "method": METHODS, "readout": READOUTS}
        check_cell(self, choices=choices, least=dict.fromkeys(counts, 1), positive=["rate"], more=more)
        if self.validation >= self.train:
            sides = f"validation={self.validation} leaves nothing of train={self.train}"
            raise OptionError(f"This cell cannot be run: {sides} to learn from.")

    @property
    def key_parts(self) -> tuple[object, ...]:
        """The readable parts of the key.

        >>> Cell(table="table1", task="trace", layers=2, method="ours").key.rpartition("-")[0]
        'table1-trace-2-ours-0'
        """
        return self.table, self.task, self.layers, self.method, self.seed

    @property
    def subject(self) -> str:
        """What is learned, and how it is said."""
        return f"{self.task} per node" if self.per_node else self.task

    @property
    def title(self) -> str:
        """A name for people."""
        return f"{self.subject}, {self.layers} layer{'s' if self.layers > 1 else ''}, {self.method}"

    def compute(self, record: Record) -> dict[str, Any]:
        """The result of the trivial predictor."""
        from experiments.nets import trivial_errors

        errors = trivial_errors(self)
        return {"errors": errors, "validation": None, "best_epoch": None, "parameters": 0, "seconds": 0.0}

    def learner(self) -> "Learner":
        """The network, its examples and its optimiser."""
        from experiments.module import CellModule

        return CellModule(self)

    def say(self, record: Mapping[str, Any]) -> str:
        """The error: on the test set where that is a single one, otherwise on the validation examples."""
        if "errors" not in record:
            return f"error {record['validation']:.2g}"
        error = next(iter(record["errors"].values())) if len(record["errors"]) == 1 else record["validation"]
        return "" if error is None else f"error {error:.3g}"


QUICK_RATES = {("diagonal", 3): 0.005, ("singular", 1): 0.03}
"""Learning rates for the few steps of quick runs, where the usual ones are too large or too small for so few."""


def quick(cell: Cell, *, keep_rate: bool = False) -> Cell:
    """The same cell with a fifth of the examples and few epochs: seconds instead of minutes, too few for a decay.

    Smaller batches make up for a part of the steps.
    """
    rate = cell.rate if keep_rate else QUICK_RATES.get((cell.task, cell.layers), cell.rate)
    return replace(cell, train=2_000, validation=200, test=200, epochs=5, batch=4, rate=rate, decay=0.0)


def cells_of_table1(
    *,
    tasks: Sequence[str] = TASKS,
    layers: Iterable[int] | None = None,
    methods: Sequence[str] = METHODS,
    seed: int = 0,
    rates: Sequence[float] = (),
    readouts: Sequence[str] = READOUTS[:1],
) -> list[Cell]:
    """The cells of Table 1, or some of them; with several rates or readouts, each cell once for each."""
    wanted = None if layers is None else set(layers)
    return _nonempty(
        cell
        for task in tasks
        for count in LAYERS.get(task, (1,))
        if wanted is None or count in wanted
        for method in methods
        for cell in _tried("table1", task, count, method, seed, rates, readouts)
    )


def cells_of_table2(
    *,
    tasks: Sequence[str] = TABLE2_TASKS,
    layers: Iterable[int] | None = None,
    seed: int = 0,
    rates: Sequence[float] = (),
    readouts: Sequence[str] = READOUTS[:1],
) -> list[Cell]:
    """The cells of Table 2: trained with 40 nodes, tested with 10 to 100. The arguments are those of Table 1.

    The trace is learned twice: as in Table 1, and per node.
    """
    return _nonempty(
        replace(cell, per_node=per_node)
        for task in tasks
        for count in sorted(set(layers or (TABLE2_LAYERS,)))
        for per_node in ((False, True) if task == "trace" else (False,))
        for cell in _tried("table2", task, count, "ours", seed, rates, readouts)
    )


def _tried(
    table: str, task: str, layers: int, method: str, seed: int, rates: Sequence[float], readouts: Sequence[str]
) -> list[Cell]:
    """One cell for each choice. The trivial predictor has none to make, and only the trace is read out."""
    plain = Cell(table=table, task=task, layers=layers, method=method, seed=seed)
    if method == "trivial":
        return [plain]
    found = []
    for readout in dict.fromkeys(readouts if task == "trace" else ("max",)):
        usual = TRAINING_MAX if task == "trace" and readout == "max" else TRAINING[task]
        training = TRAINING_OF_LAYERS.get((task, layers), usual)
        for rate in dict.fromkeys(rates) or (training.rate,):
            learned = replace(plain, **asdict(replace(training, rate=rate)))
            found.append(replace(learned, sizes=SIZES[table], readout=readout))
    return found


def _nonempty(cells: Iterable[Cell]) -> list[Cell]:
    found = list(cells)
    if not found:
        raise OptionError(
            "No cell of the table is left.\nOnly the task 'singular' has 4 layers; the others have 1 to 3."
        )
    return found
