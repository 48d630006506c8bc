"""A page: words, tables and pictures in one HTML file that needs no other."""

import base64
import io
import re
from collections.abc import Sequence
from html import escape
from typing import TYPE_CHECKING

from experiments.tables import Table

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
