"""The commands fit, evaluate and predict, on folders of GraphML files and on the TU layout."""

import csv
import errno
import json
import os
import stat
import sys
import zipfile
from io import BytesIO, TextIOWrapper

import networkx
import numpy as np
import pytest

from bellnet.cli.main import main
from bellnet.data import to_networkx
from bellnet.estimator import load
from tests.data.tu.site import serving
from tests.estimator.small import stars_and_paths

QUICK = ["--n-estimators", "1", "--max-epochs", "2", "--batch-size", "20", "--silent"]


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


@pytest.mark.parametrize("command", ["evaluate", "predict"])
def test_a_model_of_a_device_that_is_not_here_is_used_on_the_one_that_is_named(folder, model, command, capsys):
    expected = outcome(capsys, command, model, folder)
    load(model).set_params(device="cuda:99").save(model)
    code, _, said = outcome(capsys, command, model, folder)
    assert code == 2
    assert said == (
        f"bellnet {command}: load('{model}'): device is 'cuda:99', which is not available. 'auto' is a GPU "
        "if there is one, else the CPU.\nChoose another: load(path, device='auto'), or --device auto in the shell.\n"
    )
    assert outcome(capsys, command, model, folder, "--device", "cpu") == expected


def test_a_device_that_is_named_for_a_fit_is_the_one_of_the_model(folder, tmp_path, capsys):
    path = tmp_path / "model"
    assert outcome(capsys, "fit", folder, "--out", path, "--device", "cpu", *QUICK)[0] == 0
    assert load(path).device == "cpu"


def test_a_fit_that_would_take_more_than_allowed_writes_nothing(folder, tmp_path, capsys):
    path = tmp_path / "model"
    code, _, said = outcome(capsys, "fit", folder, "--out", path, "--max-gigabytes", "1e-9", *QUICK)
    assert code == 2
    assert "GB is allowed" in said
    assert not path.exists()


def test_fit_writes_a_model_and_says_what_it_did(folder, tmp_path, capsys):
    code, printed, complaint = outcome(capsys, "fit", folder, "--out", tmp_path / "model", *QUICK)
    assert (code, complaint) == (0, "")
    assert printed.startswith("trained a network on 12 graphs with 2 classes in ")
    assert printed.endswith(f"wrote {tmp_path / 'model'}\n")
    assert load(tmp_path / "model").classes_.tolist() == ["path", "star"]


def test_fit_says_what_it_did_once_and_on_one_of_the_two_outputs(folder, tmp_path, capsys):
    loud = [option for option in QUICK if option != "--silent"]
    code, printed, complaint = outcome(capsys, "fit", folder, "--out", tmp_path / "model", *loud)
    assert (code, printed) == (0, f"wrote {tmp_path / 'model'}\n")
    assert complaint.startswith("trained a network on 12 graphs with 2 classes in ")
    assert complaint.count("\n") == 1


def test_fit_takes_the_order_of_the_network(folder, tmp_path, capsys):
    code, _, complaint = outcome(capsys, "fit", folder, "--out", tmp_path / "model", "--order", "3", *QUICK)
    assert (code, complaint) == (0, "")
    assert load(tmp_path / "model").order == 3


def test_fit_takes_the_number_of_networks(folder, tmp_path, capsys):
    quick = [option for option in QUICK if option not in ("--n-estimators", "1")]
    for asked, count in (([], 3), (["--n-estimators", "2"], 2)):
        code, printed, complaint = outcome(capsys, "fit", folder, "--out", tmp_path / "model", *asked, *quick)
        assert (code, complaint) == (0, "")
        assert printed.startswith(f"trained {count} networks on 12 graphs with 2 classes in ")
        assert load(tmp_path / "model").n_estimators_ == count
    assert outcome(capsys, "fit", folder, "--out", tmp_path / "model", "--n-estimators", "0", *quick)[0] == 2


