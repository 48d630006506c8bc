"""The examples run without warnings and print the expected results."""

import io
import os
import re
import runpy
import subprocess
import sys
from contextlib import chdir, redirect_stderr, redirect_stdout
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from unittest.mock import patch

import pytest

from experiments.matrix_cell import METHODS, TASKS

ROOT = Path(__file__).resolve().parents[1]
EXAMPLES = sorted(path.name for path in (ROOT / "examples").glob("*.py") if path.name != "demo.py")


# PyTorch Geometric uses a deprecated function of torch; warnings are errors in these runs.
DEPRECATION = "ignore:`torch.jit.script` is deprecated:DeprecationWarning"
IN_A_PROCESS = {"first_layer.py", "million_nodes.py"}  # run as a command; changes the allocator of its process


def run(name, folder, *arguments):
    """Runs an example in a process; a warning is an error."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONIOENCODING": "utf-8"}
    command = [sys.executable, "-W", "error", "-W", DEPRECATION, str(ROOT / "examples" / name), *arguments]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, encoding="utf-8", timeout=600)


def run_here(name, folder, *arguments):
    """Runs an example in this process and returns the printed lines; a warning is an error."""
    printed, errors = io.StringIO(), io.StringIO()
    script = str(ROOT / "examples" / name)
    with (
        chdir(folder),
        redirect_stdout(printed),
        redirect_stderr(errors),
        patch.object(sys, "argv", [script, *arguments]),
    ):
        runpy.run_path(script, run_name="__main__")
    assert errors.getvalue() == ""
    return printed.getvalue().splitlines()


def test_all_examples_are_found():
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
def lines_of(name):
    """Runs an example in an empty folder, which stays empty, and returns the printed lines; cached."""
    with TemporaryDirectory() as folder:
        if name in IN_A_PROCESS:
            finished = run(name, folder)
            assert (finished.returncode, finished.stderr) == (0, "")
            lines = finished.stdout.splitlines()
        else:
            lines = run_here(name, folder)
        assert list(Path(folder).iterdir()) == []
    return lines


@pytest.mark.parametrize("name", EXAMPLES)
def test_example_runs_in_any_directory_and_leaves_no_files(name):
    assert lines_of(name)


@pytest.mark.parametrize("between", ["\t", "::", ","])
def test_ratings_are_read_from_movielens_files(between, tmp_path):
    file = tmp_path / "ratings"
    rows = [(1 + k % 7, 10 * (k % 11), 1 + k % 5, 880000000) for k in range(70)]
    head = ["userId,movieId,rating,timestamp"] if between == "," else []
    file.write_text("\n".join([*head, *(between.join(map(str, row)) for row in rows)]) + "\n", encoding="utf-8")
    lines = run_here("ratings.py", tmp_path, "--file", str(file), "--steps", "2")
    assert any("70 ratings of 11 items by 7 users" in line for line in lines)


def test_side_information_lowers_the_error_of_ratings():
    errors = {line.split(" RMSE ")[0].strip(): float(line.split()[-1]) for line in lines_of("ratings.py")[1:]}
    assert errors["layers u i, u, i -> u i"] < errors["layers u i -> u i"] < errors["mean"]


def test_layers_over_neurons_predict_accuracy_better_than_an_mlp():
    _, layers, flat = lines_of("weights.py")
    explained = [float(line.split("explains ")[1].split()[0]) for line in (layers, flat)]
    moved = [float(line.split()[-1]) for line in (layers, flat)]
    assert explained[0] > explained[1] + 0.2
    assert moved[0] < 1e-4 < moved[1]


def test_links_raise_the_accuracy_on_papers():
    _, words, links = lines_of("papers.py")
    assert float(links.split()[-1]) > float(words.split()[-1]) + 0.1


@pytest.mark.parametrize("name", EXAMPLES)
def test_example_is_short(name):
    assert len((ROOT / "examples" / name).read_text(encoding="utf-8").splitlines()) < 60


@cache
def demonstration():
    """Runs the brief demonstration and returns its output and its page; cached."""
    with TemporaryDirectory() as folder:
        out = str(Path(folder) / "out")
        finished = run("demo.py", folder, "--brief", "--task", "trace", "--jobs", "1", "--out", out)
        assert finished.returncode == 0, finished.stderr
        page = Path(folder) / "out" / "report.html"
        assert str(page) in finished.stdout
        return finished.stdout, page.read_text(encoding="utf-8")


def test_demonstration_shows_its_sections_in_order():
    printed, page = demonstration()
    titles = (
        "A layer and its plan",
        "Checks",
        "Training: a part of Table 1",
        "Graph classification beyond 1-WL",
    )
    for text in (printed, page):
        positions = [text.find(title) for title in titles]
        assert positions[0] > -1
        assert positions == sorted(positions)
    assert "n n -> n n    15 maps, 2 biases" in printed
    assert "✓" in printed
    assert "✗" not in printed
    assert "\033" not in printed  # no colors outside of a terminal


def test_page_of_the_demonstration_is_self_contained():
    _, page = demonstration()
    sources = re.findall(r'(?:src|href)="(.*?)"', page)
    assert len(sources) == 5  # the basis, the diagrams, the curves, the circles, the accuracies: a trace has no picture
    assert all(source.startswith("data:image/png;base64,") for source in sources)


def test_demonstration_compares_with_the_paper_and_the_recorded_runs():
    printed, page = demonstration()
    (row,) = [line.split("│")[1:-1] for line in printed.splitlines() if "bellnet, 15 maps" in line]
    task, layers, _, now, paper, recorded, verdict = (cell.strip() for cell in row)
    assert (task, layers, paper, verdict) == ("trace", "1", "0.005", "worse")  # two steps do not suffice
    assert float(now) > 1
    assert float(recorded) < 0.005
    assert f'<td class="{now}">{now}</td>' in page


def test_1_wl_gives_the_graphs_of_the_demonstration_one_color():
    printed, _ = demonstration()
    assert "1-WL assigns 1 colour to every graph." in printed
    (pairs,) = [line.split("│")[1:-1] for line in printed.splitlines() if "│ pairs of nodes " in line]
    assert [cell.strip() for cell in pairs] == ["order 2", "pairs of nodes", "50%", "50%"]


def test_demonstration_classifies_circles_of_unseen_sizes():
    demo = runpy.run_path(str(ROOT / "examples" / "demo.py"))
    train, test = demo["train_circles"](), demo["test_circles"]()
    assert max(graph.n for graph in train[0]) < min(graph.n for graph in test[0])
    model = demo["classifier"](3, demo["EPOCHS"]).fit(*train)
    assert (model.score(*train), model.score(*test)) == (1, 1)


def test_cells_of_the_demonstration_are_cells_of_table_1():
    demo = runpy.run_path(str(ROOT / "examples" / "demo.py"))
    cells = demo["cells"](list(demo["TRAINED"]), brief=False)
    assert {(cell.task, cell.method) for cell in cells} == {(task, method) for task in TASKS for method in METHODS}
    assert len({(cell.task, cell.layers) for cell in cells}) == len(TASKS)  # one depth per task
    assert {(cell.n, cell.train, cell.test, cell.table) for cell in cells} == {(40, 10_000, 1_000, "table1")}
