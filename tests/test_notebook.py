"""The notebook runs from top to bottom with the stored outputs."""

import ast
import contextlib
import io
import json
import re
from functools import cache
from pathlib import Path

import pytest

NOTEBOOK = Path(__file__).parents[1] / "examples" / "first_steps.ipynb"
CELLS = [cell for cell in json.loads(NOTEBOOK.read_text(encoding="utf-8"))["cells"] if cell["cell_type"] == "code"]


def run_cell(source, namespace):
    """Runs a cell; returns the printed text, and the value of the last line if that is an expression."""
    body, output, value = ast.parse(source).body, io.StringIO(), None
    last = body.pop() if isinstance(body[-1], ast.Expr) else None
    with contextlib.redirect_stdout(output):
        exec(compile(ast.Module(body, []), NOTEBOOK.name, "exec"), namespace)
        if last is not None:
            value = eval(compile(ast.Expression(last.value), NOTEBOOK.name, "eval"), namespace)
    return output.getvalue(), value


@cache
def run_all():
    namespace = {}
    return [run_cell("".join(cell["source"]), namespace) for cell in CELLS]


def stored(cell):
    """The stored output of a cell: the printed text, and the value by MIME type."""
    printed = "".join("".join(out["text"]) for out in cell["outputs"] if out["output_type"] == "stream")
    shown = [out["data"] for out in cell["outputs"] if out["output_type"] == "execute_result"]
    return printed, shown[0] if shown else {}


def masked(text):
    return re.sub(r"\d+%", "...%", text)


@pytest.mark.parametrize("index", range(len(CELLS)))
def test_cell_prints_and_shows_its_stored_output(index):
    (output, value), (stored_output, shown) = run_all()[index], stored(CELLS[index])
    assert masked(output) == masked(stored_output)
    if value is None:  # of print
        assert shown == {}
    else:
        assert repr(value) == "".join(shown["text/plain"])
        for kind, method in (("image/png", "_repr_png_"), ("text/html", "_repr_html_")):
            assert bool(getattr(value, method, lambda: None)()) == (kind in shown)


def test_classifier_is_accurate_on_test_graphs():
    (output,) = [output for output, _ in run_all() if "accuracy" in output]
    assert int(re.search(r"(\d+)%", output)[1]) >= 90


def test_notebook_was_saved_after_a_run_from_top_to_bottom():
    assert [cell["execution_count"] for cell in CELLS] == list(range(1, len(CELLS) + 1))
    assert {out["output_type"] for cell in CELLS for out in cell["outputs"]} == {"stream", "execute_result"}


def test_notebook_is_short():
    assert sum(len(cell["source"]) for cell in CELLS) < 50


def test_cell_without_a_last_expression_has_no_value():
    assert run_cell("x = 1\nprint(x)\ny = x", {}) == ("1\n", None)
    assert run_cell("x = 1\nx + 1", {}) == ("", 2)
