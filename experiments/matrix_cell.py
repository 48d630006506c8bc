"""One cell of Table 1 or 2: which task, which network, how it is trained. A frozen value with a lasting key.

Layers are counted as in the paper: k layers are k equivariant layers of 8 channels, each followed by ReLU, and then the
output layer, which is not counted: one more equivariant layer to the target, or, for the trace, one value for each
orbit and a single fully connected layer.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from bellnet.errors import OptionError
from experiments.cell import Cell, Record, check_cell

if TYPE_CHECKING:
    from experiments.learner import Learner

TASKS = ("symmetric", "diagonal", "singular", "trace")
METHODS = ("bellnet", "hartford", "trivial")
LAYERS = {"symmetric": (1, 2, 3), "diagonal": (1, 2, 3), "singular": (1, 2, 3, 4), "trace": (1, 2, 3)}
TABLES = ("table1", "table2")
SIZES = {"table1": (20, 30, 40, 50, 60), "table2": tuple(range(10, 101, 10))}
"""The numbers of nodes of the test; the paper has 40 in Table 1 and 30, 40 and 50 in Table 2."""
TABLE2_TASKS = ("symmetric", "singular", "diagonal", "trace")
TABLE2_LAYERS = 2
READOUTS = ("mean", "max")


def _training(learning_rate: float, epochs: int, first_bias: float, weight_decay: float) -> dict[str, Any]:
    return {"learning_rate": learning_rate, "epochs": epochs, "first_bias": first_bias, "weight_decay": weight_decay}


# Found by validation, with few trials. Small batches help most. Inputs are centred, so a large bias lets ReLU begin as
# the identity: a function that is linear need not first unlearn its kink. Weight decay lets maps that cancel each other
# with 40 nodes, and with 40 nodes only, vanish.
TRAINING = {
    "symmetric": _training(0.01, 20, 10.0, 1.0),
    "diagonal": _training(0.01, 20, 10.0, 0.3),
    "singular": _training(0.01, 40, 0.0, 0.0),
    "trace": _training(0.01, 20, 10.0, 0.1),
}
TRAINING_MAX = _training(0.03, 20, 0.0, 0.0)
"""For the trace with a maximum as readout."""
TRAINING_OF_LAYERS = {
    ("symmetric", 3): _training(0.003, 20, 10.0, 0.0),
    ("singular", 1): _training(0.01, 120, 0.0, 0.0),
    ("singular", 4): _training(0.01, 120, 0.0, 0.0),
}
"""Where a number of layers needs something else."""
QUICK: dict[str, Any] = {
    "train": 2_000,
    "validation": 200,
    "test": 200,
    "epochs": 5,
    "batch_size": 4,
    "weight_decay": 0.0,
}
"""A fifth of the examples and few epochs. Smaller batches make up for a part of the steps."""
QUICK_LEARNING_RATES = {("diagonal", 3): 0.005, ("singular", 1): 0.03}


@dataclass(frozen=True, kw_only=True)
class MatrixCell(Cell):
    """The errors of a network on one task.

    Attributes:
        table: The table it belongs to.
        task: One of the paper's four.
        layers: The hidden equivariant layers; the output layer is not counted.
        method: All equivariant maps ("bellnet"), those of Hartford et al., or the mean of the training targets.
        seed: Of the examples, the initial weights and the order of the examples.
        n: The number of rows and columns of the training matrices.
        train: The number of training examples, those of the validation set included.
        validation: The size of the validation set, which selects the epoch and the learning rate.
        test: The size of the test set, which is evaluated once, at the very end.
        sizes: The numbers of nodes of the test.
        channels: Of each hidden layer.
        epochs: Passes over the examples.
        batch_size: Examples in a step.
        first_bias: The initial biases of the hidden layers; the others are zero.
        readout: How the network of the trace pools each orbit: "max", as in the paper, or "mean".
        per_node: Whether the output is for one node and multiplied by their number. Layers take means, so that outputs
            do not grow with the matrix; a trace does.
        learning_rate: Of Adam, initially.
        final_learning_rate: The learning rate at the end of its cosine, as a fraction of the initial one.
        weight_decay: Initially; it falls with the square of the learning rate.
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
    batch_size: int = 10
    first_bias: float = 0.0
    readout: str = "max"
    per_node: bool = False
    learning_rate: float = 0.01
    final_learning_rate: float = 1e-4
    weight_decay: float = 0.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "sizes", tuple(self.sizes))
        object.__setattr__(self, "is_learned", self.method != "trivial")
        more = []
        if not 0 <= self.weight_decay < float("inf"):
            more.append(f"weight_decay must be a number from 0 up, not {self.weight_decay!r}")
        counts = ("layers", "n", "train", "validation", "test", "channels", "epochs", "batch_size")
        choices = {"table": TABLES, "task": TASKS, "method": METHODS, "readout": READOUTS}
        check_cell(self, choices=choices, minimum=dict.fromkeys(counts, 1), positive=["learning_rate"], more=more)
        if self.validation >= self.train:
            sides = f"validation={self.validation} leaves nothing of train={self.train}"
            raise OptionError(f"This cell cannot be run: {sides} to train on.")

    @property
    def key_parts(self) -> tuple[object, ...]:
        """The readable parts of the key.

        >>> MatrixCell(table="table1", task="trace", layers=2, method="bellnet").key.rpartition("-")[0]
        'table1-trace-2-bellnet-0'
        """
        return self.table, self.task, self.layers, self.method, self.seed

    @property
    def subject(self) -> str:
        """The task, and whether it is per node."""
        return f"{self.task} per node" if self.per_node else self.task

    @property
    def title(self) -> str:
        return f"{self.subject}, {self.layers} layer{'s' if self.layers > 1 else ''}, {self.method}"

    def compute(self, record: Record) -> dict[str, Any]:
        from experiments.matrix_learner import trivial_errors

        errors = trivial_errors(self)
        return {"errors": errors, "validation": None, "best_epoch": None, "parameters": 0, "seconds": 0.0}

    def learner(self) -> "Learner":
        from experiments.matrix_learner import MatrixLearner

        return MatrixLearner(self)

    def describe(self, record: Mapping[str, Any]) -> str:
        """The error: on the test set where that is a single one, otherwise on the validation set."""
        if "errors" not in record:
            return f"error {record['validation']:.2g}"
        error = next(iter(record["errors"].values())) if len(record["errors"]) == 1 else record["validation"]
        return "" if error is None else f"error {error:.3g}"

    def quick(self, *, keep_learning_rate: bool = False) -> "MatrixCell":
        """The same with a fifth of the examples and few epochs, for which some learning rates are changed."""
        rate = self.learning_rate
        if not keep_learning_rate:
            rate = QUICK_LEARNING_RATES.get((self.task, self.layers), rate)
        return replace(self, learning_rate=rate, **QUICK)


