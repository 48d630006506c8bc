"""The example of the README on MUTAG, where it is present."""

import os
from pathlib import Path

import pytest

from tests.test_docstrings import README, python_blocks

ROOT = Path(__file__).resolve().parents[2]


def folder():
    """The folder that has MUTAG.zip, or None."""
    given = Path(os.environ.get("BELLNET_DATA") or ROOT.parent / "shared" / "data")
    return next((folder for folder in (given, given / "tu") if (folder / "MUTAG.zip").is_file()), None)


@pytest.mark.slow
@pytest.mark.skipif(folder() is None, reason="MUTAG.zip is neither in $BELLNET_DATA nor in ../shared/data")
def test_the_example_of_the_readme_classifies_molecules(monkeypatch, tmp_path, capsys):
    (block,) = (block for block in python_blocks(README.read_text()) if "GraphClassifier()" in block)
    assert len([line for line in block.splitlines() if line.strip()]) <= 10
    monkeypatch.setenv("BELLNET_DATA", str(folder()))
    monkeypatch.setenv("BELLNET_CACHE", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    namespace: dict[str, object] = {}
    exec(compile(block, "README.md", "exec"), namespace)
    assert len(namespace["test"]) == 47
    accuracy = namespace["model"].score(namespace["test"], namespace["y_test"])
    assert accuracy > 0.75  # saying the larger class is right for 66 %
    assert capsys.readouterr().out.startswith(str(accuracy))
