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
    directory = tmp_path / "molecules"
    directory.mkdir()
    graphs, labels = stars_and_paths(12)
    with (directory / "labels.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["file", "label"])
        for number, (graph, label) in enumerate(zip(graphs, labels, strict=True)):
            networkx.write_graphml(to_networkx(graph), directory / f"g{number:02}.graphml")
            writer.writerow([f"g{number:02}.graphml", ["path", "star"][label]])
    return directory


@pytest.fixture
def tu_folder(tmp_path):
    """The same graphs in the TU layout, with classes 1 and -1, a number for each, and two splits."""
    directory = tmp_path / "data" / "TINY"
    directory.mkdir(parents=True)
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
        np.savetxt(directory / f"TINY_{ending}.txt", rows, fmt=form)
    halves = [list(range(6)), list(range(6, 12))]
    splits = {"folds": [{"train": halves[0], "test": halves[1]}, {"train": halves[1], "test": halves[0]}]}
    (tmp_path / "data" / "splits").mkdir()
    (tmp_path / "data" / "splits" / "TINY.json").write_text(json.dumps(splits))
    return directory


@pytest.fixture(autouse=True)
def _own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("BELLNET_CACHE", str(tmp_path / "cache"))


@pytest.fixture
def model(folder, tmp_path, capsys):
    path = tmp_path / "model.safetensors"
    assert outcome(capsys, "fit", folder, "--out", path, *QUICK)[0] == 0
    return path


def test_fit_has_the_sparse_layout(folder, tmp_path, capsys):
    path = tmp_path / "sparse.safetensors"
    code, _, _ = outcome(capsys, "fit", folder, "--out", path, "--layout", "sparse", *QUICK)
    assert code == 0
    assert load(path).layout == "sparse"
    assert outcome(capsys, "evaluate", path, folder)[0] == 0


@pytest.mark.parametrize("command", ["evaluate", "predict"])
def test_a_model_for_an_unavailable_device_needs_the_option_device(folder, model, command, capsys):
    expected = outcome(capsys, command, model, folder)
    load(model).set_params(device="cuda:99").save(model)
    code, _, error = outcome(capsys, command, model, folder)
    assert code == 2
    assert error == (
        f"bellnet {command}: load('{model}'): device is 'cuda:99', which is not available. 'auto' is a GPU "
        "if there is one, else the CPU.\nChoose another: load(path, device='auto'), or --device auto in the shell.\n"
    )
    assert outcome(capsys, command, model, folder, "--device", "cpu") == expected


def test_the_option_device_is_in_the_model(folder, tmp_path, capsys):
    path = tmp_path / "model"
    assert outcome(capsys, "fit", folder, "--out", path, "--device", "cpu", *QUICK)[0] == 0
    assert load(path).device == "cpu"


def test_a_fit_that_takes_too_much_memory_writes_nothing(folder, tmp_path, capsys):
    path = tmp_path / "model"
    code, _, error = outcome(capsys, "fit", folder, "--out", path, "--max-gigabytes", "1e-9", *QUICK)
    assert code == 2
    assert "GB is allowed" in error
    assert not path.exists()


def test_fit_writes_a_model_and_prints_a_summary(folder, tmp_path, capsys):
    code, printed, complaint = outcome(capsys, "fit", folder, "--out", tmp_path / "model", *QUICK)
    assert (code, complaint) == (0, "")
    assert printed.startswith("trained a network on 12 graphs with 2 classes in ")
    assert printed.endswith(f"wrote {tmp_path / 'model'}\n")
    assert load(tmp_path / "model").classes_.tolist() == ["path", "star"]


def test_fit_prints_the_summary_once(folder, tmp_path, capsys):
    loud = [option for option in QUICK if option != "--silent"]
    code, printed, complaint = outcome(capsys, "fit", folder, "--out", tmp_path / "model", *loud)
    assert (code, printed) == (0, f"wrote {tmp_path / 'model'}\n")
    assert complaint.startswith("trained a network on 12 graphs with 2 classes in ")
    assert complaint.count("\n") == 1


def test_fit_has_the_option_order(folder, tmp_path, capsys):
    code, _, complaint = outcome(capsys, "fit", folder, "--out", tmp_path / "model", "--order", "3", *QUICK)
    assert (code, complaint) == (0, "")
    assert load(tmp_path / "model").order == 3


def test_fit_has_the_option_n_estimators(folder, tmp_path, capsys):
    quick = [option for option in QUICK if option not in ("--n-estimators", "1")]
    for options, count in (([], 3), (["--n-estimators", "2"], 2)):
        code, printed, complaint = outcome(capsys, "fit", folder, "--out", tmp_path / "model", *options, *quick)
        assert (code, complaint) == (0, "")
        assert printed.startswith(f"trained {count} networks on 12 graphs with 2 classes in ")
        assert load(tmp_path / "model").n_estimators_ == count
    assert outcome(capsys, "fit", folder, "--out", tmp_path / "model", "--n-estimators", "0", *quick)[0] == 2


def test_fit_prints_json(folder, tmp_path, capsys):
    options = ["--balanced", "--seed", "3", "--learning-rate", "0.01", "--json"]
    code, printed, _ = outcome(capsys, "fit", folder, "--out", tmp_path / "model", *QUICK, *options)
    result = json.loads(printed)
    assert code == 0
    assert (result["graphs"], result["classes"], result["epochs"]) == (12, ["path", "star"], 2)
    assert {"loss", "accuracy", "validation_loss", "validation_accuracy"} <= result.keys()
    model = load(tmp_path / "model")
    assert (model.random_state, model.learning_rate, model.class_weight) == (3, 0.01, "balanced")


def test_evaluate_prints_scores(model, folder, capsys):
    code, printed, complaint = outcome(capsys, "evaluate", model, folder, "--json")
    result = json.loads(printed)
    assert (code, complaint) == (0, "")
    assert [row["class"] for row in result["classes"]] == ["path", "star"]
    assert result["accuracy"] == sum(row["correct"] for row in result["classes"]) / 12
    assert result["balanced_accuracy"] == sum(row["correct"] for row in result["classes"]) / 12
    code, printed, _ = outcome(capsys, "evaluate", model, folder)
    assert code == 0
    assert printed.startswith(f"accuracy             {result['accuracy']:.4f}\n")
    assert "  class  graphs  predicted  correct  recall  precision\n  path        6" in printed


def test_predict_writes_a_table(model, folder, tmp_path, capsys):
    code, printed, _ = outcome(capsys, "predict", model, folder, "--out", tmp_path / "predictions.csv")
    assert (code, printed) == (0, f"wrote {tmp_path / 'predictions.csv'}: 12 graphs\n")
    with (tmp_path / "predictions.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["graph"] for row in rows] == [f"g{number:02}" for number in range(12)]
    for row in rows:
        assert row["prediction"] == max(("path", "star"), key=lambda name: float(row[f"p({name})"]))
        assert abs(float(row["p(path)"]) + float(row["p(star)"]) - 1) < 1e-5


def test_predict_prints_the_table_by_default(model, folder, tmp_path, capsys):
    outcome(capsys, "predict", model, folder, "--out", tmp_path / "predictions.csv")
    assert outcome(capsys, "predict", model, folder) == (0, (tmp_path / "predictions.csv").read_text(), "")
    code, printed, _ = outcome(capsys, "predict", model, folder, "--json")
    assert code == 0
    assert [row["graph"] for row in json.loads(printed)] == [f"g{number:02}" for number in range(12)]


def test_predict_needs_no_labels(model, folder, capsys):
    (folder / "labels.csv").unlink()
    assert outcome(capsys, "predict", model, folder)[0] == 0
    code, printed, complaint = outcome(capsys, "evaluate", model, folder)
    assert (code, printed) == (2, "")
    assert complaint.startswith(f"bellnet evaluate: {folder} has no labels.\n")


def test_classes_of_the_tu_layout_have_their_original_names(tu_folder, tmp_path, capsys):
    assert outcome(capsys, "fit", tu_folder, "--out", tmp_path / "model", *QUICK)[0] == 0
    assert load(tmp_path / "model").classes_.tolist() == [-1, 1]
    code, printed, _ = outcome(capsys, "predict", tmp_path / "model", tu_folder)
    assert code == 0
    assert printed.startswith("graph,prediction,p(-1),p(1)\n0,")


def test_a_split_has_training_and_test_graphs(tu_folder, tmp_path, capsys):
    result = json.loads(outcome(capsys, "fit", tu_folder, "--out", tmp_path / "m", "--split", "1", *QUICK, "--json")[1])
    assert result["graphs"] == 6
    code, printed, _ = outcome(capsys, "predict", tmp_path / "m", tu_folder, "--split", "1")
    assert code == 0
    assert [line.split(",")[0] for line in printed.splitlines()[1:]] == ["0", "1", "2", "3", "4", "5"]


def test_fit_has_the_option_regression(tu_folder, tmp_path, capsys):
    assert outcome(capsys, "fit", tu_folder, "--regression", "--out", tmp_path / "model", *QUICK)[0] == 0
    result = json.loads(outcome(capsys, "evaluate", tmp_path / "model", tu_folder, "--json")[1])
    assert result.keys() == {"data", "graphs", "r2", "mean_absolute_error", "root_mean_square_error"}
    assert outcome(capsys, "evaluate", tmp_path / "model", tu_folder)[1].startswith("r2                   ")
    assert outcome(capsys, "predict", tmp_path / "model", tu_folder)[1].startswith("graph,prediction\n0,")


def test_data_can_be_a_zip(tu_folder, tmp_path, capsys):
    import shutil

    shutil.make_archive(str(tmp_path / "TINY"), "zip", tu_folder)
    assert outcome(capsys, "fit", tmp_path / "TINY.zip", "--out", tmp_path / "model", *QUICK)[0] == 0


@pytest.mark.parametrize("command", ["fit", "evaluate", "predict"])
def test_zips_are_bounded_by_the_options(tu_folder, tmp_path, capsys, monkeypatch, command):
    import shutil

    zipped = shutil.make_archive(str(tmp_path / "TINY"), "zip", tu_folder)
    model = tmp_path / "model"
    assert outcome(capsys, "fit", tu_folder, "--out", model, *QUICK)[0] == 0
    words = [command, zipped, "--out", model, *QUICK] if command == "fit" else [command, model, zipped]
    monkeypatch.setenv("BELLNET_CACHE", str(tmp_path / "empty"))
    code, _, error = outcome(capsys, *words, "--max-unpacked", "10")
    assert code == 2
    size = (tu_folder / "TINY_graph_indicator.txt").stat().st_size
    assert f"TINY_graph_indicator.txt unpacks to {size} bytes; at most 10 are read." in error
    assert f"--max-unpacked {size}" in error
    assert outcome(capsys, *words, "--max-unpacked", "10000", "--max-ratio", "1.5")[0] == 0  # a small file may have any


def test_a_file_name_that_is_too_long_is_refused(folder, capsys):
    code, printed, text = outcome(capsys, "fit", folder, "--out", "n" * 300)
    assert (code, printed) == (2, "")
    assert text.endswith("cannot be written: File name too long.\nChoose another path.\n")


def test_a_model_of_another_format_is_refused(folder, capsys):
    code, printed, text = outcome(capsys, "evaluate", folder / "labels.csv", folder)
    assert (code, printed) == (2, "")
    assert "this is not a safetensors file, or it is incomplete" in text


@pytest.mark.parametrize("name", ["mutag", "far/from/here", "nowhere"])
def test_an_unknown_data_set_is_not_downloaded(capsys, tmp_path, monkeypatch, name):
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
def test_special_files_are_refused_before_training(folder, tmp_path, capsys, monkeypatch, command, make, kind):
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
def test_a_read_only_directory_is_refused_before_training(folder, tmp_path, capsys, monkeypatch, command):
    def forbid(path, *mode, **options):
        raise OSError(errno.EROFS, "Read-only file system", str(path))

    monkeypatch.setattr(os, "mkdir", forbid)
    words = ["fit", folder] if command == "fit" else ["predict", tmp_path / "no model", folder]
    code, _, complaint = outcome(capsys, *words, "--out", tmp_path / "new")
    assert code == 2
    assert complaint == (
        f"bellnet {command}: --out {tmp_path / 'new'} cannot be written: Read-only file system.\nChoose another path.\n"
    )


def test_a_full_disk_does_not_change_the_old_table(model, folder, tmp_path, capsys, monkeypatch):
    def full(descriptor):
        raise OSError(errno.ENOSPC, "No space left on device")

    (tmp_path / "predictions.csv").write_text("old")
    before = sorted(path.name for path in tmp_path.iterdir())
    monkeypatch.setattr(os, "fsync", full)
    code, printed, complaint = outcome(capsys, "predict", model, folder, "--out", tmp_path / "predictions.csv")
    assert (code, printed) == (2, "")
    assert complaint == (
        f"bellnet predict: --out {tmp_path / 'predictions.csv'} cannot be written: No space left on device.\n"
        "Choose another path.\n"
    )
    assert (tmp_path / "predictions.csv").read_text() == "old"
    assert sorted(path.name for path in tmp_path.iterdir()) == before


STRANGE = {b"=1+1": b"star", b"-2": b"path", b"-x\x1b[2J": b"star", b"caf\xe9": b"path"}
"""Names of files, as bytes, and classes."""


@pytest.fixture
def strange(tmp_path):
    """Graphs in files whose names a terminal or a spreadsheet would obey, or that are not UTF-8; so are the classes."""
    directory = tmp_path / "strange"
    directory.mkdir()
    graphs, _ = stars_and_paths(4)
    lines = [b"file,label"]
    for graph, (name, label) in zip(graphs, STRANGE.items(), strict=True):
        networkx.write_graphml(to_networkx(graph), directory / os.fsdecode(name + b".graphml"))
        lines.append(name + b".graphml,=" + label + b"\x1b[31m")
    (directory / "labels.csv").write_bytes(b"\n".join(lines) + b"\n")
    return directory


@pytest.fixture
def strange_model(strange, tmp_path, capsys):
    assert outcome(capsys, "fit", strange, "--out", tmp_path / "strange-model", *QUICK)[0] == 0
    return tmp_path / "strange-model"


def test_tables_have_neither_formulas_nor_control_characters(strange_model, strange, tmp_path, capsys):
    assert outcome(capsys, "predict", strange_model, strange, "--out", tmp_path / "predictions.csv")[0] == 0
    written = (tmp_path / "predictions.csv").read_bytes()
    assert not {*range(32), 127} & {*written} - {10}
    head, *rows = [line.split(b",") for line in written.splitlines()]
    assert head == [b"graph", b"prediction", b"p(=path\\x1b[31m)", b"p(=star\\x1b[31m)"]
    assert sorted(row[0] for row in rows) == sorted([b"'=1+1", b"-2", b"'-x\\x1b[2J", b"caf\xe9"])
    assert {row[1] for row in rows} <= {b"'=path\\x1b[31m", b"'=star\\x1b[31m"}
    code, printed, _ = outcome(capsys, "predict", strange_model, strange, "--json")
    assert code == 0
    assert sorted(os.fsencode(row["graph"]) for row in json.loads(printed)) == sorted(STRANGE)


def test_classes_and_paths_are_printed_without_control_characters(strange_model, strange, tmp_path, capsys):
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


def test_names_that_are_not_utf_8_are_written_unchanged_to_a_pipe(strange_model, strange, monkeypatch):
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


def test_a_data_set_is_found_by_name_in_bellnet_data(capsys, tmp_path, tu_folder, monkeypatch):
    monkeypatch.setenv("BELLNET_DATA", str(tu_folder.parent))
    model = tmp_path / "model"
    code, printed, _ = outcome(capsys, "fit", "TINY", "--split", "0", "--out", model, *QUICK, "--json")
    assert code == 0
    assert (json.loads(printed)["data"], json.loads(printed)["graphs"]) == ("TINY", 6)
    code, printed, _ = outcome(capsys, "predict", model, "TINY", "--split", "0", "--json")
    assert (code, len(json.loads(printed))) == (0, 6)


def test_a_data_set_of_the_collection_is_downloaded(capsys, tmp_path, tu_folder, monkeypatch):
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


def test_a_path_takes_precedence_over_the_name_of_a_data_set(capsys, tmp_path, tu_folder, monkeypatch):
    monkeypatch.chdir(tu_folder.parent)
    tu_folder.rename(tu_folder.with_name("MUTAG"))
    code, printed, _ = outcome(capsys, "fit", "MUTAG", "--out", tmp_path / "model", *QUICK, "--json")
    assert (code, json.loads(printed)["graphs"]) == (0, 12)


def test_fractional_classes_need_the_option_regression(folder, tmp_path, capsys):
    rows = (folder / "labels.csv").read_text().splitlines()
    table = tmp_path / "numbers.csv"
    table.write_text("\n".join([rows[0], *(f"{row.split(',')[0]},{at / 10}" for at, row in enumerate(rows[1:]))]))
    words = ["fit", folder, "--labels", table, "--out", tmp_path / "m", *QUICK]
    code, _, complaint = outcome(capsys, *words)
    assert code == 2
    assert "--regression" in complaint
    assert not (tmp_path / "m").exists()
    assert outcome(capsys, *words, "--regression")[0] == 0
