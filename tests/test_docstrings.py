"""The examples in docstrings, in the README and on the pages run."""

import doctest
import importlib
import pkgutil
import re
from pathlib import Path

import pytest
import torch

import bellnet
import experiments
from bellnet.data import GraphSet, generated

README = Path(__file__).parents[1] / "README.md"
PACKAGES = (bellnet, experiments)
MODULES = ["bellnet"]
MODULES += [module.name for each in PACKAGES for module in pkgutil.walk_packages(each.__path__, f"{each.__name__}.")]
MODULES = [name for name in MODULES if not name.endswith("__main__")]


def _examples(name):
    module = importlib.import_module(name)
    finder = doctest.DocTestFinder(exclude_empty=True)
    return [test for test in finder.find(module, name, extraglobs={"torch": torch, "bn": bellnet}) if test.examples]


@pytest.mark.parametrize("name", MODULES)
def test_docstring_examples_of_a_module_pass(name):
    runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE)
    report = []
    for test in _examples(name):
        runner.run(test, out=report.append)
    assert runner.summarize(verbose=False).failed == 0, "".join(report)


def test_main_classes_and_functions_have_examples():
    documented = {test.name.removeprefix(name + ".") for name in MODULES for test in _examples(name)}
    assert {"EquivariantLinear", "InvariantPool", "change_basis", "plan", "Padded", "Spec", "bell"} <= documented


def test_wrong_example_is_found():
    test = doctest.DocTestParser().get_doctest(">>> 1 + 1\n3\n", {}, "planted", None, 0)
    assert doctest.DocTestRunner(verbose=False).run(test, out=lambda text: None).failed == 1


def python_blocks(text):
    """The Python blocks of a markdown page."""
    return re.findall(r"^```(?:python|py)\n(.*?)^```", text, re.MULTILINE | re.DOTALL)


def test_only_python_blocks_are_found():
    page = "text\n```python\na = 1\n```\n```\nnot python\n```\n```bash\nls\n```\n```py\nb = a\n```\n"
    assert python_blocks(page) == ["a = 1\n", "b = a\n"]


@pytest.mark.filterwarnings("ignore:.*LeafSpec:FutureWarning")  # raised inside Lightning
@pytest.mark.parametrize("page", [README, *sorted((README.parent / "docs").glob("*.md"))], ids=lambda page: page.name)
def test_python_blocks_of_a_page_run(page, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # a page may write files
    # Generated graphs instead of downloaded data sets.
    stand_in = GraphSet("MUTAG", *generated.leaf_pairs(40), classes=(0, 1))
    monkeypatch.setattr("bellnet.data.tu.load", lambda name: stand_in)
    namespace: dict[str, object] = {}
    for block in python_blocks(page.read_text()):
        exec(compile(block, page.name, "exec"), namespace)


def test_pages_have_python_blocks():
    assert python_blocks(README.read_text())
    assert python_blocks((README.parent / "docs" / "layers.md").read_text())


def test_each_of_the_five_tasks_takes_at_most_ten_lines():
    blocks = python_blocks((README.parent / "docs" / "tasks.md").read_text())
    assert len(blocks) == 5
    assert max(sum(bool(line) for line in block.splitlines()) for block in blocks) <= 10  # without blank lines
