"""Growth of time and memory: the record is complete, and contestants stop when they run out of memory."""

import json

import pytest
import torch

from bellnet import EquivariantLinear
from benchmarks.baselines import Matrices
from benchmarks.growth import QUESTIONS, RECORDED, Prepared, Question, measure
from benchmarks.growth_pictures import PANELS, picture


def test_the_basis_as_matrices_computes_the_layer():
    layer = EquivariantLinear("n n -> n n", 2, 3, dtype=torch.float64)
    torch.nn.init.normal_(layer.bias)
    x = torch.randn(2, 4, 4, 2, dtype=torch.float64)
    torch.testing.assert_close(Matrices(layer, 4)(x), layer(x))


def test_every_size_has_time_and_memory_of_every_contestant():
    rows = list(measure(QUESTIONS["order"], quick=True))
    assert [row["size"] for row in rows] == [1, 2]
    for row in rows:
        assert set(row["found"]) == {"ours", "einsums"}
        assert all(one["seconds"] > 0 and one["bytes"] > 0 for one in row["found"].values())


def test_a_contestant_out_of_memory_stops():
    prepared = []

    def make(name, size):
        prepared.append((name, size))
        if name == "large" and size > 1:
            raise RuntimeError("DefaultCPUAllocator: can't allocate memory")
        return Prepared(lambda: torch.ones(100).sum())

    rows = list(measure(Question("x", (), (1, 2, 3), ("small", "large"), make), quick=True))
    assert [row["stopped"] for row in rows] == [[], ["large"], ["large"]]
    assert [set(row["found"]) for row in rows] == [{"small", "large"}, {"small"}, {"small"}]
    assert ("large", 3) not in prepared


def test_other_errors_are_raised():
    def make(name, size):
        raise RuntimeError("something else")

    with pytest.raises(RuntimeError, match="something else"):
        list(measure(Question("x", (), (1,), ("one",), make), quick=True))


def test_the_record_has_every_question_and_the_picture_a_panel_for_each():
    record = json.loads(RECORDED.read_text(encoding="utf-8"))
    assert set(record) == set(QUESTIONS) == {name for name, *_ in PANELS}
    for name, question in QUESTIONS.items():
        assert [row["size"] for row in record[name]["rows"]] == list(question.sizes)
        assert record[name]["commit"]
    assert len(picture(record).axes) == len(PANELS)