def test_fit_says_it_as_json(folder, tmp_path, capsys):
    options = ["--balanced", "--seed", "3", "--learning-rate", "0.01", "--json"]
    code, printed, _ = outcome(capsys, "fit", folder, "--out", tmp_path / "model", *QUICK, *options)
    said = json.loads(printed)
    assert code == 0
    assert (said["graphs"], said["classes"], said["epochs"]) == (12, ["path", "star"], 2)
    assert {"loss", "accuracy", "validation_loss", "validation_accuracy"} <= said.keys()
    model = load(tmp_path / "model")
    assert (model.random_state, model.learning_rate, model.class_weight) == (3, 0.01, "balanced")


def test_evaluate_measures(model, folder, capsys):
    code, printed, complaint = outcome(capsys, "evaluate", model, folder, "--json")
    said = json.loads(printed)
    assert (code, complaint) == (0, "")
    assert [row["class"] for row in said["classes"]] == ["path", "star"]
    assert said["accuracy"] == sum(row["correct"] for row in said["classes"]) / 12
    assert said["balanced_accuracy"] == sum(row["correct"] for row in said["classes"]) / 12
    code, printed, _ = outcome(capsys, "evaluate", model, folder)
    assert code == 0
    assert printed.startswith(f"accuracy             {said['accuracy']:.4f}\n")
    assert "  class  graphs  predicted  correct  recall  precision\n  path        6" in printed


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


@pytest.mark.parametrize("command", ["fit", "evaluate", "predict"])
def test_the_bound_on_what_a_zip_unpacks_to_is_that_of_the_options(tu_folder, tmp_path, capsys, monkeypatch, command):
    import shutil

    zipped = shutil.make_archive(str(tmp_path / "TINY"), "zip", tu_folder)
    model = tmp_path / "model"
    assert outcome(capsys, "fit", tu_folder, "--out", model, *QUICK)[0] == 0
    words = [command, zipped, "--out", model, *QUICK] if command == "fit" else [command, model, zipped]
    monkeypatch.setenv("BELLNET_CACHE", str(tmp_path / "empty"))
    code, _, said = outcome(capsys, *words, "--max-unpacked", "10")
    assert code == 2
    size = (tu_folder / "TINY_graph_indicator.txt").stat().st_size
    assert f"TINY_graph_indicator.txt unpacks to {size} bytes; at most 10 are read." in said
    assert f"--max-unpacked {size}" in said
    assert outcome(capsys, *words, "--max-unpacked", "10000", "--max-ratio", "1.5")[0] == 0  # a small file may have any


def test_a_file_with_a_too_long_name_cannot_be_written(folder, capsys):
    code, printed, text = outcome(capsys, "fit", folder, "--out", "n" * 300)
    assert (code, printed) == (2, "")
    assert text.endswith("cannot be written: File name too long.\nChoose another path.\n")


def test_a_file_of_another_format_is_no_model(folder, capsys):
    code, printed, text = outcome(capsys, "evaluate", folder / "labels.csv", folder)
    assert (code, printed) == (2, "")
    assert "this is not a safetensors file, or it is incomplete" in text


@pytest.mark.parametrize("name", ["mutag", "far/from/here", "nowhere"])
def test_a_name_of_no_data_set_is_not_downloaded(capsys, tmp_path, monkeypatch, name):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("pooch.HTTPDownloader.__call__", lambda *arguments, **options: pytest.fail("downloaded"))
    assert outcome(capsys, "fit", name, "--out", tmp_path / "model")[0] == 2


def make_device(path):
    """The null device under another name."""
    try:
        os.mknod(path, stat.S_IFCHR | 0o666, os.makedev(1, 3))
    except PermissionError:
        pytest.skip("making devices is not permitted here")


@pytest.mark.skipif(os.name != "posix", reason="devices and pipes have names there")
@pytest.mark.parametrize(("make", "kind"), [(make_device, "device"), (os.mkfifo, "pipe")], ids=["device", "pipe"])
@pytest.mark.parametrize("command", ["fit", "predict"])
def test_what_is_not_a_file_is_refused_before_anything_is_computed(
    folder, tmp_path, capsys, monkeypatch, command, make, kind
):
    monkeypatch.setattr("bellnet.estimator.base.train", lambda *given, **options: pytest.fail("it was trained"))
    make(tmp_path / "there")
    before = (tmp_path / "there").lstat()
    words = ["fit", folder] if command == "fit" else ["predict", tmp_path / "no model", folder]
    code, printed, complaint = outcome(capsys, *words, "--out", tmp_path / "there")
    assert (code, printed) == (2, "")
    assert complaint == (
        f"bellnet {command}: --out {tmp_path / 'there'} cannot be written: it is a {kind}, not a file.\n"
        "Choose another path.\n"
    )
    assert (tmp_path / "there").lstat() == before


