"""The report of a directory: tables and pictures, drawn from its records alone."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bellnet._utils import files
from bellnet.errors import DataError
from experiments.page import Page, Table, png, print_table, refusal
from experiments.plots import accuracy_curves, error_against_size, example_outputs, learning_curves
from experiments.records import Records
from experiments.run import check_extra
from experiments.table3 import protocols_table, seeds_table, table3, times_table
from experiments.tables import results_of, sizes_table, table1, table2

SUBJECTS = {(False,): "the synthetic experiments", (True,): "graph classification"}
PICTURES = {
    "curves.png": ("Validation error after each epoch", learning_curves),
    "sizes.png": ("Test error against the number of nodes", error_against_size),
    "examples.png": ("Inputs, targets and outputs", example_outputs),
    "accuracy.png": ("Accuracy after each epoch, mean over the splits", accuracy_curves),
}


def tables_of(directory: Path) -> list[Table]:
    """The tables for which a directory has records."""
    finished = results_of(Records(directory))
    present = {record["config"]["table"] for record in finished}
    makers = {
        "table1": (table1,),
        "table2": (table2, sizes_table),
        "table3": (table3, protocols_table, times_table, seeds_table),
    }
    tables = [make(finished) for name, several in makers.items() if name in present for make in several]
    return [table for table in tables if table.rows]


def print_tables(directory: Path) -> None:
    """Print the tables of a directory."""
    for table in tables_of(directory):
        print_table(table)


def pictures_of(directory: Path) -> dict[str, bytes]:
    """The pictures for which a directory has records, as PNG, by the names of their files."""
    finished = results_of(Records(directory))
    figures = {name: draw(finished) for name, (_, draw) in PICTURES.items()}
    return {name: png(figure) for name, figure in figures.items() if figure is not None}


def write_report(directory: Path) -> list[Path]:
    """Write `report.md`, `report.html` and their pictures; returns the files written."""
    check_extra("report")
    directory = Path(directory)
    finished = results_of(Records(directory))
    if not finished:
        raise DataError(
            f"{directory} has no finished cell to report.\nName a directory that table1, table2 or table3 has "
            "written with --out."
        )
    subject = SUBJECTS.get(tuple({record["config"]["table"] == "table3" for record in finished}), "the experiments")
    page = Page(f"Invariant and equivariant graph networks: {subject}")
    for table in tables_of(directory):
        page.table(table)
    for name, content in pictures_of(directory).items():
        caption = PICTURES[name][0]
        page.heading(caption)
        page.picture(content, caption, file=name)
    page.heading("Circumstances")
    seconds = sum(record["seconds"] for record in finished)
    page.items([f"{len(finished)} cells, {seconds:.0f} s of training", *circumstances_of(finished)])
    return page.write(directory)


def circumstances_of(records: Sequence[dict[str, Any]]) -> list[str]:
    """Versions, machines and commits of records."""
    lines = []
    for name in ("versions", "machine"):
        kinds = sorted({", ".join(f"{key} {value}" for key, value in record[name].items()) for record in records})
        lines += [f"{name}: {kind}" for kind in kinds]
    commits = sorted({commit for record in records if isinstance(commit := record.get("commit"), str)})
    return [*lines, *(f"commit: {commit}" for commit in commits)]


def check_report(directory: Path) -> None:
    """Refuse a directory in which records or report cannot be written, before hours are spent on them."""
    for path in (Records(directory).path, *(directory / name for name in (*PICTURES, "report.md", "report.html"))):
        try:
            files.check(path)
        except OSError as reason:
            raise refusal(reason) from reason
