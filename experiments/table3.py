"""The paper's Table 3, from records: the results beside the paper's rows, and which accuracy is which.

Three accuracies are in use for these data sets, and they cannot be compared. *Last epoch*: the number of epochs is
fixed in advance; this is the paper's. *Nested*: a validation set within the training graphs selects the epoch, or
whatever a method selects. *Best averaged epoch*: the one with the best mean over the test sets of all splits, which
uses the test sets.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean, pstdev

from experiments.graph_cell import SEED, SETS, SPLITS, GraphCell
from experiments.methods import NAMES, method
from experiments.methods.base import AUTHORS, PROTOCOLS
from experiments.methods.ign import LAYOUTS, ign
from experiments.page import MISSING, Table
from experiments.records import Record

TITLES = ("MUTAG", "PTC", "PROTEINS", "NCI1", "NCI109", "COLLAB", "IMDB-B", "IMDB-M")
"""The paper's names of the data sets, in the order of `SETS`."""
PAPER3 = ("84.61 ± 10", "59.47 ± 7.3", "75.19 ± 4.3", "73.71 ± 2.6", "72.48 ± 2.5", "77.92 ± 1.7", "71.27 ± 4.5",
          "48.55 ± 3.9")  # fmt: skip
OTHERS3 = {
    "DGCNN": ("85.83 ± 1.7", "58.59 ± 2.5", "75.54 ± 0.9", "74.44 ± 0.5", "-", "73.76 ± 0.5", "70.03 ± 0.9",
              "47.83 ± 0.9"),
    "PSCN (k=10)": ("88.95 ± 4.4", "62.29 ± 5.7", "75 ± 2.5", "76.34 ± 1.7", "-", "72.6 ± 2.2", "71 ± 2.3",
                    "45.23 ± 2.8"),
    "DCNN": ("-", "-", "61.29 ± 1.6", "56.61 ± 1.0", "-", "52.11 ± 0.7", "49.06 ± 1.4", "33.49 ± 1.4"),
    "ECC": ("76.11", "-", "-", "76.82", "75.03", "-", "-", "-"),
    "DGK": ("87.44 ± 2.7", "60.08 ± 2.6", "75.68 ± 0.5", "80.31 ± 0.5", "80.32 ± 0.3", "73.09 ± 0.3", "66.96 ± 0.6",
            "44.55 ± 0.5"),
    "DiffPool": ("-", "-", "78.1", "-", "-", "75.5", "-", "-"),
    "CCN": ("91.64 ± 7.2", "70.62 ± 7.0", "-", "76.27 ± 4.1", "75.54 ± 3.4", "-", "-", "-"),
    "GK": ("81.39 ± 1.7", "55.65 ± 0.5", "71.39 ± 0.3", "62.49 ± 0.3", "62.35 ± 0.3", "-", "-", "-"),
    "RW": ("79.17 ± 2.1", "55.91 ± 0.3", "59.57 ± 0.1", "> 3 days", "-", "-", "-", "-"),
    "PK": ("76 ± 2.7", "59.5 ± 2.4", "73.68 ± 0.7", "82.54 ± 0.5", "-", "-", "-", "-"),
    "WL": ("84.11 ± 1.9", "57.97 ± 2.5", "74.68 ± 0.5", "84.46 ± 0.5", "85.12 ± 0.3", "-", "-", "-"),
    "FGSD": ("92.12", "62.80", "73.42", "79.80", "78.84", "80.02", "73.62", "52.41"),
    "AWE-DD": ("-", "-", "-", "-", "-", "73.93 ± 1.9", "74.45 ± 5.8", "51.54 ± 3.6"),
    "AWE-FB": ("87.87 ± 9.7", "-", "-", "-", "-", "70.99 ± 1.4", "73.13 ± 3.2", "51.58 ± 4.6"),
}  # fmt: skip
"""The other methods of the paper's Table 3, with its figures."""

PUBLISHED = {"PPGN": ("90.5", "66.2", "77.2", "83.2", "81.8", "-", "72.6", "50")}
"""Figures of the authors of later methods, by the title of the method; shown once it was run here."""

IGN = tuple(ign.row({"layout": layout}) for layout in LAYOUTS)
"""The rows of the paper's network."""

Place = tuple[str, str, str]
"""Data set, row, protocol."""


def rows_here() -> tuple[str, ...]:
    """The rows that can be run here: the paper's network in either layout, then the other methods."""
    return (*IGN, *(method(name).title for name in NAMES if name != "ign"))


