import dataclasses
import json

import pytest
import torch

from bellnet import EquivariantLinear, Padded
from experiments import verify
from experiments.__main__ import main


@pytest.fixture(scope="module")
def rows():
    return verify.verify()


def failed(rows):
    return [row.statement for row in rows if not row.ok]


def test_every_statement_holds(rows):
    assert failed(rows) == []


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ('"n ->" has Bell(1) maps', "1"),
        ('"n -> n" has Bell(2) maps', "2"),
        ('"n n ->" has Bell(2) maps', "2"),
        ('"n n -> n n" has Bell(4) maps', "15"),
        ('"n n n -> n n n" has Bell(6) maps', "203"),
        ('"u i -> u i" has Bell(2) x Bell(2) maps', "4"),
        ('"u u i -> u i" has Bell(3) x Bell(2) maps', "10"),
        ("equality patterns (n = 2)", "8"),
        ("the mean of tr(P)^6 over all permutations is Bell(6)", "203"),
        ('orbits of "n n -> n n" are orthogonal', "0"),
        ('maps of "n n -> n n" have unit max operator norm', "0"),
        ("maps on symmetric inputs (n = 5)", "11"),
        ("maps on symmetric inputs with zero diagonal", "6"),
        ("Hartford et al.", "4"),
        ("appendix A", "15"),
        ('a random layer "u -> u i" commutes with permutations', "yes"),
    ],
)
def test_the_numbers_of_the_paper_are_among_the_statements(rows, words, expected):
    matching = [row for row in rows if words in row.statement]
    assert matching
    assert {(row.expected, row.found) for row in matching} == {(expected, expected)}


def test_rows_are_frozen_and_all_different(rows):
    with pytest.raises(dataclasses.FrozenInstanceError):
        rows[0].ok = False
    assert len({(row.statement, row.expected) for row in rows}) == len(rows)


def test_verifying_leaves_random_numbers_and_the_gradient_mode_alone():
    torch.manual_seed(0)
    expected = torch.randn(2)
    torch.manual_seed(0)
    verify.verify(seed=3)
    assert torch.equal(torch.randn(2), expected)
    assert torch.is_grad_enabled()


def test_the_table_shows_a_tick_or_a_cross_for_each_row(rows):
    wrong = dataclasses.replace(rows[0], found="7", ok=False)
    lines = verify.show([*rows, wrong]).splitlines()
    assert lines[0].split() == ["statement", "expected", "found"]
    assert all(line.startswith("✓  ") for line in lines[1:-3])
    assert lines[-3].startswith("✗  ")
    assert lines[-3].split()[-2:] == ["1", "7"]
    assert lines[-1] == f"{len(rows)} of {len(rows) + 1} statements hold."


def with_layer(monkeypatch, forward):
    """The rows that are crossed out of a faulty layer."""

    class Faulty(EquivariantLinear):
        pass

    Faulty.forward = forward
    monkeypatch.setattr(verify, "EquivariantLinear", Faulty)
    return [row for row in verify.verify() if not row.ok]


def test_a_map_that_is_lost_is_crossed_out(monkeypatch):
    def without_transpose(layer, x, **options):
        names = [diagram.name for diagram in layer.plan.diagrams]
        if "ab->ba" in names:
            layer.weight.data[names.index("ab->ba")] = 0
        return EquivariantLinear.forward(layer, x, **options)

    crossed = with_layer(monkeypatch, without_transpose)
    assert [(row.expected, row.found) for row in crossed if "Bell(4) maps" in row.statement] == [("15", "14")]
    assert [row.found for row in crossed if "appendix A" in row.statement] == ["14 and 15, together 15"]
    assert not [row for row in crossed if "commutes" in row.statement]


def test_a_layer_that_depends_on_the_first_node_is_crossed_out(monkeypatch):
    def not_equivariant(layer, x, **options):
        y = EquivariantLinear.forward(layer, x, **options)
        if str(layer.spec) == "n n -> n n" and isinstance(x, torch.Tensor):
            y = y + 0.01 * x[..., :1, :1, :].sum(-1, keepdim=True)
        return y

    crossed = with_layer(monkeypatch, not_equivariant)
    found = {row.statement: row.found for row in crossed}
    assert found['a random layer "n n -> n n" commutes with permutations'].startswith("largest difference 0.")
    assert any("appendix A" in statement for statement in found)
    assert any("unit max operator norm" in statement for statement in found)
    assert all('"n n -> n n"' in statement for statement in found)


def test_a_layer_that_depends_on_padding_is_crossed_out(monkeypatch):
    def larger_if_padded(layer, x, **options):
        y = EquivariantLinear.forward(layer, x, **options)
        return y.map(lambda values: 1.01 * values) if isinstance(y, Padded) else y

    crossed = with_layer(monkeypatch, larger_if_padded)
    assert {row.statement.split('"')[1] for row in crossed} == {
        "n n -> n n",
        "n n n -> n",
        "u u i -> u i",
        "-> n n",
        "u -> u i",
    }
    assert all(row.statement.endswith("does not depend on padding, nor do its gradients") for row in crossed)


@pytest.mark.parametrize("ok", [True, False])
def test_verify_prints_its_rows_and_fails_if_one_of_them_does(capsys, monkeypatch, ok):
    rows = [verify.Row("2 and 2 are 4", "4", "4", True), verify.Row("Bell(3) is 5", "5", "?", ok)]
    monkeypatch.setattr(verify, "verify", lambda: rows)
    assert main(["verify"]) == (0 if ok else 1)
    assert capsys.readouterr() == (f"{verify.show(rows)}\n", "")
    assert main(["verify", "--json"]) == (0 if ok else 1)
    assert json.loads(capsys.readouterr().out) == [
        {"statement": "2 and 2 are 4", "expected": "4", "found": "4", "ok": True},
        {"statement": "Bell(3) is 5", "expected": "5", "found": "?", "ok": ok},
    ]
