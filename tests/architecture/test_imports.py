"""The library follows the import rules, and planted violations are found."""

import ast
import importlib
import subprocess
import sys
from pathlib import Path

import pytest

import bellnet
import experiments
from tests.architecture.rules import PARTS, imports, violations, violations_of_experiments

LIBRARY = Path(bellnet.__file__).parent
EXPERIMENTS = Path(experiments.__file__).parent


def test_imports_go_downwards_and_heavy_packages_are_imported_late():
    assert violations(LIBRARY) == []


def test_experiments_import_public_names_and_optional_packages_late():
    assert violations_of_experiments(LIBRARY, EXPERIMENTS) == []


@pytest.mark.parametrize(
    ("code", "n_found"),
    [
        ("from bellnet.backends import run", 1),
        ("from bellnet.data.encoding import Encoding", 1),
        ("import lightning", 1),
        ("def f():\n    import scipy", 1),
        ("from bellnet import plan, data\nfrom bellnet.data import Graph\nfrom experiments.run import run_cells", 0),
        ("def f():\n    import lightning", 0),
    ],
)
def test_planted_violation_in_the_experiments_is_found(tmp_path, code, n_found):
    (tmp_path / "train.py").write_text(code)
    assert len(violations_of_experiments(LIBRARY, tmp_path)) == n_found


def test_imports_of_the_library_are_read():
    read = list(imports(LIBRARY))
    seen = {(found.part, found.module.split(".")[1]) for found in read if found.module.startswith("bellnet.")}
    assert {("nn", "backends"), ("backends", "plan"), ("plan", "spec"), ("spec", "combinatorics")} <= seen
    assert all(not found.late for found in read if found.file == "nn/linear.py")


PLANTED = {
    "combinatorics uses a part": ("combinatorics.py", "from bellnet.errors import SpecError"),
    "combinatorics uses torch late": ("combinatorics.py", "def f():\n    import torch"),
    "files use a part": ("files.py", "from bellnet.errors import DataError"),
    "files use torch late": ("files.py", "def f():\n    import torch"),
    "spec looks up": ("spec/parser.py", "from bellnet.plan import plan"),
    "plan uses torch": ("plan/cost.py", "import torch"),
    "plan uses torch for types": (
        "plan/cost.py",
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from torch import Tensor",
    ),
    "plan uses numpy late": ("plan/diagram.py", "class A:\n    def f(self):\n        import numpy as np"),
    "tensors look up": ("tensors/padded.py", "import bellnet.nn.linear"),
    "backends looks up late": ("backends/dense_layout.py", "def f():\n    from bellnet.nn import InvariantPool"),
    "backends looks up by a relative import": ("backends/dense_layout.py", "from ..nn.linear import EquivariantLinear"),
    "backends looks up to a part by name": ("backends/dense_layout.py", "from bellnet import nn"),
    "backends uses numpy": ("backends/torch_backend.py", "import numpy"),
    "layouts know each other": ("backends/sparse_layout.py", "from bellnet.backends.dense_layout import Dense"),
    "layouts know each other by module": ("backends/sparse_layout.py", "from bellnet.backends import dense_layout"),
    "layers run the oracle": ("nn/linear.py", "from bellnet.backends.reference import apply"),
    "layers use the package that they are in": ("nn/linear.py", "from bellnet import Padded"),
    "layers use checks": ("nn/linear.py", "from bellnet.testing import assert_equivariant"),
    "layers use hypothesis late": ("nn/linear.py", "def f():\n    import hypothesis"),
    "data knows layers": ("data/batch.py", "from bellnet.nn import EquivariantLinear"),
    "checks use hypothesis at once": ("testing/padding.py", "import hypothesis"),
    "drawing uses matplotlib at once": ("draw/matrices.py", "import matplotlib.pyplot as plt"),
    "drawing uses layers": ("draw/matrices.py", "from bellnet.nn import EquivariantLinear"),
    "the command line reaches into a part": ("cli.py", "from bellnet.plan.plan import plan"),
    "the command line reaches into a file": ("cli.py", "def f():\n    from bellnet.draw.save import save_figures"),
    "the library uses experiments": ("nn/linear.py", "def f():\n    import experiments"),
    "the package uses the command line": ("__init__.py", "from bellnet import cli"),
    "a part that has no place": ("helpers.py", "import os"),
    "an unknown package": ("nn/linear.py", "import scipy"),
}