@dataclass(frozen=True)
class Chosen:
    """The results of a set-up.

    Attributes:
        cell: Its cell, whatever the split.
        records: The records of its splits, in order.
        reseeded: The same for other seeds, by seed.
        left_out: Other set-ups for the same data set, row and protocol, and the number of records of each.
    """

    cell: GraphCell
    records: tuple[Record, ...]
    reseeded: Mapping[int, tuple[Record, ...]]
    left_out: Mapping[GraphCell, int]

    def accuracy(self) -> str:
        """Mean and standard deviation over the splits, in percent."""
        return over_splits(self.records)

    def best_averaged(self) -> str:
        """The same for the epoch with the largest mean, the first one if there are several. This uses the test sets."""
        curves = [record["curves"].get("test", []) for record in self.records]
        n_epochs = min(map(len, curves))
        if not n_epochs:
            return MISSING
        best = max(range(n_epochs), key=lambda epoch: fmean(curve[epoch] for curve in curves))
        return f"{percent([curve[best] for curve in curves])}, epoch {best + 1}{_of_splits(self.records)}"

    def seconds(self) -> str:
        """The mean time of a split."""
        return f"{fmean(record['seconds'] for record in self.records):.3g}{_of_splits(self.records)}"

    def notes(self) -> list[str]:
        """How it differs from the usual set-up, and what is not shown."""
        what = f"{self.cell.name}, {self.cell.row.replace(AUTHORS, '')}, {self.cell.protocol}"
        changes = _differences(self.cell, self.cell.usual())
        whose = "authors'" if self.cell.method == "ign" else "usual"
        return [f"{what}: {', '.join(changes)}. Not the {whose} set-up."] * bool(changes) + [
            f"{what}: {count} record{'s' * (count > 1)} with {', '.join(_differences(cell, self.cell))} "
            f"{'are' if count > 1 else 'is'} not shown; run another set-up with another --out."
            for cell, count in self.left_out.items()
        ]


def choose_setups(finished: Sequence[Record]) -> dict[Place, Chosen]:
    """For each data set, row and protocol one set-up; records of different set-ups are never mixed.

    It is the usual one (for the paper's network the authors') if there is a record of it, otherwise the one with the
    most epochs, then the usual seed, then the fewest other differences from the usual one, then the most splits.
    Neither figures nor the order of the records matter.
    """
    splits: dict[GraphCell, dict[int, Record]] = {}
    for record in finished:
        if record["config"]["table"] == "table3":
            cell = GraphCell.from_json(record["config"])
            splits.setdefault(replace(cell, split=0), {})[cell.split] = record
    records = {cell: tuple(some[split] for split in sorted(some)) for cell, some in splits.items()}

    def weight(cell: GraphCell) -> tuple[bool, int, bool, int, int, str]:
        usual = cell.usual()
        n_changes = len(_differences(cell, usual))
        return not n_changes, cell.epochs, cell.seed == usual.seed, -n_changes, len(records[cell]), cell.key

    by_place: dict[Place, list[GraphCell]] = {}
    for cell in sorted(records, key=weight, reverse=True):
        by_place.setdefault((cell.name, cell.row, cell.protocol), []).append(cell)
    found = {}
    for place, (best, *others) in by_place.items():
        reseeded = [cell for cell in others if replace(cell, seed=best.seed) == best]
        left_out = {cell: len(records[cell]) for cell in others if cell not in reseeded}
        found[place] = Chosen(best, records[best], {cell.seed: records[cell] for cell in reseeded}, left_out)
    return found


def _differences(cell: GraphCell, other: GraphCell) -> list[str]:
    """The settings in which a set-up differs from another."""
    here, there = cell.settings(), other.settings()
    names = [name for name in {**there, **here} if here.get(name) != there.get(name)]
    return [f"{name}={here.get(name)} instead of {there.get(name)}" for name in names]


def table3(finished: Sequence[Record]) -> Table:
    """Table 3 in the paper's shape, with the results from here before the paper's own rows."""
    chosen = choose_setups(finished)

    def accuracies(row: str, protocol: str) -> list[str]:
        return [_accuracy(chosen.get((name, row, protocol))) for name in SETS]

    rows = [(row, *accuracies(row, "fixed")) for row in IGN]
    nested = [row for row in rows_here() if any(place[1:] == (row, "nested") for place in chosen)]
    rows += [(f"{row}, nested", *accuracies(row, "nested")) for row in nested]
    published = [(f"{row}, published", *PUBLISHED[row]) for row in nested if row in PUBLISHED]
    rows += [*published, ("the paper", *PAPER3), *((name, *figures) for name, figures in OTHERS3.items())]
    notes = [
        "IGN: accuracy on the test graphs after a number of epochs fixed in advance, mean and population standard "
        "deviation over the splits.",
        *["Nested: run here, on the same splits, with all selection within the training graphs."] * bool(nested),
        *["Published: figures of the authors, for the best averaged epoch, which uses the test sets."]
        * bool(published),
        "The other rows are the paper's figures.",
        "Sparse networks are other functions than dense ones: they have values on edges and nodes only.",
        *(note for found in chosen.values() for note in found.notes()),
    ]
    return Table("Table 3: accuracy in percent", ("method", *TITLES), tuple(rows), tuple(notes))


