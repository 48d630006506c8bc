"""The paper's Table 3, from records: accuracies by protocol, never mixed in one column.

Three accuracies are in use for these data sets, and they cannot be compared. *Last epoch*: their number is chosen
beforehand; this is the paper's. *Best averaged epoch*: the one in which the mean over the test sets of all splits is
largest, which looks at the test sets. *Nested*: graphs kept aside from each training set choose the epoch.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from statistics import fmean, pstdev
from typing import Any

from bellnet.experiments.graph_cells import LAYOUTS, SEED, SETS, SPLITS, TRAINING, GraphCell
from bellnet.experiments.tables import MISSING, Finished, Table

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

Epochs = Mapping[str, Sequence[Mapping[str, Any]]]
Place = tuple[str, str, str]


@dataclass(frozen=True)
class Chosen:
    """What a set-up gave: its cell, whatever the split, and the final records of its splits in order.

    `left_out` are the other set-ups for the same data set, layout and protocol, and how many records each has.
    """

    cell: GraphCell
    records: tuple[Mapping[str, Any], ...]
    left_out: Mapping[GraphCell, int]

    def of_splits(self) -> str:
        """How many splits there are, where some are missing."""
        return "" if len(self.records) == len(SPLITS) else f" ({len(self.records)} of {len(SPLITS)} splits)"

    def accuracy(self) -> str:
        """Mean and standard deviation over the splits, in percent."""
        return _percent([record["accuracy"] for record in self.records]) + self.of_splits()

    def best_averaged(self, epochs: Epochs) -> str:
        """The same for the epoch whose mean is largest, the first if there are several. This looks at the test sets."""
        curves = [{epoch["epoch"]: epoch["test"] for epoch in epochs.get(record["key"], ())} for record in self.records]
        common = sorted(set.intersection(*map(set, curves)))
        if not common:
            return MISSING
        best = max(common, key=lambda epoch: fmean(curve[epoch] for curve in curves))
        return f"{_percent([curve[best] for curve in curves])}, epoch {best + 1}{self.of_splits()}"

    def notes(self) -> list[str]:
        """What to know: that this is not the authors' set-up, and what else was run and is not shown."""
        what = f"{self.cell.name}, {self.cell.layout}, {self.cell.protocol}"
        changes = _changes(self.cell)
        return [f"{what}: {changes}. Not the authors' set-up."] * bool(changes) + [
            f"{what}: {count} record{'s' * (count > 1)} with {_changes(cell) or 'the usual set-up'} "
            f"{'are' if count > 1 else 'is'} not shown; run another set-up with another --out."
            for cell, count in self.left_out.items()
        ]


def usual_setup(cell: GraphCell) -> GraphCell:
    """The authors' set-up for the data set, layout and protocol of a cell."""
    training = asdict(TRAINING[cell.name]) if cell.name in TRAINING else {}
    return GraphCell(
        name=cell.name,
        split=0,
        layout=cell.layout,
        protocol=cell.protocol,
        seed=SEED,
        **{"epochs": cell.epochs, "rate": cell.rate, "decay": cell.decay, **training},
    )


def choose_setups(finished: Finished) -> dict[Place, Chosen]:
    """For each data set, layout and protocol one set-up; records of different set-ups are never mixed.

    It is the authors' if there is a record of it, otherwise the one with the most epochs, then the most splits. No
    figure has a say in this, nor has the order of the records.
    """
    found: dict[GraphCell, dict[int, Mapping[str, Any]]] = {}
    for record in finished:
        if record["config"]["table"] == "table3":
            cell = GraphCell.from_json(record["config"])
            found.setdefault(replace(cell, split=0), {})[cell.split] = record
    by_place: dict[Place, list[GraphCell]] = {}
    for cell in sorted(found, key=lambda cell: (*_weight(cell, found[cell]), cell.key), reverse=True):
        by_place.setdefault((cell.name, cell.layout, cell.protocol), []).append(cell)
    return {
        place: Chosen(
            best,
            tuple(found[best][split] for split in sorted(found[best])),
            {cell: len(found[cell]) for cell in others},
        )
        for place, (best, *others) in by_place.items()
    }


def table3(finished: Finished) -> Table:
    """Table 3 in the paper's shape: the accuracy after the last epoch, beside the paper's figures."""
    chosen = choose_setups(finished)
    rows = [
        (f"ours, {layout}", *(_accuracy(chosen.get((name, layout, "fixed"))) for name in SETS)) for layout in LAYOUTS
    ]
    rows += [("the paper", *PAPER3), *((name, *figures) for name, figures in OTHERS3.items())]
    fixed = [found for (_, _, protocol), found in chosen.items() if protocol == "fixed"]
    notes = [
        "Ours: accuracy on the test graphs after a number of epochs chosen beforehand, mean and population standard "
        "deviation over the splits. The other rows are the paper's figures.",
        "Sparse networks are other functions than dense ones: they have values on edges and nodes only.",
        *(note for found in fixed for note in found.notes()),
    ]
    return Table("Table 3: accuracy in percent", ("method", *TITLES), tuple(rows), tuple(notes))


def protocols_table(finished: Finished, epochs: Epochs) -> Table:
    """What has been run, a column for each way to measure."""
    chosen = choose_setups(finished)
    rows = []
    for name, title, paper in zip(SETS, TITLES, PAPER3, strict=True):
        for layout in LAYOUTS:
            fixed, nested = (chosen.get((name, layout, protocol)) for protocol in ("fixed", "nested"))
            if fixed or nested:
                best = fixed.best_averaged(epochs) if fixed else MISSING
                rows.append((title, layout, _accuracy(fixed), paper, _accuracy(nested), best))
    head = (
        "data set",
        "layout",
        "last epoch",
        "last epoch, the paper",
        "nested",
        "best averaged epoch (looks at the test sets)",
    )
    notes = (
        "Three ways to measure, which cannot be compared: the last epoch, their number being chosen beforehand (the "
        "paper's way); nested, where a ninth of the training graphs is kept aside and chooses the epoch; the best "
        "averaged epoch, which is chosen by the test graphs themselves and therefore too good.",
        *(note for found in chosen.values() for note in found.notes()),
    )
    return Table("Table 3: which accuracy is which", head, tuple(rows), notes)


def _weight(cell: GraphCell, splits: Mapping[int, Any]) -> tuple[bool, int, int]:
    return cell == usual_setup(cell), cell.epochs, len(splits)


def _accuracy(found: Chosen | None) -> str:
    return MISSING if found is None else found.accuracy()


def _percent(parts: Sequence[float]) -> str:
    mean = f"{100 * fmean(parts):.1f}"
    return mean if len(parts) == 1 else f"{mean} ± {100 * pstdev(parts):.1f}"


def _changes(cell: GraphCell) -> str:
    """What differs from the authors' set-up, in words."""
    usual, here = asdict(usual_setup(cell)), asdict(cell)
    return ", ".join(f"{name}={here[name]} instead of {usual[name]}" for name in usual if here[name] != usual[name])
