"""The report of a directory: tables and pictures, drawn from its records alone."""

from pathlib import Path
from typing import Any

from bellnet import files
from bellnet.errors import DataError
from experiments.page import Page, png
from experiments.plots import accuracy_curves, error_against_size, example_outputs, learning_curves
from experiments.records import Records
from experiments.results import epochs_of, results_of
from experiments.run import check_extra
from experiments.table3 import protocols_table, seeds_table, table3, times_table
from experiments.tables import Table, sizes_table, table1, table2

TITLE = "Invariant and equivariant graph networks"
CAPTIONS = {
    "curves.png": "Validation error after each epoch",
    "sizes.png": "Test error against the number of nodes",
    "examples.png": "Inputs, targets and outputs",
    "accuracy.png": "Accuracy after each epoch, mean over the splits",
}


def tables_of(directory: Path) -> list[Table]:
    """The tables for which a directory has records."""
    records = Records(directory)
    finished = results_of(records)
    present = {record["config"]["table"] for record in finished}
    found = [table1(finished)] if "table1" in present else []
    if "table2" in present:
        found += [table2(finished), sizes_table(finished)]
    if "table3" in present:
        found += [table3(finished), protocols_table(finished, epochs_of(records)), times_table(finished)]
        found += [table for table in [seeds_table(finished)] if table.rows]
    return found


def print_tables(directory: Path) -> None:
    """Print the tables of a directory."""
    for table in tables_of(directory):
        print_table(table)


def print_table(table: Table) -> None:
    """Print a table, as wide as it needs to be."""
    from rich.console import Console

    # Figures that are cut off are worse than a line that wraps, also where there is no terminal at all.
    needed = Console(width=1000).measure(table.rich()).maximum
    Console(width=max(Console().width, needed)).print(table.rich())


def pictures_of(directory: Path) -> dict[str, bytes]:
    """The pictures for which a directory has records, as PNG, by the names of their files."""
    records = Records(directory)
    finished, epochs = results_of(records), epochs_of(records)
    figures = {
        "curves.png": learning_curves(finished, epochs),
        "sizes.png": error_against_size(finished),
        "examples.png": example_outputs(finished),
        "accuracy.png": accuracy_curves(finished, epochs),
    }
    return {name: png(figure) for name, figure in figures.items() if figure is not None}


def write_report(directory: Path) -> list[Path]:
    """Write `report.md`, `report.html` and their pictures; the files written."""
    check_extra("report")
    directory = Path(directory)
    finished = results_of(Records(directory))
    if not finished:
        raise DataError(
            f"{directory} has no finished cell to report.\nName a directory that table1, table2 or table3 has "
            "written with --out."
        )
    pictures = pictures_of(directory)
    tables = tables_of(directory)
    about, title = _about(finished), _title(finished)
    markdown = [f"# {title}", *(table.markdown() for table in tables)]
    markdown += [f"## {CAPTIONS[name]}\n\n![{CAPTIONS[name]}]({name})" for name in pictures]
    markdown.append("## Circumstances\n\n" + "\n".join(f"- {line}" for line in about))
    page = Page(title)
    for table in tables:
        page.table(table)
    for name, content in pictures.items():
        page.heading(CAPTIONS[name])
        page.picture(content, CAPTIONS[name])
    page.heading("Circumstances")
    page.items(about)
    contents = {**pictures, "report.md": ("\n\n".join(markdown) + "\n").encode(), "report.html": page.html().encode()}
    try:
        files.write_files({directory / name: content for name, content in contents.items()})
    except OSError as reason:
        raise _refusal(reason) from reason
    return [directory / name for name in contents]


def check_report(directory: Path) -> None:
    """Refuse a directory in which records or report cannot be written, before hours are spent on what goes there."""
    for path in (Records(directory).path, *(directory / name for name in (*CAPTIONS, "report.md", "report.html"))):
        try:
            files.check(path)
        except OSError as reason:
            raise _refusal(reason) from reason


def _title(finished: list[dict[str, Any]]) -> str:
    """The title, with what the experiments are about."""
    graphs = {record["config"]["table"] == "table3" for record in finished}
    subjects = {(False,): "the synthetic experiments", (True,): "graph classification"}
    return f"{TITLE}: {subjects.get(tuple(graphs), 'the experiments')}"


def _about(finished: list[dict[str, Any]]) -> list[str]:
    """What ran, where, with what, and for how long."""
    lines = [f"{len(finished)} cells, {sum(record['seconds'] for record in finished):.0f} s of training"]
    for name in ("versions", "machine"):
        kinds = sorted({", ".join(f"{key} {value}" for key, value in record[name].items()) for record in finished})
        lines += [f"{name}: {kind}" for kind in kinds]
    commits = sorted({commit for record in finished if isinstance(commit := record.get("commit"), str)})
    return [*lines, *(f"commit: {commit}" for commit in commits)]


def _refusal(reason: OSError) -> DataError:
    return DataError(f"{reason.filename} cannot be written: {files.words(reason)}")
