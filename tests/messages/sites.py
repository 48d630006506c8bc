"""Where errors are raised: every `raise` of the library, found by reading its source."""

import ast
from pathlib import Path
from types import TracebackType
from typing import NamedTuple

import bellnet

LIBRARY = Path(bellnet.__file__).parent
CORE = ("combinatorics.py", "spec", "plan", "tensors", "backends", "nn", "_utils/optional.py")


class Site(NamedTuple):
    """A raise statement: its file, its first line and its last."""

    file: str
    first: int
    last: int


def raise_sites(file: Path, root: Path = LIBRARY) -> list[Site]:
    """The raise statements of a file that make an error; one that only hands an error on makes none."""
    name = file.relative_to(root).as_posix()
    return [
        Site(name, node.lineno, node.end_lineno or node.lineno)
        for node in ast.walk(ast.parse(file.read_text()))
        if isinstance(node, ast.Raise) and node.exc is not None
    ]


def core_sites() -> list[Site]:
    """The raise statements of the core, file by file."""
    found = []
    for part in CORE:
        path = LIBRARY / part
        for file in sorted(path.rglob("*.py")) if path.is_dir() else [path]:
            found += raise_sites(file)
    return found


def names_raised(name: str | None = None) -> set[str]:
    """All class names that are called in a file and end in Error; without one, anywhere but in four modules.

    The module of files reports what the system says of a file, and its callers add what it means; those of kernels
    what it says of a library and of memory. The package itself raises AttributeError for a missing name.
    """
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


def site_of(traceback: TracebackType | None, sites: list[Site]) -> Site | None:
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
