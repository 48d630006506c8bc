"""Model files with forged values and a valid checksum: each is a DataError that names file and field."""

import json
import math

import numpy as np
import pytest

from bellnet.errors import DataError
from bellnet.estimator import load
from tests.estimator.small import classifier, leaves, regressor, with_features
from tests.estimator.stored import changed

HUGE = 10**400


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    graphs, labels = leaves()
    graphs = [with_features(graph) for graph in graphs]
    names = np.array(["ja", "nein"])[labels]
    folder = tmp_path_factory.mktemp("forged")
    classifier(class_weight={"ja": 2.0}, degree_bins=4, size_feature=True).fit(graphs, names).save(
        folder / "classifier"
    )
    regressor(max_epochs=1).fit(graphs, labels.astype(float)).save(folder / "regressor")
    return {name: (folder / name).read_bytes() for name in ("classifier", "regressor")}


def refusal(saved, tmp_path, kind, change):
    path = tmp_path / "model"
    path.write_bytes(saved[kind])
    changed(path, change)
    with pytest.raises(DataError) as caught:
        load(path)
    words = str(caught.value)
    assert words.startswith(f"load({str(path)!r}): ")
    return words


def unfolded(described):
    """The description, with the JSON of the encoding read as well."""
    return {**described, "encoding": json.loads(described["encoding"])}


def set_at(position, value):
    """The change of a description that sets a value in it."""

    def change(described):
        whole = unfolded(described)
        inner = whole
        for key in position[:-1]:
            inner = inner[key]
        inner[position[-1]] = value
        described.update({**whole, "encoding": json.dumps(whole["encoding"])})

    return change


def positions_of_numbers(value, position=()):
    """Where the numbers of a description are."""
    if isinstance(value, dict | list):
        for key, item in value.items() if isinstance(value, dict) else enumerate(value):
            yield from positions_of_numbers(item, (*position, key))
    elif isinstance(value, int | float):
        yield position


def shown(position):
    """A position as messages name it."""
    return "".join(f"[{key}]" if isinstance(key, int) else f".{key}" for key in position).removeprefix(".")


@pytest.mark.parametrize(
    "number", [HUGE, -HUGE, math.nan, math.inf, -math.inf], ids=["huge", "-huge", "nan", "inf", "-inf"]
)
@pytest.mark.parametrize("kind", ["classifier", "regressor"])
def test_every_number_of_a_file_must_fit_64_bits(saved, tmp_path, kind, number):
    path = tmp_path / "model"
    path.write_bytes(saved[kind])
    found = []
    changed(path, lambda described: found.extend(positions_of_numbers(unfolded(described))))
    assert len(found) > 30
    for position in found:
        if position[0] == "history" and isinstance(number, float) and position[-1] != "epoch":
            continue  # an epoch of a fit that diverged has such a loss
        words = refusal(saved, tmp_path, kind, set_at(position, number))
        named = [shown(position)]
        if position[0] == "encoding":  # JSON inside JSON
            named = ["encoding", shown(position[1:])]
        elif position[0] == "history":
            named = [shown(position[:2])]
        assert all(name in words for name in named), (position, words)


def test_an_integer_of_more_digits_than_python_reads_is_refused(saved, tmp_path):
    def change(described):
        described["instead"] = json.dumps({**described, "n_nodes": [1, "HERE"]}).replace('"HERE"', "9" * 5000)

    assert "n_nodes[1]" in refusal(saved, tmp_path, "classifier", change)