@pytest.mark.parametrize("command", ["fit", "predict"])
def test_a_place_that_is_read_only_is_found_before_anything_is_computed(folder, tmp_path, capsys, monkeypatch, command):
    def forbid(path, *mode, **options):
        raise OSError(errno.EROFS, "Read-only file system", str(path))

    monkeypatch.setattr(os, "mkdir", forbid)
    words = ["fit", folder] if command == "fit" else ["predict", tmp_path / "no model", folder]
    code, _, complaint = outcome(capsys, *words, "--out", tmp_path / "new")
    assert code == 2
    assert complaint == (
        f"bellnet {command}: --out {tmp_path / 'new'} cannot be written: Read-only file system.\nChoose another path.\n"
    )


def test_a_table_that_cannot_be_finished_leaves_the_old_one_whole(model, folder, tmp_path, capsys, monkeypatch):
    def full(descriptor):
        raise OSError(errno.ENOSPC, "No space left on device")

    (tmp_path / "said.csv").write_text("old")
    before = sorted(path.name for path in tmp_path.iterdir())
    monkeypatch.setattr(os, "fsync", full)
    code, printed, complaint = outcome(capsys, "predict", model, folder, "--out", tmp_path / "said.csv")
    assert (code, printed) == (2, "")
    assert complaint == (
        f"bellnet predict: --out {tmp_path / 'said.csv'} cannot be written: No space left on device.\n"
        "Choose another path.\n"
    )
    assert (tmp_path / "said.csv").read_text() == "old"
    assert sorted(path.name for path in tmp_path.iterdir()) == before


STRANGE = {b"=1+1": b"star", b"-2": b"path", b"-x\x1b[2J": b"star", b"caf\xe9": b"path"}
"""Names of files, as bytes, and classes."""


@pytest.fixture
def strange(tmp_path):
    """Graphs in files whose names a terminal or a spreadsheet would obey, or that are not UTF-8; so are the classes."""
    place = tmp_path / "strange"
    place.mkdir()
    graphs, _ = stars_and_paths(4)
    lines = [b"file,label"]
    for graph, (name, label) in zip(graphs, STRANGE.items(), strict=True):
        networkx.write_graphml(to_networkx(graph), place / os.fsdecode(name + b".graphml"))
        lines.append(name + b".graphml,=" + label + b"\x1b[31m")
    (place / "labels.csv").write_bytes(b"\n".join(lines) + b"\n")
    return place


@pytest.fixture
def strange_model(strange, tmp_path, capsys):
    assert outcome(capsys, "fit", strange, "--out", tmp_path / "strange-model", *QUICK)[0] == 0
    return tmp_path / "strange-model"


def test_a_table_runs_nothing_in_a_spreadsheet_or_on_a_terminal_and_keeps_names_that_are_not_utf_8(
    strange_model, strange, tmp_path, capsys
):
    assert outcome(capsys, "predict", strange_model, strange, "--out", tmp_path / "said.csv")[0] == 0
    written = (tmp_path / "said.csv").read_bytes()
    assert not {*range(32), 127} & {*written} - {10}
    head, *rows = [line.split(b",") for line in written.splitlines()]
    assert head == [b"graph", b"prediction", b"p(=path\\x1b[31m)", b"p(=star\\x1b[31m)"]
    assert sorted(row[0] for row in rows) == sorted([b"'=1+1", b"-2", b"'-x\\x1b[2J", b"caf\xe9"])
    assert {row[1] for row in rows} <= {b"'=path\\x1b[31m", b"'=star\\x1b[31m"}
    code, printed, _ = outcome(capsys, "predict", strange_model, strange, "--json")
    assert code == 0
    assert sorted(os.fsencode(row["graph"]) for row in json.loads(printed)) == sorted(STRANGE)


