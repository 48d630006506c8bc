"""What was run just now beside the paper's figures and beside recorded runs of the same cells: a part of Table 1."""

from pathlib import Path

from experiments.config import LAYERS, METHODS, TASKS, Cell
from experiments.records import Records
from experiments.sound import sound_results
from experiments.tables import (
    MISSING,
    PAPER1,
    PAPER_SETUP,
    Table,
    choose,
    figure,
    mean_error,
    verdict,
)

NAMES = {"ours": "ours, 15 maps", "hartford": "Hartford et al., 4 maps", "trivial": "trivial: the mean"}


def beside_table(directory: Path, recorded: Path) -> Table:
    """A row for each cell of Table 1 that was run, with the paper's figure and that of a recorded run."""
    now, before = (choose(sound_results(Records(place)), "table1") for place in (directory, recorded))
    cells = [Cell.from_json(record["config"]) for records in now.values() for record in records]
    is_comparable = all(cell.n == PAPER_SETUP[0] for cell in cells)
    rows = []
    for task, layers, method in sorted(now, key=lambda at: (TASKS.index(at[0]), at[1], METHODS.index(at[2]))):
        found = mean_error(now[task, layers, method], None)
        paper = PAPER1[method][task][LAYERS[task].index(layers)]
        earlier = mean_error(before.get((task, layers, method), ()), None)
        said = verdict(found, paper) if found is not None and is_comparable and method == "ours" else MISSING
        rows.append((task, str(layers), NAMES[method], figure(found), figure(paper), figure(earlier), said))
    head = ("task", "layers", "network", "now", "the paper", "recorded", "now is")
    learned = [cell for cell in cells if cell.is_learned]
    earlier_cells = [Cell.from_json(record["config"]) for at in now for record in before.get(at, ())]
    n, train, test = PAPER_SETUP
    notes = [
        f"now: {_setup(learned)}",
        f"recorded: {_setup([cell for cell in earlier_cells if cell.is_learned])}",
        f"the paper: {train} examples, tested on {test} others; it does not say how many epochs.",
        *[f"The paper has n={n}: these figures cannot be compared with its own."] * (not is_comparable),
    ]
    if any(cell.task == "trace" and cell.readout == "mean" for cell in learned):
        notes.append("The trace is read out by the mean over each orbit; the paper took the maximum.")
    title = "A part of Table 1: mean square error on the test set"
    return Table(title, head, tuple(rows), tuple(notes), left=3)


def _setup(cells: list[Cell]) -> str:
    """What cells were trained on and for how long, in words."""
    if not cells:
        return "nothing."

    def span(numbers: list[int]) -> str:
        return str(min(numbers)) if min(numbers) == max(numbers) else f"{min(numbers)} to {max(numbers)}"

    train, kept, epochs, test = (
        span([getattr(cell, name) for cell in cells]) for name in ("train", "validation", "epochs", "test")
    )
    return f"{train} examples, {kept} of them to choose the epoch; epochs: {epochs}; tested on {test} others."
