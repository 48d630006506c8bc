"""What is installed from a wheel: the library, whole, with its types; and nothing else."""

import re
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from docs.explorer.build_page import build_page

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """The files of a wheel that is built now, by name."""
    where = tmp_path_factory.mktemp("dist")
    command = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(where)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    (path,) = where.glob("*.whl")
    with zipfile.ZipFile(path) as opened:
        return {name: opened.read(name) for name in opened.namelist()}


def test_the_wheel_holds_the_files_of_the_library_and_no_others(wheel):
    source = ROOT / "src"
    expected = {path.relative_to(source).as_posix() for path in source.rglob("*") if path.is_file()}
    expected = {name for name in expected if "__pycache__" not in name and not name.startswith(".")}
    assert {name for name in wheel if ".dist-info/" not in name} == expected


def test_the_wheel_contains_the_page_of_the_explorer_and_not_its_sources(wheel):
    assert wheel["bellnet/explorer.html"].decode() == build_page()
    assert not [name for name in wheel if name.endswith((".js", ".css")) or "build_page" in name]


def test_types_ship_and_records_of_experiments_do_not(wheel):
    assert "bellnet/py.typed" in wheel
    assert not [name for name in wheel if name.endswith((".jsonl", ".csv", ".zip", ".pt"))]


def test_torch_is_all_that_the_library_needs(wheel):
    (metadata,) = (text.decode() for name, text in wheel.items() if name.endswith(".dist-info/METADATA"))
    required = re.findall(r"^Requires-Dist: (.+)$", metadata, re.MULTILINE)
    assert [re.match(r"[\w-]+", one)[0] for one in required if "extra ==" not in one] == ["torch"]


def test_the_command_comes_with_it(wheel):
    (entries,) = (text.decode() for name, text in wheel.items() if name.endswith("entry_points.txt"))
    assert "bellnet = bellnet_command:main" in entries


def test_the_citation_names_the_version_and_the_paper():
    text = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    version = re.search(r'^version = "(.+)"', (ROOT / "pyproject.toml").read_text(), re.MULTILINE)[1]
    assert f"\nversion: {version}\n" in text
    assert "Invariant and Equivariant Graph Networks" in text
