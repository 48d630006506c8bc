"""The demonstration of message passing: training, text, picture, and failure."""

from dataclasses import replace
from functools import partial
from itertools import pairwise

import pytest
import torch

import experiments.message_passing as demo
from experiments.__main__ import main

pytest.importorskip("torch_geometric")


@pytest.fixture(scope="module")
def outcome():
    return demo.run(n_graphs=100, epochs=100)


def test_every_measured_error_is_within_its_bound(outcome):
    assert outcome.holds
    assert outcome.exact < 1e-12
    assert list(demo.DEPTHS) == list(range(2, 13))
    # The ranges of a second layer hold the errors of the first, so coarse products have a bound a little larger yet.
    for curve, most in ((outcome.product, 4.001), (outcome.network, 5)):
        assert min(curve.measured) > 0
        assert all(3.999 < coarse / fine < most for coarse, fine in pairwise(curve.bound))


def test_the_model_is_better_than_the_mean(outcome):
    assert outcome.loss[0] < 0.5 * outcome.loss[1]


def test_an_error_beyond_its_bound_fails(outcome):
    too_large = [2 * bound for bound in outcome.network.bound]
    assert not replace(outcome, network=replace(outcome.network, measured=too_large)).holds
    assert not replace(outcome, exact=1e-3).holds


def test_a_run_is_a_function_of_its_seed_and_leaves_the_generator_alone():
    torch.manual_seed(3)
    expected = torch.rand(2)
    torch.manual_seed(3)
    first, second = (demo.run(seed=seed, n_graphs=4, epochs=1) for seed in (5, 5))
    assert first.loss == second.loss
    assert torch.equal(torch.rand(2), expected)
    assert demo.run(seed=6, n_graphs=4, epochs=1).loss != first.loss


def test_the_text_has_the_diagrams_and_every_depth(outcome):
    lines = demo.show(outcome).splitlines()
    assert "  steps.0.replicate      aa->ab  aa->ba  ab->ab" in lines
    assert "  ab->aa  sum over b, place on the diagonal a" in lines
    table = [line.split() for line in lines[-11:]]
    assert [int(row[0]) for row in table] == list(range(2, 13))
    assert float(table[0][4]) == pytest.approx(outcome.network.bound[0], rel=0.05)
    assert max(map(len, lines)) <= 120


def test_the_command_prints_and_draws(monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(demo, "run", partial(demo.run, n_graphs=6, epochs=2))
    assert main(["message-passing", "--out", str(tmp_path / "new" / "place"), "--seed", "2"]) == 0
    picture = tmp_path / "new" / "place" / "message-passing.png"
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert capsys.readouterr().out.endswith(f"\nwrote {picture}\n")


def test_the_command_fails_if_a_bound_does_not_hold(monkeypatch, tmp_path, outcome):
    monkeypatch.setattr(demo, "run", lambda seed: replace(outcome, exact=1.0))
    assert main(["message-passing", "--out", str(tmp_path)]) == 1


def test_a_path_that_cannot_be_a_directory_is_refused(tmp_path, capsys):
    (tmp_path / "file").write_text("")
    assert main(["message-passing", "--out", str(tmp_path / "file")]) == 2
    assert "cannot be written: File exists" in capsys.readouterr().err
