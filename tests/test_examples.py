"""Every example runs as it stands, without a warning, and says what it should."""

import os
import re
import runpy
import subprocess
import sys
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from experiments.config import METHODS, TASKS

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


@cache
def demonstration():
    """What the demonstration says when it is brief, and its page."""
    with TemporaryDirectory() as folder:
        finished = run(
            "demo.py", folder, "--brief", "--task", "trace", "--jobs", "1", "--out", str(Path(folder) / "out")
        )
        assert finished.returncode == 0, finished.stderr
        page = Path(folder) / "out" / "report.html"
        assert str(page) in finished.stdout
        return finished.stdout, page.read_text(encoding="utf-8")


def test_the_demonstration_shows_everything_in_order():
    said, page = demonstration()
    titles = (
        "A layer and its plan",
        "Checked live",
        "Learning: a part of Table 1",
        "Graphs that colour refinement cannot tell apart",
    )
    for text in (said, page):
        places = [text.find(title) for title in titles]
        assert places[0] > -1
        assert places == sorted(places)
    assert "n n -> n n    15 maps, 2 biases" in said
    assert "✓" in said
    assert "✗" not in said
    assert "\033" not in said  # no colours where nobody looks


def test_the_page_of_the_demonstration_needs_no_other_file():
    _, page = demonstration()
    sources = re.findall(r'(?:src|href)="(.*?)"', page)
    assert len(sources) == 5  # the basis, the diagrams, the curves, the circles, the accuracies: a trace has no picture
    assert all(source.startswith("data:image/png;base64,") for source in sources)


def test_the_demonstration_puts_its_figures_beside_the_paper_and_the_recorded_runs():
    said, page = demonstration()
    (row,) = [line.split("│")[1:-1] for line in said.splitlines() if "ours, 15 maps" in line]
    task, layers, _, now, paper, recorded, verdict = (cell.strip() for cell in row)
    assert (task, layers, paper, verdict) == ("trace", "1", "0.005", "worse")  # two steps are not enough
    assert float(now) > 1
    assert float(recorded) < 0.005
    assert f'<td class="{now}">{now}</td>' in page


def test_colour_refinement_sees_nothing_in_the_graphs_of_the_demonstration():
    said, _ = demonstration()
    assert "Colour refinement gives every graph 1 colour." in said
    (pairs,) = [line.split("│")[1:-1] for line in said.splitlines() if "pairs of nodes " in line]
    assert [cell.strip() for cell in pairs] == ["order 2", "pairs of nodes", "50%", "50%"]


def test_the_demonstration_classifies_circles_of_sizes_that_it_has_not_learned_from():
    demo = runpy.run_path(str(ROOT / "examples" / "demo.py"))
    learned, asked = demo["learned_circles"](), demo["asked_circles"]()
    assert max(graph.n for graph in learned[0]) < min(graph.n for graph in asked[0])
    model = demo["classifier"](3, demo["EPOCHS"]).fit(*learned)
    assert (model.score(*learned), model.score(*asked)) == (1, 1)


def test_every_cell_of_the_demonstration_is_one_of_table_1_as_the_paper_has_it():
    demo = runpy.run_path(str(ROOT / "examples" / "demo.py"))
    cells = demo["cells"](list(demo["TRAINED"]), brief=False)
    assert {(cell.task, cell.method) for cell in cells} == {(task, method) for task in TASKS for method in METHODS}
    assert len({(cell.task, cell.layers) for cell in cells}) == len(TASKS)  # one depth a task
    assert {(cell.n, cell.train, cell.test, cell.table) for cell in cells} == {(40, 10_000, 1_000, "table1")}
