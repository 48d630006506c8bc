"""The paper's Table 3, from records: what was run here among the paper's rows, and which accuracy is which.

Three accuracies are in use for these data sets, and they cannot be compared. *Last epoch*: their number is chosen
beforehand; this is the paper's. *Best averaged epoch*: the one in which the mean over the test sets of all splits is
largest, which looks at the test sets. *Nested*: graphs kept aside from each training set choose the epoch, or whatever
else a method lets one choose. A figure says which it is by its row or by its column.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean, pstdev
from typing import Any

from experiments.graph_cell import SEED, SETS, SPLITS, GraphCell
from experiments.methods import NAMES, method
from experiments.methods.base import AUTHORS, PROTOCOLS
from experiments.methods.ign import LAYOUTS, ign
from experiments.results import cell_of
from experiments.tables import MISSING, Finished, Table

TITLES = ("MUTAG", "PTC", "PROTEINS", "NCI1", "NCI109", "COLLAB", "IMDB-B", "IMDB-M")
"""What the paper calls the data sets, in the order of `SETS`."""
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
"""What the authors of later methods have published, by the title of the method; shown once it was run here."""

IGN = tuple(ign.row({"layout": layout}) for layout in LAYOUTS)
"""The rows of the paper's network."""

Epochs = Mapping[str, Sequence[Mapping[str, Any]]]
Place = tuple[str, str, str]
"""Data set, row, protocol."""


def rows_here() -> tuple[str, ...]:
    """The rows that can be run here: the paper's network in either layout, then the other methods."""
    return (*IGN, *(method(name).title for name in NAMES if name != "ign"))


@dataclass(frozen=True)
class Chosen:
    """What a set-up gave: its cell, whatever the split, and the final records of its splits in order.

    `reseeded` are the final records of the same set-up with other seeds, by seed, in the same order. `left_out` are the
    other set-ups for the same data set, row and protocol, and how many records each has.
    """

    cell: GraphCell
    records: tuple[Mapping[str, Any], ...]
    reseeded: Mapping[int, tuple[Mapping[str, Any], ...]]
    left_out: Mapping[GraphCell, int]

    def of_splits(self) -> str:
        """How many splits there are, where some are missing."""
        return _of_splits(self.records)

    def accuracy(self) -> str:
        """Mean and standard deviation over the splits, in percent."""
        return over_splits(self.records)

    def best_averaged(self, epochs: Epochs) -> str:
        """The same for the epoch whose mean is largest, the first if there are several. This looks at the test sets."""
        curves = [
            {epoch["epoch"]: epoch["test"] for epoch in epochs.get(record["key"], ()) if "test" in epoch}
            for record in self.records
        ]
        common = sorted(set.intersection(*map(set, curves)))
        if not common:
            return MISSING
        best = max(common, key=lambda epoch: fmean(curve[epoch] for curve in curves))
        return f"{percent([curve[best] for curve in curves])}, epoch {best + 1}{self.of_splits()}"

    def seconds(self) -> str:
        """The mean time of a split."""
        return f"{fmean(record['seconds'] for record in self.records):.3g}{self.of_splits()}"

    def notes(self) -> list[str]:
        """What to know: that this is not the usual set-up, and what else was run and is not shown."""
        what = f"{self.cell.name}, {self.cell.row.replace(AUTHORS, '')}, {self.cell.protocol}"
        changes = _changes(self.cell)
        whose = "authors'" if self.cell.method == "ign" else "usual"
        return [f"{what}: {', '.join(changes)}. Not the {whose} set-up."] * bool(changes) + [
            f"{what}: {count} record{'s' * (count > 1)} with {', '.join(_differences(cell, self.cell))} "
            f"{'are' if count > 1 else 'is'} not shown; run another set-up with another --out."
            for cell, count in self.left_out.items()
        ]