def protocols_table(finished: Sequence[Record]) -> Table:
    """All results, a column for each protocol."""
    chosen = choose_setups(finished)
    rows = []
    for name, title, paper in zip(SETS, TITLES, PAPER3, strict=True):
        for row in rows_here():
            fixed, nested = (chosen.get((name, row, protocol)) for protocol in PROTOCOLS)
            if fixed or nested:
                tested = fixed if row in IGN else nested  # other methods have no fixed runs
                best = MISSING if tested is None else tested.best_averaged()
                beside = paper if row in IGN else MISSING
                rows.append((title, row, _accuracy(fixed), beside, _accuracy(nested), best))
    last = ("last epoch", "last epoch, the paper")
    head = ("data set", "method", *last, "nested", "best averaged epoch (uses the test sets)")
    notes = (
        "Three protocols, whose figures cannot be compared: the last epoch, with a number of epochs that is fixed in "
        "advance (the paper's); nested, where the validation set, a ninth of the training graphs, selects the epoch "
        "(a tenth for GraphClassifier; for kernels, cross-validation within the training graphs selects their "
        "options); the best averaged epoch, which is selected on the test sets and therefore biased upwards.",
    )
    return Table("Table 3: protocols", head, tuple(rows), notes)


def times_table(finished: Sequence[Record]) -> Table:
    """The time of a split, a row for each method and protocol."""
    chosen = choose_setups(finished)
    rows = []
    for row in rows_here():
        for protocol in PROTOCOLS:
            found = [chosen.get((name, row, protocol)) for name in SETS]
            if any(found):
                rows.append((f"{row}, {protocol}", *(MISSING if one is None else one.seconds() for one in found)))
    notes = (
        "Training and testing of one split on one thread, mean over the splits. IGN: wall-clock time, an upper bound "
        "since runs share a machine with others. The other methods: processor time; for kernels that of all matrices, "
        "which the splits share, is counted in each.",
    )
    return Table("Table 3: seconds for a split", ("method", *TITLES), tuple(rows), notes)


def seeds_table(finished: Sequence[Record]) -> Table:
    """For every data set, method and protocol with several seeds: each of them, and the mean of all."""
    chosen = choose_setups(finished)
    rows = [
        (title, f"{row}, {protocol}", *figures)
        for name, title in zip(SETS, TITLES, strict=True)
        for row in rows_here()
        for protocol in PROTOCOLS
        for figures in _by_seed(chosen.get((name, row, protocol)))
    ]
    notes = (
        f"The other tables show seed {SEED} where it was run. The seed determines everything random: initial weights, "
        "batches, the validation set, the parts of a cross-validation. Mean and population standard deviation, beside "
        "a seed over its splits, beside several over their means; a seed without all splits is not included in these.",
    )
    return Table("Table 3: seeds", ("data set", "method", "seed", "accuracy"), tuple(rows), notes, left=3)


def _by_seed(found: Chosen | None) -> Iterator[tuple[str, str]]:
    """Seeds and their accuracies, if there are several."""
    if found is None or not found.reseeded:
        return
    by_seed = {found.cell.seed: found.records, **found.reseeded}
    for seed, records in sorted(by_seed.items()):
        yield str(seed), over_splits(records)
    whole = [records for records in by_seed.values() if len(records) == len(SPLITS)]
    if len(whole) > 1:
        yield f"mean of {len(whole)}", percent([fmean(record["accuracy"] for record in records) for records in whole])


def _accuracy(found: Chosen | None) -> str:
    return MISSING if found is None else found.accuracy()


def over_splits(records: Sequence[Record]) -> str:
    """Mean and standard deviation of the accuracy in percent, and the number of splits if some are missing."""
    return percent([record["accuracy"] for record in records]) + _of_splits(records)


def _of_splits(records: Sequence[Record]) -> str:
    return "" if len(records) == len(SPLITS) else f" ({len(records)} of {len(SPLITS)} splits)"


def percent(parts: Sequence[float]) -> str:
    """Mean and, of several, population standard deviation."""
    mean = f"{100 * fmean(parts):.1f}"
    return mean if len(parts) == 1 else f"{mean} ± {100 * pstdev(parts):.1f}"
