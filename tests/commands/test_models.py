"""The commands fit, evaluate and predict, on folders of GraphML files and on the TU layout."""

import csv
import json
import os
import subprocess
import sys

import networkx
import numpy as np
import pytest

from bellnet.cli import main
from bellnet.data import to_networkx
from bellnet.estimator import load
from tests.estimator.small import stars_and_paths

QUICK = ["--epochs", "2", "--batch", "20", "--silent"]


def outcome(capsys, *arguments):
    """The exit code, and what was printed to standard output and standard error."""
    try:
        code = main([str(argument) for argument in arguments])
    except SystemExit as stop:
        code = stop.code
    return code, *capsys.readouterr()


@pytest.fixture
def folder(tmp_path):
    """Twelve GraphML files with a CSV of labels."""
    place = tmp_path / "molecules"
    place.mkdir()
    graphs, labels = stars_and_paths(12)
    with (place / "labels.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["file", "label"])
        for number, (graph, label) in enumerate(zip(graphs, labels, strict=True)):
            networkx.write_graphml(to_networkx(graph), place / f"g{number:02}.graphml")
            writer.writerow([f"g{number:02}.graphml", ["path", "star"][label]])
    return place


@pytest.fixture
def tu_folder(tmp_path):
    """The same graphs in the TU layout, with classes 1 and -1, a number for each, and two splits."""
    place = tmp_path / "data" / "TINY"
    place.mkdir(parents=True)
    graphs, labels = stars_and_paths(12)
    starts = np.cumsum([0, *(graph.n for graph in graphs)])
    edges = [graph.edge_index.T.numpy() + start + 1 for graph, start in zip(graphs, starts, strict=False)]
    indicator = np.repeat(np.arange(12) + 1, [graph.n for graph in graphs])
    for ending, rows, form in (
        ("A", np.concatenate(edges), "%d, %d"),
        ("graph_indicator", indicator, "%d"),
        ("graph_labels", 1 - 2 * labels, "%d"),
        ("graph_attributes", np.array([graph.n / 10 for graph in graphs]), "%.3f"),
    ):
        np.savetxt(place / f"TINY_{ending}.txt", rows, fmt=form)
    halves = [list(range(6)), list(range(6, 12))]
    splits = {"folds": [{"train": halves[0], "test": halves[1]}, {"train": halves[1], "test": halves[0]}]}
    (tmp_path / "data" / "splits").mkdir()
    (tmp_path / "data" / "splits" / "TINY.json").write_text(json.dumps(splits))
    return place


@pytest.fixture(autouse=True)
def _own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("BELLNET_CACHE", str(tmp_path / "cache"))


@pytest.fixture
def model(folder, tmp_path, capsys):
    path = tmp_path / "model.safetensors"
    assert outcome(capsys, "fit", folder, "--out", path, *QUICK)[0] == 0
    return path


def test_a_model_is_fitted_to_listed_edges(folder, tmp_path, capsys):
    path = tmp_path / "sparse.safetensors"
    code, _, _ = outcome(capsys, "fit", folder, "--out", path, "--layout", "sparse", *QUICK)
    assert code == 0
    assert load(path).layout == "sparse"
    assert outcome(capsys, "evaluate", path, folder)[0] == 0


def test_a_fit_that_would_take_more_than_allowed_writes_nothing(folder, tmp_path, capsys):
    path = tmp_path / "model"
    code, _, said = outcome(capsys, "fit", folder, "--out", path, "--max-gigabytes", "1e-9", *QUICK)
    assert code == 2
    assert "GB is the most that it may take" in said
    assert not path.exists()


def test_fit_writes_a_model_and_says_what_it_did(folder, tmp_path, capsys):
    code, printed, complaint = outcome(capsys, "fit", folder, "--out", tmp_path / "model", *QUICK)
    assert (code, complaint) == (0, "")
    assert printed.startswith("learned 2 classes from 12 graphs in ")
    assert printed.endswith(f"wrote {tmp_path / 'model'}\n")
    assert load(tmp_path / "model").classes_.tolist() == ["path", "star"]


def test_fit_says_it_as_json(folder, tmp_path, capsys):
    options = ["--balanced", "--seed", "3", "--rate", "0.01", "--json"]
    code, printed, _ = outcome(capsys, "fit", folder, "--out", tmp_path / "model", *QUICK, *options)
    said = json.loads(printed)
    assert code == 0
    assert (said["graphs"], said["classes"], said["epochs"]) == (12, ["path", "star"], 2)
    model = load(tmp_path / "model")
    assert (model.random_state, model.learning_rate, model.class_weight) == (3, 0.01, "balanced")


def test_evaluate_measures(model, folder, capsys):
    code, printed, complaint = outcome(capsys, "evaluate", model, folder, "--json")
    said = json.loads(printed)
    assert (code, complaint) == (0, "")
    assert [row["class"] for row in said["classes"]] == ["path", "star"]
    assert said["accuracy"] == sum(row["hits"] for row in said["classes"]) / 12
    assert said["balanced_accuracy"] == sum(row["hits"] for row in said["classes"]) / 12
    code, printed, _ = outcome(capsys, "evaluate", model, folder)
    assert code == 0
    assert printed.startswith(f"accuracy             {said['accuracy']:.4f}\n")
    assert "class  graphs  predicted  hits  recall  precision\npath        6" in printed


def test_predict_writes_a_table(model, folder, tmp_path, capsys):
    code, printed, _ = outcome(capsys, "predict", model, folder, "--out", tmp_path / "said.csv")
    assert (code, printed) == (0, f"wrote {tmp_path / 'said.csv'}: 12 graphs\n")
    with (tmp_path / "said.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["graph"] for row in rows] == [f"g{number:02}" for number in range(12)]
    for row in rows:
        assert row["prediction"] == max(("path", "star"), key=lambda name: float(row[f"p({name})"]))
        assert abs(float(row["p(path)"]) + float(row["p(star)"]) - 1) < 1e-5


def test_predict_prints_the_table_where_no_file_is_named(model, folder, tmp_path, capsys):
    outcome(capsys, "predict", model, folder, "--out", tmp_path / "said.csv")
    assert outcome(capsys, "predict", model, folder) == (0, (tmp_path / "said.csv").read_text(), "")
    code, printed, _ = outcome(capsys, "predict", model, folder, "--json")
    assert code == 0
    assert [row["graph"] for row in json.loads(printed)] == [f"g{number:02}" for number in range(12)]


def test_predict_needs_no_labels(model, folder, capsys):
    (folder / "labels.csv").unlink()
    assert outcome(capsys, "predict", model, folder)[0] == 0
    code, printed, complaint = outcome(capsys, "evaluate", model, folder)
    assert (code, printed) == (2, "")
    assert complaint.startswith(f"bellnet evaluate: {folder} has no labels.\n")


def test_the_tu_layout_keeps_the_names_of_its_classes(tu_folder, tmp_path, capsys):
    assert outcome(capsys, "fit", tu_folder, "--out", tmp_path / "model", *QUICK)[0] == 0
    assert load(tmp_path / "model").classes_.tolist() == [-1, 1]
    code, printed, _ = outcome(capsys, "predict", tmp_path / "model", tu_folder)
    assert code == 0
    assert printed.startswith("graph,prediction,p(-1),p(1)\n0,")


def test_one_side_of_a_split_is_learned_and_the_other_measured(tu_folder, tmp_path, capsys):
    said = json.loads(outcome(capsys, "fit", tu_folder, "--out", tmp_path / "m", "--split", "1", *QUICK, "--json")[1])
    assert said["graphs"] == 6
    code, printed, _ = outcome(capsys, "predict", tmp_path / "m", tu_folder, "--split", "1")
    assert code == 0
    assert [line.split(",")[0] for line in printed.splitlines()[1:]] == ["0", "1", "2", "3", "4", "5"]


def test_numbers_are_learned_with_regression(tu_folder, tmp_path, capsys):
    assert outcome(capsys, "fit", tu_folder, "--regression", "--out", tmp_path / "model", *QUICK)[0] == 0
    said = json.loads(outcome(capsys, "evaluate", tmp_path / "model", tu_folder, "--json")[1])
    assert said.keys() == {"data", "graphs", "r2", "mean_absolute_error", "root_mean_square_error"}
    assert outcome(capsys, "evaluate", tmp_path / "model", tu_folder)[1].startswith("r2                   ")
    assert outcome(capsys, "predict", tmp_path / "model", tu_folder)[1].startswith("graph,prediction\n0,")


def test_a_zip_is_as_good_as_a_folder(tu_folder, tmp_path, capsys):
    import shutil

    shutil.make_archive(str(tmp_path / "TINY"), "zip", tu_folder)
    assert outcome(capsys, "fit", tmp_path / "TINY.zip", "--out", tmp_path / "model", *QUICK)[0] == 0


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["fit", "nowhere", "--out", "m"], "bellnet fit: there is no nowhere.\nGive a zip or folder"),
        (["fit", "FOLDER"], "the following arguments are required: --out"),
        (
            ["fit", "FOLDER", "--out", "no/such/model"],
            "bellnet fit: --out no/such/model: there is no directory no/such.",
        ),
        (["fit", "FOLDER", "--out", "FOLDER"], "is a directory.\nGive the path of a file."),
        (["fit", "FOLDER", "--out", "m", "--split", "0"], "--split 0: there are no splits beside"),
        (["fit", "TU", "--out", "m", "--split", "2"], "has 2 splits, from 0 to 1."),
        (["fit", "TU", "--out", "m", "--labels", "x.csv"], "--labels belongs to a folder of GraphML files"),
        (["fit", "FOLDER", "--out", "m", "--labels", "x.csv"], "x.csv"),
        (["fit", "FOLDER", "--out", "m", "--regression"], "has no numbers to predict."),
        (["fit", "FOLDER", "--out", "m", "--regression", "--balanced"], "--balanced is about classes"),
        (["fit", "FOLDER", "--out", "m", "--epochs", "0"], "'0' is not a whole number from 1 up"),
        (["evaluate", "nothing", "FOLDER"], "load('nothing'): there is no such file."),
        (["evaluate", "FOLDER/labels.csv", "FOLDER"], "this file is cut off, or it never was a safetensors file"),
        (["predict", "nothing", "FOLDER"], "load('nothing'): there is no such file."),
        (["predict", "nothing", "FOLDER", "--out", "FOLDER"], "is a directory."),
    ],
)
def test_what_cannot_be_done_is_said_with_exit_code_2(folder, tu_folder, tmp_path, monkeypatch, capsys, words, said):
    monkeypatch.chdir(tmp_path)
    words = [word.replace("FOLDER", str(folder)).replace("TU", str(tu_folder)) for word in words]
    code, printed, complaint = outcome(capsys, *words)
    assert (code, printed) == (2, "")
    assert said in complaint
    assert "Traceback" not in complaint
    assert not (tmp_path / "m").exists()


