"""The functions, tests and commands on the page Paper to code exist."""

import re
from importlib import import_module

import pytest

from bellnet.cli import main as cli
from experiments import __main__ as experiments
from tests.docs.reference import DOCS

PAGE = DOCS / "paper.md"
ROOT = DOCS.parent
PARSERS = {"bellnet": cli.build_parser(), "python -m experiments": experiments.build_parser()}


def problem_of(code):
    """An error message for a name on the page; empty if it exists or is not a name."""
    for program, parser in PARSERS.items():
        if code.startswith(f"{program} "):
            (choices,) = (action.choices for action in parser._actions if action.choices)
            return "" if code.removeprefix(program).split()[0] in choices else "no such command"
    if code.startswith("tests/"):
        path, _, name = code.partition("::")
        if not (ROOT / path).is_file():
            return "no such file"
        found = not name or re.search(rf"^def {name}\(", (ROOT / path).read_text(), re.MULTILINE)
        return "" if found else "no such test"
    if re.fullmatch(r"(bellnet|experiments)(\.\w+)+", code):
        module, _, name = code.rpartition(".")
        return "" if hasattr(import_module(module), name) else "no such name"
    return ""


def test_every_function_test_and_command_on_the_page_exists():
    named = re.findall(r"`([^`]+)`", PAGE.read_text(encoding="utf-8"))
    assert [(code, problem) for code in named if (problem := problem_of(code))] == []
    assert sum(code.startswith("tests/") for code in named) > 30


@pytest.mark.parametrize(
    ("planted", "problem"),
    [
        ("bellnet table1", "no such command"),
        ("python -m experiments table4", "no such command"),
        ("tests/paper/test_gone.py", "no such file"),
        ("tests/paper/test_features_multiply_the_dimension.py::test_gone", "no such test"),
        ("experiments.data.synthetic.gone", "no such name"),
    ],
)
def test_missing_name_is_found(planted, problem):
    assert problem_of(planted) == problem


def test_every_numbered_statement_of_the_paper_has_a_row():
    text = PAGE.read_text(encoding="utf-8")
    firsts = " ; ".join(re.findall(r"^\| ([^|]+) \|", text, re.MULTILINE))
    spelled = re.sub(r"equations (\d+) and (\d+)", r"equation \1, equation \2", firsts)
    for kind, last in {"equation": 13, "Proposition": 3, "Theorem": 4, "Table": 3, "Figure": 1, "Corollary": 1}.items():
        assert [n for n in range(1, last + 1) if not re.search(rf"\b{kind} {n}(?!\d)", spelled)] == [], kind
