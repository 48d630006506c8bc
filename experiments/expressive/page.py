"""The report of what networks tell apart: a page that needs no other file, its Markdown, its picture and its record."""

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from bellnet import files
from bellnet.errors import DataError
from experiments.expressive.networks import Model
from experiments.expressive.picture import confused
from experiments.expressive.show import learned_table, told_table
from experiments.expressive.skip_links import Learned
from experiments.expressive.suite import Row
from experiments.expressive.telling import DRAWS
from experiments.machine import circumstances
from experiments.page import Page, png

TITLE = "What networks can tell apart"
PICTURE, RECORD = "confused.png", "record.json"
NAMES = ("report.md", "report.html", PICTURE, RECORD)
CAPTION = "Two graphs that order 2 confuses: the numbers that networks give their nodes, and equal ones in one colour"
CRITERION = (
    f"Two graphs are told apart if one of {DRAWS} networks with random weights gives them different numbers. Networks "
    "run in float64 on whole numbers: weights are whole, sums are not divided, the activation is the cube, and after "
    "every layer the remainder by a prime is taken. All numbers stay below 2^53, so nothing is rounded. Every graph is "
    "also renumbered at random, and has to get exactly the same numbers; if not, the run ends with an error. So "
    "no network is credited with its own rounding, and differences that means would make faint count as well.",
    "A network has a layer for every round that colour refinement takes on its graphs, and two more.",
    "A difference of remainders proves that the network with these weights and the activation x^3 tells the graphs "
    "apart. That none is found proves nothing by itself; it agrees with theory, which is computed for every pair: "
    "colour refinement (1-WL) and its folklore forms on pairs and on triples (2-FWL, 3-FWL), with whole numbers "
    "for colours.",
)


def write(
    directory: Path, rows: Sequence[Row], asked: Sequence[Model], learned: Sequence[Learned], *, setup: dict[str, Any]
) -> list[Path]:
    """Write the report; the files written."""
    tables = [told_table(rows, asked), *([learned_table(learned)] if learned else [])]
    picture = png(confused(seed=setup["seed"]))
    about = [*(f"{key}: {value}" for key, value in setup.items()), *_about()]
    markdown = [f"# {TITLE}", *(table.markdown() for table in tables), f"## {CAPTION}\n\n![{CAPTION}]({PICTURE})"]
    markdown += ["## The criterion", *CRITERION, "## Circumstances\n\n" + "\n".join(f"- {line}" for line in about)]
    page = Page(TITLE)
    for table in tables:
        page.table(table)
    page.heading(CAPTION)
    page.picture(picture, CAPTION)
    page.heading("The criterion")
    for words in CRITERION:
        page.words(words)
    page.heading("Circumstances")
    page.items(about)
    record = {
        **setup,
        "rows": [asdict(row) for row in rows],
        "learned": [asdict(one) for one in learned],
        **circumstances(),
    }
    contents: tuple[str | bytes, ...] = (
        "\n\n".join(markdown) + "\n",
        page.html(),
        picture,
        json.dumps(record, indent=1, ensure_ascii=False) + "\n",
    )
    written = {
        directory / name: content if isinstance(content, bytes) else content.encode()
        for name, content in zip(NAMES, contents, strict=True)
    }
    try:
        files.write_files(written)
    except OSError as reason:
        raise DataError(f"{reason.filename} cannot be written: {files.words(reason)}") from reason
    return list(written)


def _about() -> list[str]:
    found = circumstances()
    lines = [
        f"{name}: {', '.join(f'{key} {value}' for key, value in found[name].items())}"
        for name in ("versions", "machine")
    ]
    return [*lines, *([f"commit: {found['commit']}"] if found["commit"] else [])]