def choose_setups(finished: Finished) -> dict[Place, Chosen]:
    """For each data set, row and protocol one set-up; records of different set-ups are never mixed.

    It is the usual one (for the paper's network the authors') if there is a record of it, otherwise the one with the
    most epochs, then the usual seed, then the fewest other differences from the usual one, then the most splits. No
    figure has a say in this, nor has the order of records.
    """
    found: dict[GraphCell, dict[int, Mapping[str, Any]]] = {}
    for record in finished:
        if record["config"]["table"] == "table3":
            cell = cell_of(record["config"])
            assert isinstance(cell, GraphCell)
            found.setdefault(replace(cell, split=0), {})[cell.split] = record
    by_place: dict[Place, list[GraphCell]] = {}
    for cell in sorted(found, key=lambda cell: (*_weight(cell, found[cell]), cell.key), reverse=True):
        by_place.setdefault((cell.name, cell.row, cell.protocol), []).append(cell)
    in_order = {cell: tuple(splits[split] for split in sorted(splits)) for cell, splits in found.items()}
    return {
        place: Chosen(
            best,
            in_order[best],
            {cell.seed: in_order[cell] for cell in others if _is_reseeded(cell, best)},
            {cell: len(found[cell]) for cell in others if not _is_reseeded(cell, best)},
        )
        for place, (best, *others) in by_place.items()
    }


def table3(finished: Finished) -> Table:
    """Table 3 in the paper's shape, with what was run here before the paper's own rows."""
    chosen = choose_setups(finished)

    def accuracies(row: str, protocol: str) -> list[str]:
        return [_accuracy(chosen.get((name, row, protocol))) for name in SETS]

    rows = [(row, *accuracies(row, "fixed")) for row in IGN]
    nested = [row for row in rows_here() if any(place[1:] == (row, "nested") for place in chosen)]
    rows += [(f"{row}, nested", *accuracies(row, "nested")) for row in nested]
    beside = [row for row in nested if row in PUBLISHED]
    rows += [(f"{row}, published", *PUBLISHED[row]) for row in beside]
    rows += [("the paper", *PAPER3), *((name, *figures) for name, figures in OTHERS3.items())]
    notes = [
        "IGN: accuracy on the test graphs after a number of epochs chosen beforehand, mean and population standard "
        "deviation over the splits.",
        *["Nested: run here, on the same splits; whatever is chosen is chosen within the training graphs."]
        * bool(nested),
        *["Published: figures of its authors, of the best averaged epoch, which looks at the test sets."]
        * bool(beside),
        "The other rows are the paper's figures.",
        "Sparse networks are other functions than dense ones: they have values on edges and nodes only.",
        *(note for found in chosen.values() for note in found.notes()),
    ]
    return Table("Table 3: accuracy in percent", ("method", *TITLES), tuple(rows), tuple(notes))


def protocols_table(finished: Finished, epochs: Epochs) -> Table:
    """What has been run, a column for each way to measure."""
    chosen = choose_setups(finished)
    rows = []
    for name, title, paper in zip(SETS, TITLES, PAPER3, strict=True):
        for row in rows_here():
            fixed, nested = (chosen.get((name, row, protocol)) for protocol in PROTOCOLS)
            if fixed or nested:
                # The paper's network looks at test graphs in its fixed runs alone, other methods have no such runs.
                seen = fixed if row in IGN else nested
                best = MISSING if seen is None else seen.best_averaged(epochs)
                beside = paper if row in IGN else MISSING
                rows.append((title, row, _accuracy(fixed), beside, _accuracy(nested), best))
    head = (
        "data set",
        "method",
        "last epoch",
        "last epoch, the paper",
        "nested",
        "best averaged epoch (looks at the test sets)",
    )
    notes = (
        "Three ways to measure, which cannot be compared: the last epoch, their number being chosen beforehand (the "
        "paper's way); nested, where a ninth of the training graphs is kept aside and chooses the epoch "
        "(GraphClassifier keeps a tenth by itself; for kernels, cross-validation within the training graphs "
        "chooses their options); the best "
        "averaged epoch, which is chosen by the test graphs themselves and therefore too good.",
    )
    return Table("Table 3: which accuracy is which", head, tuple(rows), notes)