def cells_of_table1(
    *,
    tasks: Sequence[str] = TASKS,
    layers: Iterable[int] | None = None,
    methods: Sequence[str] = METHODS,
    seed: int = 0,
    learning_rates: Sequence[float] = (),
    readouts: Sequence[str] = READOUTS[:1],
) -> list[MatrixCell]:
    """The cells of Table 1, or some of them; with several learning rates or readouts, each cell once for each."""
    wanted = None if layers is None else set(layers)
    return _nonempty(
        cell
        for task in tasks
        for count in LAYERS.get(task, (1,))
        if wanted is None or count in wanted
        for method in methods
        for cell in _variants("table1", task, count, method, seed, learning_rates, readouts)
    )


def cells_of_table2(
    *,
    tasks: Sequence[str] = TABLE2_TASKS,
    layers: Iterable[int] | None = None,
    seed: int = 0,
    learning_rates: Sequence[float] = (),
    readouts: Sequence[str] = READOUTS[:1],
) -> list[MatrixCell]:
    """The cells of Table 2: trained with 40 nodes, tested with 10 to 100. The trace occurs twice, also per node."""
    return _nonempty(
        replace(cell, per_node=per_node)
        for task in tasks
        for count in sorted(set(layers or (TABLE2_LAYERS,)))
        for per_node in ((False, True) if task == "trace" else (False,))
        for cell in _variants("table2", task, count, "bellnet", seed, learning_rates, readouts)
    )


def _variants(
    table: str, task: str, layers: int, method: str, seed: int, rates: Sequence[float], readouts: Sequence[str]
) -> list[MatrixCell]:
    """A cell for each choice. The trivial predictor has none, and only the trace has a readout."""
    plain = MatrixCell(table=table, task=task, layers=layers, method=method, seed=seed)
    if method == "trivial":
        return [plain]
    found = []
    for readout in dict.fromkeys(readouts if task == "trace" else ("max",)):
        usual = TRAINING_MAX if task == "trace" and readout == "max" else TRAINING[task]
        training: dict[str, Any] = TRAINING_OF_LAYERS.get((task, layers), usual)
        for rate in dict.fromkeys(rates) or (training["learning_rate"],):
            changes: dict[str, Any] = {**training, "learning_rate": rate, "sizes": SIZES[table], "readout": readout}
            found.append(replace(plain, **changes))
    return found


def _nonempty(cells: Iterable[MatrixCell]) -> list[MatrixCell]:
    found = list(cells)
    if not found:
        raise OptionError(
            "No cell of the table is left.\nOnly the task 'singular' has 4 layers; the others have 1 to 3."
        )
    return found
