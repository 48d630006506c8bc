"""The page, joined of its parts: a frame of HTML, its style, and scripts of one idea each.

The scripts share one scope and are put into one function, in order. Those that count and compute know no document, so
that they run without a browser too; tests compare them with the library.
"""

from html import escape
from importlib.resources import files

from bellnet.spec import Spec, parse_spec

EXAMPLE = "n n -> n n"

LIBRARY = (
    "python",
    "spec",
    "parse",
    "doubts",
    "partitions",
    "count",
    "diagram",
    "words",
    "plan",
    "show",
    "tensors",
    "entries",
)
"""What the library does, without a document."""

PAGE = ("elements", "strands", "matrices", "cells", "gallery", "chosen", "asked", "start")
"""What is seen."""


def page(spec: str | Spec = EXAMPLE) -> str:
    """The whole page as HTML, which begins with this spec."""
    parts = {
        "spec": escape(str(parse_spec(spec)), quote=True),
        "style": _read("look.css"),
        "theme": _read("js/theme.js"),
        "script": _function(*(_script(name) for name in (*LIBRARY, *PAGE))),
    }
    whole = _read("frame.html")
    for name, part in parts.items():
        whole = whole.replace(f"@@{name}@@", part)
    return whole


def library(*names: str) -> str:
    """The scripts without a document, as an expression whose value has these functions."""
    return _function(*map(_script, LIBRARY), f"return {{ {', '.join(names)} }};\n")


def _function(*scripts: str) -> str:
    return "\n".join(('(() => {\n"use strict";\n', *scripts, "})()"))


def _script(name: str) -> str:
    return _read(f"js/{name}.js")


def _read(name: str) -> str:
    return files("bellnet.explorer").joinpath(name).read_text(encoding="utf-8")
