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


def names_raised(name: str | None = None) -> set[str]:
    """The classes of errors that a file creates; by default of all files but those that raise errors of the system."""
    found = set()
    apart = [
        LIBRARY / "_utils" / "files.py",
        LIBRARY / "kernels" / "__init__.py",
        LIBRARY / "kernels" / "calling.py",
        LIBRARY / "__init__.py",
    ]
    files = [file for file in LIBRARY.rglob("*.py") if file not in apart] if name is None else [LIBRARY / name]
    for file in files:
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id.endswith("Error"):
                found.add(node.func.id)
    return found


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