def test_a_model_of_nodes_is_refused(tmp_path, folder, capsys):
    from tests.estimator.small import classifier

    graphs, _ = stars_and_paths(4)
    classifier(target="node").fit(graphs, [np.arange(graph.n) % 2 for graph in graphs]).save(tmp_path / "model")
    code, _, complaint = outcome(capsys, "predict", tmp_path / "model", folder)
    assert code == 2
    assert "predicts nodes; the command line is for labels of graphs" in complaint


def test_ctrl_c_writes_nothing(folder, tmp_path, capsys, monkeypatch):
    def stop(*arguments, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr("bellnet.estimator.base.train", stop)
    code, _, complaint = outcome(capsys, "fit", folder, "--out", tmp_path / "model", *QUICK)
    assert (code, complaint) == (130, "\nStopped. Nothing was written.\n")
    assert not (tmp_path / "model").exists()


def test_a_missing_extra_is_named(tmp_path, folder):
    program = """
import sys
sys.modules["sklearn"] = None
from bellnet.cli import main
sys.exit(main(sys.argv[1:]))
"""
    finished = subprocess.run(
        [sys.executable, "-c", program, "fit", str(folder), "--out", str(tmp_path / "model")],
        capture_output=True,
        text=True,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )
    assert (finished.returncode, finished.stdout) == (2, "")
    assert finished.stderr == (
        "bellnet fit: bellnet.estimator needs sklearn, which is not installed.\n"
        "Install it: pip install 'bellnet[estimator]'\n"
    )
