"""Running cells: once, side by side, and again after they were killed."""

import time

import pytest
import torch

from bellnet.errors import DataError, MissingExtraError
from experiments.display import Display
from experiments.matrix_learner import MatrixNet, training_data
from experiments.matrix_learner import test_data as data_of_test
from experiments.records import Records
from experiments.run import check_extra, run_cells
from tests.experiments.dying import die
from tests.experiments.graphs import tiny, write_set
from tests.experiments.processes import killed, run_one, started
from tests.experiments.small import SMALL, epochs_done, small, timeless


def _figures(record):
    measured = "errors" if "errors" in record else "accuracy"
    return {name: record[name] for name in (measured, "validation", "best_epoch", "parameters")}


def test_a_cell_is_trained_tested_and_recorded(tmp_path):
    (final,) = run_cells([SMALL], tmp_path, show=False)
    assert Records(tmp_path).read() == {SMALL.key: final}
    lengths = {name: len(values) for name, values in final["curves"].items()}
    assert lengths == dict.fromkeys(("loss", "validation", "learning_rate", "seconds"), 3)
    rates = final["curves"]["learning_rate"]
    assert rates[-1] < rates[0] < SMALL.learning_rate
    assert final["config"] == SMALL.to_json()
    assert set(final["errors"]) == {"4"}
    assert final["validation"] == min(final["curves"]["validation"])
    assert final["versions"]["torch"] == torch.__version__
    assert final["machine"]["threads"] == 1


def test_a_finished_cell_is_not_run_again(tmp_path, monkeypatch):
    cells = [SMALL, small(method="trivial")]
    first = run_cells(cells, tmp_path, show=False)
    before = Records(tmp_path).path.read_bytes()
    assert run_cells(cells, tmp_path, show=False) == first
    assert Records(tmp_path).path.read_bytes() == before


def test_the_trivial_predictor_says_the_mean(tmp_path):
    (final,) = run_cells([small(method="trivial", train=2000, test=1000)], tmp_path, show=False)
    # A diagonal entry has variance 100 / 12, and one entry in four is one; the others are always zero.
    assert final["errors"]["4"] == pytest.approx(100 / 12 / 4, rel=0.1)


@pytest.mark.slow
def test_cells_side_by_side_give_what_they_give_in_turn(tmp_path):
    data = write_set(tmp_path / "data")
    cells = [small(seed=seed, method=method) for seed in (0, 1) for method in ("bellnet", "hartford")]
    cells += [tiny(data=data, split=split, layout=layout) for split, layout in enumerate(("dense", "sparse"))]
    together = run_cells(cells, tmp_path / "together", jobs=2, show=False)
    in_turn = run_cells(cells, tmp_path / "in turn", show=False)
    assert [_figures(record) for record in together] == [_figures(record) for record in in_turn]
    assert len({record["errors"]["4"] for record in together[:4]}) == 4
    assert len(Records(tmp_path / "together").read()) == 6


@pytest.mark.slow
def test_a_cell_that_was_killed_goes_on_and_ends_with_the_same_figures(tmp_path):
    cell = small(epochs=12, train=120)
    (whole,) = run_cells([cell], tmp_path / "whole", show=False)
    directory = tmp_path / "killed"
    process, _ = started(run_one, cell, directory)
    while epochs_done(directory, cell) < 3:
        assert process.is_alive()
        time.sleep(0.01)
    killed(process)
    assert 3 <= epochs_done(directory, cell) < 12
    assert not Records(directory).read()
    (resumed,) = run_cells([cell], directory, show=False)
    assert timeless(resumed) == timeless(whole)


def test_a_process_that_dies_is_reported_and_what_it_did_is_kept(tmp_path, monkeypatch):
    monkeypatch.setattr("experiments.parallel._work", die)
    with pytest.raises(DataError) as caught:
        run_cells([SMALL, small(seed=1)], tmp_path, jobs=2, show=False)
    assert "ended with code 3 before it was done.\nWhat was done before is kept." in str(caught.value)


@pytest.mark.parametrize("show", [False, True])
def test_what_everybody_should_know_is_said_as_it_is_whether_progress_is_shown_or_not(show, capsys):
    words = "/a/very/long/path" * 10 + "/[red]/cell.ckpt is damaged"
    with Display([SMALL], show=show) as display:
        display.note_of(SMALL, words)
    assert f"{SMALL.title}: {words}\n" in capsys.readouterr().err


def test_training_validation_and_test_examples_are_all_different():
    cell = small(train=300, validation=100, test=200)
    (train, _), (validation, _) = training_data(cell).values()
    everything = torch.cat([train, validation, data_of_test(cell, 4)[0]]).flatten(1)
    assert (len(train), len(validation)) == (200, 100)
    assert len(everything.unique(dim=0)) == 500


@pytest.mark.parametrize("task", ["symmetric", "diagonal", "singular", "trace"])
def test_layers_are_counted_without_the_output_layer(task):
    first, second = (MatrixNet(small(task=task, layers=layers, channels=8)) for layers in (1, 2))
    more = sum(p.numel() for p in second.parameters()) - sum(p.numel() for p in first.parameters())
    assert more == 15 * 8 * 8 + 2 * 8


@pytest.mark.parametrize("task", ["diagonal", "trace"])
def test_hidden_layers_begin_with_a_constant_bias(task):
    net = MatrixNet(small(task=task, layers=2, first_bias=4.0)).net
    biases = [weight for name, weight in net.named_parameters() if name.endswith("bias")]
    assert [bias[-1].unique().tolist() for bias in biases[:2]] == [[4.0], [4.0]]
    assert all((bias == 0).all() for bias in (biases[0][:-1], biases[1][:-1]))
    assert not any(4.0 in bias for bias in biases[2:])


def test_hartford_et_al_have_four_maps_and_one_bias_a_layer():
    first, second = (MatrixNet(small(method="hartford", layers=layers, channels=8)) for layers in (1, 2))
    more = sum(p.numel() for p in second.parameters()) - sum(p.numel() for p in first.parameters())
    assert more == 4 * 8 * 8 + 8


@pytest.mark.parametrize("task", ["symmetric", "diagonal", "singular", "trace"])
def test_the_change_of_units_is_undone(task):
    cell = small(task=task)
    net = MatrixNet(cell)
    inputs, targets = data_of_test(cell, 4)
    torch.testing.assert_close(net.scale_targets(net(inputs)), net.scaled(inputs))
    assert net(inputs).shape == targets.shape


def test_an_answer_per_node_grows_with_the_matrix_and_is_the_same_where_it_was_learned():
    torch.manual_seed(0)
    plain, per_node = MatrixNet(small(task="trace")), MatrixNet(small(task="trace", per_node=True))
    per_node.load_state_dict(plain.state_dict())
    for n in (2, 4, 12):
        inputs = data_of_test(small(task="trace"), n)[0]
        torch.testing.assert_close(per_node(inputs), plain(inputs) * n / 4)


def test_a_missing_package_is_named_with_the_remedy(monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None if name == "rich" else object())
    with pytest.raises(MissingExtraError) as caught:
        check_extra("table1")
    assert str(caught.value) == (
        "table1 needs rich, which is not installed.\n"
        "Install it, in the clone of the repository: pip install -e '.[experiments]'"
    )
