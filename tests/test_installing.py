"""The README describes the extras and the version that the package declares."""

import re
import subprocess
import sys
import tomllib
from pathlib import Path

from tests.test_docstrings import python_blocks

ROOT = Path(__file__).parents[1]
FOR_DEVELOPERS = {"test", "lint", "docs", "dist", "dev"}


def _section(page, title):
    """A section of a page."""
    found = re.search(rf"^## {title}\n(.*?)(?=^## |\Z)", page.read_text(), re.MULTILINE | re.DOTALL)
    assert found, title
    return found[1]


def test_readme_lists_the_extras_with_their_packages():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    declared = {
        extra: {name for package in packages for name in re.findall(r"[\w-]+", re.split(r"[><]", package)[0])}
        - {"bellnet"}
        for extra, packages in project["optional-dependencies"].items()
        if extra not in FOR_DEVELOPERS
    }
    rows = re.findall(r"^\| `(\w+)` \| ([^|]*) \|", _section(ROOT / "README.md", "Install"), re.MULTILINE)
    assert {extra: set(re.findall(r"[\w-]+", brings)) - {"and"} for extra, brings in rows} == declared


def test_readme_installs_the_current_version():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    wheel = f"bellnet-{project['version']}-py3-none-manylinux2014_x86_64.manylinux_2_17_x86_64.whl"
    assert wheel in _section(ROOT / "README.md", "Install")


def test_import_without_numpy_shows_no_warning():
    program = """
import sys

sys.modules["numpy"] = None  # as if it were not installed
import bellnet as bn

layer = bn.EquivariantLinear("n n -> n n", 1, 2)
import torch

print(*layer(torch.ones(1, 3, 3, 1)).shape)
"""
    finished = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=300)
    assert (finished.returncode, finished.stdout, finished.stderr) == (0, "1 3 3 2\n", "")


def test_drawing_is_documented_with_an_example():
    code = "".join(python_blocks(_section(ROOT / "docs" / "diagrams.md", "Pictures")))
    for name in ("draw_basis", "draw_diagrams", "save_figures"):
        assert f"{name}(" in code
