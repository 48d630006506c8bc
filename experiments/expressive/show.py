"""The tables of what was told apart and what was learned."""

from collections.abc import Sequence

from experiments.expressive.networks import Model
from experiments.expressive.skip_links import Learned
from experiments.expressive.suite import Row, Score
from experiments.tables import MISSING, Table

THEORY = {1: "1-WL", 2: "2-FWL", 3: "3-FWL"}
"""What colour refinement of a dimension is called; the folklore form, which in dimension 1 is the only one."""
WRONG = "!"


def columns(asked: Sequence[Model]) -> list[Model | int]:
    """Dimensions of colour refinement, each before the models that should tell apart the same."""
    shown: list[Model | int] = []
    for dimension in sorted({model.dimension for model in asked}):
        shown += [dimension, *(model for model in asked if model.dimension == dimension)]
    return shown


def told_table(rows: Sequence[Row], asked: Sequence[Model]) -> Table:
    """How many pairs of each family are told apart."""
    shown = columns(asked)
    head = ("graphs", "pairs", *(THEORY[one] if isinstance(one, int) else one.name for one in shown))
    cells = tuple((row.family, str(row.pairs), *(_cell(row, one) for one in shown)) for row in rows)
    notes = [
        "Columns named WL are theory, exact colour refinement; networks after each should tell apart the same pairs."
    ]
    if any("of" in cell for line in cells for cell in line[2:]):
        largest = ", ".join(f"{model.name} {model.largest}" for model in asked)
        notes.append(f"Where it says how many of: the other graphs are too large to ask (nodes at most: {largest}).")
    notes += [
        f"{WRONG} {row.family}, {name}: {', '.join(score.wrong)}"
        for row in rows
        for name, score in row.scores.items()
        if score.wrong
    ]
    if not any(model.name == "GIN" for model in asked):
        notes.append("GIN is left out, since PyTorch Geometric is not installed: pip install 'bellnet[pyg]'.")
    return Table("Pairs of graphs told apart", head, cells, tuple(notes))


def _cell(row: Row, column: Model | int) -> str:
    score = row.theory[column] if isinstance(column, int) else row.scores[column.name]
    return _words(score, row.pairs)


def _words(score: Score, pairs: int) -> str:
    if score.pairs == 0:
        return MISSING
    told = str(score.told) if score.pairs == pairs else f"{score.told} of {score.pairs}"
    return f"{told} {WRONG}" if score.wrong else told


def learned_table(learned: Sequence[Learned]) -> Table:
    """How accurately networks name the skip of graphs that they have not seen."""
    rows = tuple(
        (one.name, f"{one.mean:.1%}", f"{min(one.accuracies):.0%}", str(len(one.accuracies)), f"{one.seconds:.0f}")
        for one in learned
    )
    head = ("network", "accuracy", "least", "test sets", "seconds")
    return Table("Circular skip links, ten classes, learned", head, rows)


def lines(table: Table) -> list[str]:
    """A table as plain text."""
    cells = [table.head, *table.rows]
    widths = [max(len(line[place]) for line in cells) for place in range(len(table.head))]

    def line(words: Sequence[str]) -> str:
        padded = [
            words[0].ljust(widths[0]),
            *(word.rjust(width) for word, width in zip(words[1:], widths[1:], strict=True)),
        ]
        return "  ".join(padded).rstrip()

    return [table.title, "", *(f"  {line(words)}" for words in cells), *(["", *table.notes] if table.notes else [])]
