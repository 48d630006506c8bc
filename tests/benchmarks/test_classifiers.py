"""The comparison of classifiers: what it records, and that it goes on where it was."""

import json

import numpy as np
import pytest

from bellnet.data import generated
from bellnet.data.tu import TUSet
from bellnet.experiments import Records
from benchmarks import classifiers


@pytest.fixture
def data(monkeypatch, tmp_path):
    """Small generated sets with three splits under any name."""
    graphs, labels = generated.leaf_pairs(30)
    parts = np.split(np.arange(30), 3)
    splits = [(np.setdiff1d(np.arange(30), part), part) for part in parts]
    monkeypatch.setattr(classifiers.tu, "load", lambda name, data: TUSet(name, graphs, labels, (0, 1), None, splits))
    return tmp_path / "data"


def test_the_kernel_finds_what_colour_refinement_tells_apart():
    graphs, labels = generated.leaf_pairs(60)
    found, chosen = classifiers.kernel(graphs[:40], labels[:40].numpy(), graphs[40:])
    assert (found == labels[40:].numpy()).mean() > 0.9
    assert chosen["depth"] in classifiers.DEPTHS
    assert chosen["C"] in classifiers.PENALTIES


def test_every_split_is_recorded_once_and_the_table_has_all(data, tmp_path, capsys, monkeypatch):
    asked = []

    def guess(train, labels, test):
        asked.append((len(train), len(test)))
        return np.zeros(len(test)), {"nothing": 1}

    monkeypatch.setitem(classifiers.METHODS, "bellnet", guess)
    monkeypatch.setitem(classifiers.METHODS, "WL + SVM", guess)
    command = ["A", "B", "--data", str(data), "--out", str(tmp_path / "out")]
    classifiers.main([*command, "--splits", "2", "--method", "bellnet"])
    assert asked == [(20, 10)] * 4
    classifiers.main([*command, "--splits", "3"])
    assert len(asked) == 12
    records = Records(tmp_path / "out").finished()
    assert len(records) == 12
    assert all(record["accuracy"] == 0.5 for record in records.values())
    text = (tmp_path / "out" / "table.md").read_text()
    assert "| bellnet | 50.0 ± 0.0 (3 splits) | 50.0 ± 0.0 (3 splits) |" in text
    assert text in capsys.readouterr().out
    assert json.loads((tmp_path / "out" / "records.jsonl").read_text().splitlines()[0])["chosen"] == {"nothing": 1}
