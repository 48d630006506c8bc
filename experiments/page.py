"""Tables and pages: printed, as Markdown, and as HTML in one file."""

import base64
import io
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING

from bellnet._utils import files
from bellnet.errors import DataError

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from rich.table import Table as RichTable

MISSING = "-"
COLOURS = {"better": "green", "worse": "red", "✓": "green", "✗": "red"}
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
th, td { padding: .28rem .8rem; text-align: right; border-bottom: 1px solid var(--rule); white-space: nowrap }
th { color: var(--soft); font-weight: 600 }
td.word, th.word { text-align: left }
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


@dataclass(frozen=True)
class Table:
    """A table: its title, its head, its rows, notes below it; the first `left` columns are text."""

    title: str
    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    notes: tuple[str, ...] = ()
    left: int = 1

    def markdown(self) -> str:
        """As Markdown."""
        lines = [self.head, tuple("---" for _ in self.head), *self.rows]
        table = "\n".join(f"| {' | '.join(line)} |" for line in lines)
        return "\n\n".join([f"## {self.title}", table, *self.notes])

    def html(self, level: int = 2) -> str:
        """As HTML, with the title as a heading of that level."""

        def row(cells: tuple[str, ...], tag: str) -> str:
            classes = ["word" if column < self.left else cell for column, cell in enumerate(cells)]
            both = zip(classes, cells, strict=True)
            return "<tr>" + "".join(f'<{tag} class="{escape(c)}">{escape(cell)}</{tag}>' for c, cell in both) + "</tr>"

        rows = "\n".join([row(self.head, "th"), *(row(cells, "td") for cells in self.rows)])
        notes = "".join(f'<p class="note">{escape(note)}</p>' for note in self.notes)
        title = f"<h{level}>{escape(self.title)}</h{level}>"
        return f'{title}\n<div class="wide"><table>\n{rows}\n</table></div>\n{notes}'

    def rich(self) -> "RichTable":
        """As rich prints it."""
        from rich.table import Table as RichTable

        table = RichTable(title=self.title, caption="\n".join(self.notes) or None)
        for column, name in enumerate(self.head):
            table.add_column(name, justify="left" if column < self.left else "right")
        for row in self.rows:
            table.add_row(*(f"[{COLOURS[cell]}]{cell}[/]" if cell in COLOURS else cell for cell in row))
        return table


def print_table(table: Table) -> None:
    """Print a table as wide as it needs to be: lines are wrapped rather than figures cut off."""
    from rich.console import Console

    needed = Console(width=1000).measure(table.rich()).maximum
    Console(width=max(Console().width, needed)).print(table.rich())


class Page:
    """A page, written from top to bottom.

    Args:
        title: Its heading.
        lead: Its subject, in a sentence or two.
    """

    def __init__(self, title: str, lead: str = "") -> None:
        self.title = title
        self._html, self._markdown = [f"<h1>{escape(title)}</h1>"], [f"# {title}"]
        self._files: dict[str, bytes] = {}
        if lead:
            self._add(f'<p class="lead">{_inline(lead)}</p>', lead)

    def _add(self, html: str, markdown: str) -> None:
        self._html.append(html)
        self._markdown.append(markdown)

    def heading(self, text: str) -> None:
        """Begins a section."""
        self._add(f"<h2>{escape(text)}</h2>", f"## {text}")

    def words(self, text: str) -> None:
        """A paragraph; text between backticks is code."""
        self._add(f"<p>{_inline(text)}</p>", text)

    def listing(self, text: str) -> None:
        """Text in the monospace type."""
        self._add(f"<pre>{escape(text)}</pre>", f"```\n{text}\n```")

    def items(self, lines: Sequence[str]) -> None:
        """A list."""
        self._add(
            f"<ul>{''.join(f'<li>{escape(line)}</li>' for line in lines)}</ul>",
            "\n".join(f"- {line}" for line in lines),
        )

    def table(self, table: Table, *, level: int = 2) -> None:
        """A table with its notes; its title is a heading, of level 3 inside a section."""
        self._add(table.html(level), table.markdown())

    def picture(self, picture: "Figure | bytes", words: str, *, file: str = "") -> None:
        """A figure, or a PNG; its alternative text; the name of its file beside the page, if it has one."""
        content = picture if isinstance(picture, bytes) else png(picture)
        source = f"data:image/png;base64,{base64.b64encode(content).decode()}"
        self._add(f'<figure><img alt="{escape(words)}" src="{source}"></figure>', f"![{words}]({file})")
        if file:
            self._files[file] = content

    def html(self) -> str:
        """The page as HTML, with its pictures inside."""
        size = '<meta name="viewport" content="width=device-width, initial-scale=1">'
        head = f'<meta charset="utf-8">{size}<title>{escape(self.title)}</title><style>{STYLE}</style>'
        body = "\n".join(self._html)
        return f'<!doctype html>\n<html lang="en"><head>{head}</head><body>\n{body}\n</body></html>\n'

    def write(self, directory: Path, more: Mapping[str, bytes] | None = None) -> list[Path]:
        """Write `report.md`, `report.html`, their pictures and more files, all or none; returns their paths."""
        markdown = ("\n\n".join(self._markdown) + "\n").encode()
        contents = {**self._files, "report.md": markdown, "report.html": self.html().encode(), **(more or {})}
        try:
            files.write_files({directory / name: content for name, content in contents.items()})
        except OSError as reason:
            raise refusal(reason) from reason
        return [directory / name for name in contents]


def _inline(text: str) -> str:
    return re.sub("`([^`]*)`", r"<code>\1</code>", escape(text, quote=False))


def png(figure: "Figure") -> bytes:
    """The picture of a figure, as PNG; the same figure gives the same bytes."""
    content = io.BytesIO()
    figure.savefig(content, format="png", dpi=150, metadata={"Software": "bellnet"})
    return content.getvalue()


def refusal(reason: OSError) -> DataError:
    """That a file cannot be written."""
    return DataError(f"{reason.filename} cannot be written: {files.words(reason)}")
