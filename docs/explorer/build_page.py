"""Builds the explorer's page: one HTML file with its style sheet and its scripts, which loads nothing.

`python docs/explorer/build_page.py` writes it into the package, as every installation does (`hatch_build.py`). The only
placeholder left in it is the spec in the input field, which `bellnet explore SPEC` fills in.

All scripts share one scope: they are concatenated in order inside one function. Those in LIBRARY use no DOM, so that
tests can run them without a browser and compare their results with the Python library.
"""

from pathlib import Path

SOURCES = Path(__file__).parent
BUILT_PAGE = Path("src/bellnet/explorer.html")
"""Where the page is written, relative to the root of the repository."""

LIBRARY = (
    "python_text",
    "spec",
    "parser",
    "lint",
    "set_partitions",
    "count_maps",
    "diagram",
    "diagram_words",
    "plan",
    "plan_table",
    "basis_matrix",
    "input_values",
)
"""Scripts that compute what the library computes, without a DOM."""

INTERFACE = ("dom", "diagram_svg", "matrix_svg", "tensor_grid", "map_gallery", "selected_map", "spec_form", "main")
"""Scripts that show it on the page and handle events."""


def write_page(root: Path) -> None:
    """Write the page into the package in the repository at `root`, unless it is there already."""
    path, page = root / BUILT_PAGE, build_page()
    # An equal page is not written again: another process may be reading it.
    if not path.exists() or path.read_text(encoding="utf-8") != page:
        path.write_text(page, encoding="utf-8")


def build_page() -> str:
    """The page, with the placeholder @@spec@@ in its input field."""
    parts = {
        "style": _read("page.css"),
        "theme": _read("js/theme.js"),
        "script": _wrap_scripts(*(_read_script(name) for name in (*LIBRARY, *INTERFACE))),
    }
    page = _read("page.html")
    for name, part in parts.items():
        page = page.replace(f"@@{name}@@", part)
    return page


def library_script(*names: str) -> str:
    """The scripts in LIBRARY as one JavaScript expression, whose value is an object with these functions."""
    return _wrap_scripts(*map(_read_script, LIBRARY), f"return {{ {', '.join(names)} }};\n")


def _wrap_scripts(*scripts: str) -> str:
    return "\n".join(('(() => {\n"use strict";\n', *scripts, "})()"))


def _read_script(name: str) -> str:
    return _read(f"js/{name}.js")


def _read(name: str) -> str:
    return (SOURCES / name).read_text(encoding="utf-8")


if __name__ == "__main__":
    write_page(SOURCES.parents[1])
