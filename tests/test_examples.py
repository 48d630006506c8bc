"""Every example runs as it stands, without a warning, and says what it should."""

import os
import subprocess
import sys
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

ROOT = Path(__file__).resolve().parents[1]
EXAMPLES = sorted(path.name for path in (ROOT / "examples").glob("*.py") if path.name != "demo.py")


# PyTorch Geometric still uses what torch deprecates; the message appears where every warning is made an error.
OF_OTHERS = "ignore:`torch.jit.script` is deprecated:DeprecationWarning"


def run(name, folder, *arguments):
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONIOENCODING": "utf-8"}
    command = [sys.executable, "-W", "error", "-W", OF_OTHERS, str(ROOT / "examples" / name), *arguments]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, encoding="utf-8", timeout=600)


def test_there_are_examples():
    assert {
        "first_layer.py",
        "different_sizes.py",
        "two_node_sets.py",
        "own_module.py",
        "ratings.py",
        "million_nodes.py",
        "papers.py",
        "weights.py",
    } <= set(EXAMPLES)


@cache
def run_once(name):
    """What an example says, and what it leaves behind, run once for all tests that ask."""
    with TemporaryDirectory() as folder:
        return run(name, folder), list(Path(folder).iterdir())


@pytest.mark.parametrize("name", EXAMPLES)
def test_an_example_runs_from_anywhere_and_leaves_nothing_behind(name):
    finished, left = run_once(name)
    assert (finished.returncode, finished.stderr) == (0, "")
    assert finished.stdout
    assert left == []


@pytest.mark.parametrize("between", ["\t", "::", ","])
def test_ratings_are_read_from_files_of_movielens(between, tmp_path):
    file = tmp_path / "ratings"
    rows = [(1 + k % 7, 10 * (k % 11), 1 + k % 5, 880000000) for k in range(70)]
    head = ["userId,movieId,rating,timestamp"] if between == "," else []
    file.write_text("\n".join([*head, *(between.join(map(str, row)) for row in rows)]) + "\n", encoding="utf-8")
    finished = run("ratings.py", tmp_path, "--file", str(file), "--steps", "2")
    assert (finished.returncode, finished.stderr) == (0, "")
    assert "70 ratings of 11 items by 7 users" in finished.stdout


def said_by(name):
    """The lines that an example has printed."""
    return run_once(name)[0].stdout.splitlines()


def test_side_information_helps_to_complete_ratings():
    errors = {line.split(" RMSE ")[0].strip(): float(line.split()[-1]) for line in said_by("ratings.py")[1:]}
    assert errors["layers u i, u, i -> u i"] < errors["layers u i -> u i"] < errors["mean"]


def test_layers_over_neurons_read_weights_that_an_mlp_cannot():
    _, layers, flat = said_by("weights.py")
    explained = [float(line.split("explains ")[1].split()[0]) for line in (layers, flat)]
    moved = [float(line.split()[-1]) for line in (layers, flat)]
    assert explained[0] > explained[1] + 0.2
    assert moved[0] < 1e-4 < moved[1]


def test_links_help_to_find_subjects_of_papers():
    _, words, links = said_by("papers.py")
    assert float(links.split()[-1]) > float(words.split()[-1]) + 0.1


@pytest.mark.parametrize("name", EXAMPLES)
def test_an_example_is_short(name):
    assert len((ROOT / "examples" / name).read_text(encoding="utf-8").splitlines()) < 60


def test_the_demonstration_holds_learns_and_reports(tmp_path):
    choice = ["--task", "trace", "--layers", "1", "--jobs", "1"]
    finished = run("demo.py", tmp_path, "--out", str(tmp_path / "demo"), *choice)
    assert finished.returncode == 0, finished.stderr
    assert "✗" not in finished.stdout
    assert "\033" not in finished.stdout  # no colours where nobody looks
    for title in ("A plan", "Bell numbers", "Equivariance", "Pictures", "Learning"):
        assert f"\n{title}  " in finished.stdout
    for name in ("figure1.png", "diagrams.png", "table1/curves.png", "table1/report.html"):
        assert (tmp_path / "demo" / name).exists()
    assert str(tmp_path / "demo" / "table1" / "report.html") in finished.stdout
    assert "Table 1" in finished.stdout
