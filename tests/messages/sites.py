"""The raise statements of the library, found in its source code."""

import ast
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import NamedTuple

import bellnet

LIBRARY = Path(bellnet.__file__).parent
CHECKED = ("combinatorics.py", "spec", "plan", "tensors", "backends", "nn", "data", "testing", "_utils/optional.py")
TESTED_ELSEWHERE = ("data/generated.py", "data/tu/cache.py", "testing/strategies.py")
"""Files whose errors have tests beside those of their functions."""


class Site(NamedTuple):
    """A raise statement: its file, its first line and its last."""

    file: str
    first: int
    last: int


def raise_sites(file: Path, root: Path = LIBRARY) -> list[Site]:
    """The raise statements of a file, except those that raise the same error again."""
    name = file.relative_to(root).as_posix()
    return [
        Site(name, node.lineno, node.end_lineno or node.lineno)
        for node in ast.walk(ast.parse(file.read_text()))
        if isinstance(node, ast.Raise) and node.exc is not None
    ]


def checked_sites() -> list[Site]:
    """The raise statements that a case must reach."""
    found = []
    for part in CHECKED:
        path = LIBRARY / part
        for file in sorted(path.rglob("*.py")) if path.is_dir() else [path]:
            found += raise_sites(file)
    return [site for site in found if site.file not in TESTED_ELSEWHERE]


def names_raised(*files: Path) -> set[str]:
    """The classes of errors that are created in files."""
    nodes = [node for file in files for node in ast.walk(ast.parse(file.read_text())) if isinstance(node, ast.Call)]
    names = {node.func.id for node in nodes if isinstance(node.func, ast.Name)}
    return {name for name in names if name.endswith("Error")}


def site_of(traceback: TracebackType | None, sites: Sequence[Site]) -> Site | None:
    """The raise statement at which an error left the library."""
    found = None
    while traceback is not None:
        file = Path(traceback.tb_frame.f_code.co_filename)
        if file.is_relative_to(LIBRARY):
            name = file.relative_to(LIBRARY).as_posix()
            here = [s for s in sites if s.file == name and s.first <= traceback.tb_lineno <= s.last]
            found = here[0] if here else found
        traceback = traceback.tb_next
    return found