def test_what_is_printed_of_classes_and_paths_is_nothing_that_a_terminal_obeys(
    strange_model, strange, tmp_path, capsys
):
    code, printed, _ = outcome(capsys, "evaluate", strange_model, strange)
    assert code == 0
    assert "\x1b" not in printed
    assert "\n  =path\\x1b[31m       2" in printed
    _, printed, _ = outcome(capsys, "predict", strange_model, strange, "--out", tmp_path / "a\x1b[2J")
    assert printed == f"wrote {tmp_path}/a\\x1b[2J: 4 graphs\n"
    _, printed, _ = outcome(capsys, "fit", strange, *QUICK, "--out", tmp_path / "b\x1b[2J")
    assert printed.endswith(f"wrote {tmp_path}/b\\x1b[2J\n")
    code, _, complaint = outcome(capsys, "evaluate", tmp_path / "no\x1b[2J", strange)
    assert code == 2
    assert "\x1b" not in complaint


def test_names_that_are_not_utf_8_reach_a_pipe_as_they_are(strange_model, strange, monkeypatch):
    pipe = TextIOWrapper(BytesIO(), encoding="utf-8")  # as Python opens it
    monkeypatch.setattr(sys, "stdout", pipe)
    assert main(["predict", str(strange_model), str(strange)]) == 0
    assert b"\ncaf\xe9," in pipe.buffer.getvalue()


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


def test_a_data_set_is_found_by_its_name_in_the_usual_folder(capsys, tmp_path, tu_folder, monkeypatch):
    monkeypatch.setenv("BELLNET_DATA", str(tu_folder.parent))
    model = tmp_path / "model"
    code, printed, _ = outcome(capsys, "fit", "TINY", "--split", "0", "--out", model, *QUICK, "--json")
    assert code == 0
    assert (json.loads(printed)["data"], json.loads(printed)["graphs"]) == ("TINY", 6)
    code, printed, _ = outcome(capsys, "predict", model, "TINY", "--split", "0", "--json")
    assert (code, len(json.loads(printed))) == (0, 6)


def test_a_data_set_of_the_collection_is_downloaded_by_its_name(capsys, tmp_path, tu_folder, monkeypatch):
    monkeypatch.delenv("BELLNET_DATA", raising=False)
    packed = tmp_path / "packed.zip"
    with zipfile.ZipFile(packed, "w") as zipped:
        for file in tu_folder.iterdir():
            zipped.write(file, file.name.replace("TINY", "MUTAG"))
    with serving() as site:
        site.files["/sets/MUTAG.zip"] = packed.read_bytes()
        code, printed, complaint = outcome(capsys, "fit", "MUTAG", "--out", tmp_path / "model", *QUICK, "--json")
    assert (code, complaint) == (0, f"downloading {site.url}/MUTAG.zip\n")
    assert json.loads(printed)["graphs"] == 12


def test_a_file_of_the_name_of_a_data_set_comes_first(capsys, tmp_path, tu_folder, monkeypatch):
    monkeypatch.chdir(tu_folder.parent)
    tu_folder.rename(tu_folder.with_name("MUTAG"))
    code, printed, _ = outcome(capsys, "fit", "MUTAG", "--out", tmp_path / "model", *QUICK, "--json")
    assert (code, json.loads(printed)["graphs"]) == (0, 12)


def test_numbers_in_place_of_classes_are_refused_with_the_option_for_them(folder, tmp_path, capsys):
    rows = (folder / "labels.csv").read_text().splitlines()
    table = tmp_path / "numbers.csv"
    table.write_text("\n".join([rows[0], *(f"{row.split(',')[0]},{at / 10}" for at, row in enumerate(rows[1:]))]))
    words = ["fit", folder, "--labels", table, "--out", tmp_path / "m", *QUICK]
    code, _, complaint = outcome(capsys, *words)
    assert code == 2
    assert "--regression" in complaint
    assert not (tmp_path / "m").exists()
    assert outcome(capsys, *words, "--regression")[0] == 0