def times_table(finished: Finished) -> Table:
    """How long a split takes, a row for each method and protocol that was run."""
    chosen = choose_setups(finished)
    rows = []
    for row in rows_here():
        for protocol in PROTOCOLS:
            found = [chosen.get((name, row, protocol)) for name in SETS]
            if any(found):
                rows.append((f"{row}, {protocol}", *(MISSING if one is None else one.seconds() for one in found)))
    notes = (
        "Training and testing of one split on one thread, mean over the splits. IGN: by the clock, "
        "and since runs share a machine with others an upper bound. The other methods: time of the processor; for "
        "kernels that of all matrices, which the splits share, is counted in each.",
    )
    return Table("Table 3: seconds for a split", ("method", *TITLES), tuple(rows), notes)


def _is_reseeded(cell: GraphCell, other: GraphCell) -> bool:
    """Whether two set-ups differ in nothing but their seeds."""
    return replace(cell, seed=other.seed) == other


def _weight(cell: GraphCell, splits: Mapping[int, Any]) -> tuple[bool, int, bool, int, int]:
    changes = _changes(cell)
    return not changes, cell.epochs, cell.seed == cell.usual().seed, -len(changes), len(splits)


def _accuracy(found: Chosen | None) -> str:
    return MISSING if found is None else found.accuracy()


def over_splits(records: Sequence[Mapping[str, Any]]) -> str:
    """Mean and standard deviation of the accuracy in percent, and how many splits there are where some are missing."""
    return percent([record["accuracy"] for record in records]) + _of_splits(records)


def _of_splits(records: Sequence[Mapping[str, Any]]) -> str:
    return "" if len(records) == len(SPLITS) else f" ({len(records)} of {len(SPLITS)} splits)"


def percent(parts: Sequence[float]) -> str:
    """Mean and, of several, population standard deviation."""
    mean = f"{100 * fmean(parts):.1f}"
    return mean if len(parts) == 1 else f"{mean} ± {100 * pstdev(parts):.1f}"


def _changes(cell: GraphCell) -> list[str]:
    """What differs from the usual set-up, in words."""
    return _differences(cell, cell.usual())


def _differences(cell: GraphCell, other: GraphCell) -> list[str]:
    """In what a set-up differs from another, in words."""
    here, there = cell.settings(), other.settings()
    return [
        f"{name}={here.get(name)} instead of {there.get(name)}"
        for name in {**there, **here}
        if here.get(name) != there.get(name)
    ]


def seeds_table(finished: Finished) -> Table:
    """For every data set, method and protocol that was run with several seeds: each of them, and the mean of all."""
    chosen = choose_setups(finished)
    rows = [
        (title, f"{row}, {protocol}", *figures)
        for name, title in zip(SETS, TITLES, strict=True)
        for row in rows_here()
        for protocol in PROTOCOLS
        for figures in _by_seed(chosen.get((name, row, protocol)))
    ]
    notes = (
        f"The other tables show seed {SEED} where it was run. A seed decides whatever a method draws: initial weights, "
        "batches, graphs that are kept aside, parts of a cross-validation. Mean and population standard deviation, "
        "beside a seed over its splits, beside several over their means; a seed without all splits has no part "
        "in these.",
    )
    return Table(
        "Table 3: what the seed changes", ("data set", "method", "seed", "accuracy"), tuple(rows), notes, left=3
    )


def _by_seed(found: Chosen | None) -> Iterator[tuple[str, str]]:
    """Seeds and what they gave, if there is more than one."""
    if found is None or not found.reseeded:
        return
    by_seed = {found.cell.seed: found.records, **found.reseeded}
    for seed, records in sorted(by_seed.items()):
        yield str(seed), over_splits(records)
    whole = [records for records in by_seed.values() if len(records) == len(SPLITS)]
    if len(whole) > 1:
        yield f"mean of {len(whole)}", percent([fmean(record["accuracy"] for record in records) for records in whole])