FINE = {
    "locks use filelock late": ("_utils/files.py", "def f():\n    from filelock import FileLock"),
    "spec uses what is below": ("spec/parser.py", "from bellnet.combinatorics import canonical"),
    "a part uses itself": ("nn/linear.py", "from bellnet.nn.pool import InvariantPool\nfrom . import pool"),
    "layers use what is below": ("nn/linear.py", "import torch\nfrom bellnet.plan.diagram import representative"),
    "drawing uses matplotlib late": ("draw/matrices.py", "def f():\n    import matplotlib.pyplot as plt"),
    "drawing uses matplotlib for types": (
        "draw/matrices.py",
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import matplotlib",
    ),
    "the file made for hypothesis": ("testing/strategies.py", "import hypothesis"),
    "the command line uses public names": ("cli.py", "from bellnet import plan, __version__\nimport bellnet as bn"),
    "a layout uses indices": ("backends/sparse_layout.py", "from bellnet.backends.projections import Incidence"),
}


def _plant(tmp_path, file, code):
    """A library of empty parts with one file that has this code."""
    root = tmp_path / "bellnet"
    files = ("nn/linear", "nn/pool", "plan/plan", "backends/dense_layout", "backends/projections", "backends/reference")
    for part in (*PARTS, *files):
        is_file = part in ("errors", "combinatorics", "tensors", "cli", *files) or part.startswith("__")
        path = root / f"{part}.py" if is_file else root / part / "__init__.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("")
    (root / "__init__.py").write_text("from bellnet.plan import plan\n")
    target = root / file
    target.parent.mkdir(exist_ok=True)
    target.write_text(code + "\n")
    return root


@pytest.mark.parametrize("name", PLANTED)
def test_planted_violation_is_reported_with_its_file(tmp_path, name):
    file, code = PLANTED[name]
    found = violations(_plant(tmp_path, file, code))
    assert len(found) >= 1
    assert all(words.startswith(f"{file}:") for words in found)


@pytest.mark.parametrize("name", FINE)
def test_allowed_imports_are_not_reported(tmp_path, name):
    assert violations(_plant(tmp_path, *FINE[name])) == []


PROGRAM = """
import sys

def packages():
    return {name.split(".")[0] for name in sys.modules} - {"bellnet"} - sys.stdlib_module_names

at_first = packages()
from bellnet import bell, errors, plan, Plan, Spec
print("without torch:", plan("n n -> n n").n_maps, *sorted(packages() - at_first))

import torch
before = packages()
from bellnet import *
print("beside torch:", *sorted(packages() - before))

for name in ("EquivariantLinear", "Sparse", "data", "nn", "plan"):
    for module in [module for module in sys.modules if module.partition(".")[0] == "bellnet"]:
        del sys.modules[module]
    import bellnet
    first = getattr(bellnet, name)
    assert first is getattr(bellnet, name)
    scope = {}
    exec(f"from bellnet import {name}", scope)
    assert scope[name] is first
    import bellnet.nn.linear
    import bellnet.plan.diagram
    print(f"{name} first:", type(bellnet.plan).__name__, type(bellnet.data).__name__)
"""


@pytest.fixture(scope="module")
def imported():
    """The output of a new interpreter that imports the library in several ways, one for all tests."""
    finished = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True)
    return dict(line.split(":") for line in finished.stdout.splitlines())


def test_plans_are_made_without_torch_or_other_packages(imported):
    assert imported["without torch"].split() == ["15"]


def test_the_library_imports_no_package_that_torch_does_not(imported):
    assert imported["beside torch"].split() == []


@pytest.mark.parametrize("name", ["EquivariantLinear", "Sparse", "data", "nn", "plan"])
def test_names_of_the_package_do_not_depend_on_the_order_of_access(imported, name):
    assert imported[f"{name} first"].split() == ["function", "module"]


def test_package_has_the_names_of_all_and_no_others():
    assert len(set(bellnet.__all__)) == len(bellnet.__all__)
    assert all(hasattr(bellnet, name) for name in bellnet.__all__)
    tree = ast.parse((LIBRARY / "__init__.py").read_text())
    made = {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.ClassDef)}
    assert made == {"__getattr__", "__dir__"}


def test_lazy_names_are_those_for_type_checkers():
    tree = ast.parse((LIBRARY / "__init__.py").read_text())
    typed = {
        alias.name: node.module
        for block in tree.body
        if isinstance(block, ast.If)
        for node in block.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    at_once = {alias.name for node in tree.body if isinstance(node, ast.ImportFrom) for alias in node.names}
    assert {*typed} == {*bellnet.__all__} - at_once
    for name, module in typed.items():
        assert getattr(bellnet, name) is getattr(importlib.import_module(module), name)


def test_missing_name_raises_the_attribute_error_of_python():
    assert {*bellnet.__all__, "__version__", "nn"} <= {*dir(bellnet)}
    with pytest.raises(AttributeError, match=r"^module 'bellnet' has no attribute 'Paded'$") as caught:
        bellnet.Paded  # noqa: B018
    assert (caught.value.name, caught.value.obj) == ("Paded", bellnet)
