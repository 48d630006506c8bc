"""The report of a directory: tables and pictures, drawn from its records alone."""

import base64
import io
import re
from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from bellnet._utils import files
from bellnet.errors import DataError
from experiments.plots import accuracy_curves, error_against_size, example_outputs, learning_curves
from experiments.records import Records
from experiments.results import epochs_of, results_of
from experiments.run import check_extra
from experiments.table3 import protocols_table, seeds_table, table3, times_table
from experiments.tables import Table, sizes_table, table1, table2

if TYPE_CHECKING:
    from matplotlib.figure import Figure


STYLE = """
:root { color-scheme: light dark;
  --ink: #222; --soft: #666; --rule: #ddd; --card: #f6f7f9; --good: #00704e; --bad: #b03a00 }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e4e4e4; --soft: #a0a0a0; --rule: #3a3d42; --card: #22252a; --good: #4cc39a; --bad: #f08c5a }
  body { background: #17191c }
}
body { font: 16px/1.55 system-ui, sans-serif; max-width: 62rem; margin: 2rem auto; padding: 0 1rem; color: var(--ink) }
h1 { line-height: 1.2; margin-bottom: .4rem } h2 { margin: 2.4rem 0 .6rem; line-height: 1.25 }
h3 { margin: 1.6rem 0 .5rem; line-height: 1.3; font-size: 1.05rem }
p { max-width: 46rem }
.lead { font-size: 1.1rem; color: var(--soft); margin-top: 0 }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; font-size: .94rem }
th, td { padding: .28rem .8rem; text-align: right; border-bottom: 1px solid var(--rule) }
th { color: var(--soft); font-weight: 600 }
th:first-child, td:first-child { text-align: left }
td { white-space: nowrap } td.word, th.word { text-align: left }
td.better, td.✓ { color: var(--good) } td.worse, td.✗ { color: var(--bad) }
.wide { overflow-x: auto }
.note { font-size: .9rem; color: var(--soft); margin: .4rem 0 }
code { font-size: .92em; white-space: nowrap }
pre { background: var(--card); padding: .8rem 1rem; border-radius: 6px; overflow-x: auto; font-size: .88rem;
  line-height: 1.45 }
figure { margin: 1rem 0 }
img { max-width: 100%; background: #fff; border-radius: 6px }
li { overflow-wrap: anywhere }
@media (max-width: 40rem) { table { font-size: .8rem } th, td { padding: .25rem .35rem } }
"""


class Page:
    """One HTML file, written from top to bottom.

    Args:
        title: Its heading.
        lead: What it is about, in a sentence or two.
    """

    def __init__(self, title: str, lead: str = "") -> None:
        self.title = title
        self.parts = [f"<h1>{escape(title)}</h1>"]
        if lead:
            self.parts.append(f'<p class="lead">{_inline(lead)}</p>')

    def heading(self, words: str) -> None:
        """Begins a section."""
        self.parts.append(f"<h2>{escape(words)}</h2>")

    def words(self, text: str) -> None:
        """A paragraph; what stands between backticks is code."""
        self.parts.append(f"<p>{_inline(text)}</p>")

    def listing(self, text: str) -> None:
        """Text as it stands, in the monospace type."""
        self.parts.append(f"<pre>{escape(text)}</pre>")

    def items(self, lines: Sequence[str]) -> None:
        """A list."""
        self.parts.append(f"<ul>{''.join(f'<li>{escape(line)}</li>' for line in lines)}</ul>")

    def table(self, table: Table, *, level: int = 2) -> None:
        """A table with its notes; its title is a heading, of level 3 inside a section."""
        self.parts.append(table.html(level=level))

    def picture(self, picture: "Figure | bytes", words: str) -> None:
        """A figure, or a picture that is PNG already, and what it shows, for those who cannot see it."""
        content = picture if isinstance(picture, bytes) else png(picture)
        source = f"data:image/png;base64,{base64.b64encode(content).decode()}"
        self.parts.append(f'<figure><img alt="{escape(words)}" src="{source}"></figure>')

    def html(self) -> str:
        """The file."""
        size = '<meta name="viewport" content="width=device-width, initial-scale=1">'
        head = f'<meta charset="utf-8">{size}<title>{escape(self.title)}</title><style>{STYLE}</style>'
        body = "\n".join(self.parts)
        return f'<!doctype html>\n<html lang="en"><head>{head}</head><body>\n{body}\n</body></html>\n'


def _inline(text: str) -> str:
    return re.sub("`([^`]*)`", r"<code>\1</code>", escape(text, quote=False))


def png(figure: "Figure") -> bytes:
    """The picture of a figure; the same figure is the same bytes."""
    content = io.BytesIO()
    figure.savefig(content, format="png", dpi=150, metadata={"Software": "bellnet"})
    return content.getvalue()


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
    pictures = {name: (CAPTIONS[name], content) for name, content in pictures_of(directory).items()}
    return write_pages(directory, _title(finished), tables_of(directory), pictures, about=_about(finished))


def write_pages(
    directory: Path,
    title: str,
    tables: Sequence[Table],
    pictures: Mapping[str, tuple[str, bytes]],
    *,
    about: Sequence[str],
    text: Mapping[str, Sequence[str]] = MappingProxyType({}),
    more: Mapping[str, bytes] = MappingProxyType({}),
) -> list[Path]:
    """Write `report.md`, `report.html` and other files together; the files written.

    Args:
        directory: Where they go.
        title: The heading of both.
        tables: Come first.
        pictures: By the names of their files, with captions; PNG.
        about: The circumstances, a list at the end.
        text: Sections of paragraphs before these, by their headings.
        more: Other files, by name.
    """
    markdown = [f"# {title}", *(table.markdown() for table in tables)]
    page = Page(title)
    for table in tables:
        page.table(table)
    for name, (caption, content) in pictures.items():
        markdown.append(f"## {caption}\n\n![{caption}]({name})")
        page.heading(caption)
        page.picture(content, caption)
    for heading, paragraphs in text.items():
        markdown += [f"## {heading}", *paragraphs]
        page.heading(heading)
        for words in paragraphs:
            page.words(words)
    markdown.append("## Circumstances\n\n" + "\n".join(f"- {line}" for line in about))
    page.heading("Circumstances")
    page.items(about)
    contents = {name: content for name, (_, content) in pictures.items()}
    contents |= {"report.md": ("\n\n".join(markdown) + "\n").encode(), "report.html": page.html().encode(), **more}
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