FORGED = [
    ("classifier", ("n_nodes",), [True, 9], "n_nodes"),
    ("classifier", ("n_nodes",), [-1, 9], "n_nodes"),
    ("classifier", ("n_nodes",), [[1], 9], "n_nodes"),
    ("classifier", ("n_nodes",), [1, 9.0], "n_nodes"),
    ("classifier", ("n_estimators",), True, "n_estimators"),
    ("classifier", ("n_estimators",), -1, "n_estimators"),
    ("classifier", ("n_estimators",), [1], "n_estimators"),
    ("classifier", ("version",), 10.0, "version"),
    ("classifier", ("version",), True, "version"),
    ("classifier", ("best_epoch",), True, "best_epoch"),
    ("classifier", ("best_epoch",), -1, "best_epoch"),
    ("classifier", ("history", 0, "epoch"), 1, "history[0]"),
    ("classifier", ("history", 1, "epoch"), True, "history[1]"),
    ("classifier", ("history", 1, "epoch"), -1, "history[1]"),
    ("classifier", ("history", 1, "loss"), True, "history[1]"),
    ("classifier", ("history", 1, "loss"), "1", "history[1]"),
    ("classifier", ("history", 1, "loss"), None, "history[1]"),
    ("classifier", ("history", 1, "validation_loss"), [1], "history[1]"),
    ("classifier", ("history", 1, "accuracy"), {"a": 1}, "history[1]"),
    ("classifier", ("history", 1), {}, "history[1]"),
    ("classifier", ("labels", "names"), 3, "labels"),
    ("classifier", ("labels",), [1], "labels"),
    ("classifier", ("encoding", "degrees"), [1], "encoding"),
    ("classifier", ("encoding", "degrees", 1), -1, "encoding"),
    ("classifier", ("encoding", "degrees", 1), True, "encoding"),
    ("classifier", ("encoding", "degree_bins", 0), -1, "encoding"),
    ("classifier", ("encoding", "degree_bins", 0), [0], "encoding"),
    ("classifier", ("encoding", "node_features"), True, "encoding"),
    ("classifier", ("encoding", "node_features"), -1, "encoding"),
    ("classifier", ("scaling", "node", "mean", 0), True, "scaling"),
    ("classifier", ("scaling", "node", "mean", 0), [1], "scaling"),
    ("classifier", ("scaling", "node", "scale", 0), -1, "scaling"),
    ("classifier", ("options", "class_weight"), {"a": 1}, "class_weight"),
    ("classifier", ("options", "class_weight"), {"pairs": 1}, "class_weight"),
    ("classifier", ("options", "class_weight"), {"pairs": [1]}, "class_weight"),
    ("classifier", ("options", "class_weight"), {"pairs": [["ja", [1]]]}, "class_weight"),
    ("classifier", ("options", "class_weight"), {"pairs": [[["ja"], 1]]}, "class_weight"),
    ("classifier", ("options", "batch_size"), {"pairs": [[1, 1]]}, "batch_size"),
    ("classifier", ("options", "batch_size"), {"a": 1}, "batch_size"),
    ("classifier", ("options", "batch_size"), True, "batch_size"),
    ("classifier", ("options", "batch_size"), -1, "batch_size"),
    ("classifier", ("options", "channels", 0), True, "channels"),
    ("classifier", ("options", "channels", 0), [4], "channels"),
    ("classifier", ("options", "learning_rate"), True, "learning_rate"),
    ("classifier", ("options", "random_state"), True, "random_state"),
    ("classifier", ("options", "random_state"), -1, "random_state"),
    ("regressor", ("labels", "several"), 1, "several"),
    ("regressor", ("labels", "scaling", "scale", 0), -1, "labels"),
    ("regressor", ("labels", "scaling", "mean", 0), True, "labels"),
    ("regressor", ("labels", "scaling"), [1], "labels"),
]


@pytest.mark.parametrize(("kind", "position", "value", "field"), FORGED, ids=str)
def test_an_invalid_field_is_named(saved, tmp_path, kind, position, value, field):
    assert field in refusal(saved, tmp_path, kind, set_at(position, value))


def test_deeply_nested_json_is_refused(saved, tmp_path):
    deep = 0
    for _ in range(200):
        deep = [deep]
    assert "nested too deeply" in refusal(saved, tmp_path, "classifier", set_at(("n_nodes",), deep))
    assert "nested too deeply" in refusal(saved, tmp_path, "classifier", set_at(("encoding", "degrees"), deep))


def test_an_infinite_loss_of_a_later_epoch_can_be_read(saved, tmp_path):
    path = tmp_path / "model"
    path.write_bytes(saved["classifier"])
    changed(path, set_at(("history", 1, "validation_loss"), math.inf))
    assert load(path).history_[1]["validation_loss"] == math.inf
