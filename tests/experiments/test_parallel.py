"""One training on several processes: whose graphs are whose, and that the workers learn what one process learns."""

import multiprocessing
import os
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
import torch

from bellnet.errors import DataError, OptionError
from experiments.__main__ import main
from experiments.display import Display
from experiments.parallel import this_worker, worker_environment
from experiments.records import Records
from experiments.run import run_cell, run_cells
from tests.experiments.graphs import tiny, write_set
from tests.experiments.small import epochs_done, small

FIGURES = {
    "matrices": ("loss", "validation"),
    "fixed": ("loss", "train", "test", "test_loss"),
    "nested": ("loss", "train", "validation", "validation_loss", "test", "test_loss"),
}


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    return write_set(tmp_path_factory.mktemp("data"))


@pytest.fixture
def member(monkeypatch):
    """Makes this process one of several workers, without the others."""

    def become(rank, size):
        for name, value in worker_environment(rank, size).items():
            monkeypatch.setenv(name, value)

    return become


def _batches(learner, which):
    loader = learner.train_dataloader() if which == "train" else learner.val_dataloader()
    return [indices for _, indices in loader.sampler]


@pytest.mark.parametrize("size", [2, 3])
@pytest.mark.parametrize("which", ["train", "measured"])
@pytest.mark.parametrize("kind", ["graphs", "matrices"])
def test_every_example_of_a_batch_goes_to_exactly_one_process(data, member, kind, which, size):
    learner = (tiny(data=data, batch_size=7) if kind == "graphs" else small(train=45)).learner()
    whole = _batches(learner, which)
    shares = []
    for rank in range(size):
        member(rank, size)
        shares.append(_batches(learner, which))
    assert len({len(share) for share in shares}) == 1, "some process would wait for the others"
    for batch, *parts in zip(whole, *shares, strict=True):
        assert Counter(batch) == Counter(place for part in parts for place in part)


def test_a_process_is_alone_unless_it_is_told_otherwise(member):
    assert (this_worker().rank, this_worker().size) == (0, 1)
    member(1, 3)
    assert (this_worker().rank, this_worker().size, this_worker().is_leader) == (1, 3, False)


def test_a_process_without_a_share_has_a_loss_of_zero_and_a_gradient_of_zeros(data):
    learner = tiny(data=data).learner()
    loss = learner.training_step(("train", torch.zeros(0), learner.task.graphs.labels[:0]), 0)
    loss.backward()
    assert loss == 0
    assert all(torch.equal(weight.grad, torch.zeros_like(weight)) for weight in learner.net.parameters())


def test_the_loss_of_an_epoch_is_the_mean_over_graphs_and_not_over_batches(data):
    learner = tiny(data=data, batch_size=7).learner()  # batches of seven graphs and of one
    losses = []
    learner.begin_epoch()
    for batch in learner.train_dataloader():
        learner.training_step(batch, 0)
        _, graphs, labels = batch
        losses += torch.nn.functional.cross_entropy(learner.net(graphs), labels, reduction="none").tolist()
    assert float(learner._means["loss"].compute()) == pytest.approx(sum(losses) / len(losses), rel=1e-5)


WAYS = {
    "cluster": (
        {"devices": 2, "ray": "auto"},
        "--devices 2 --ray auto: a cell runs on one processor of a cluster.\n"
        "Leave --devices out: many cells at a time need less time than one on many processors.",
    ),
    "jobs": (
        {"devices": 2, "jobs": 3},
        "--jobs 3: with --devices, or under torchrun, cells run one after the other, on all processes.\n"
        "Leave --jobs out, or the others: many cells at a time need less time than one on many processes.",
    ),
}
UNDER_TORCHRUN = {
    "cluster": ({"ray": "auto"}, "--ray auto"),
    "devices": ({"devices": 3}, "--devices 3"),
}


@pytest.mark.parametrize("way", WAYS)
def test_ways_that_do_not_go_together_are_refused_before_anything_runs(way, tmp_path):
    options, words = WAYS[way]
    with pytest.raises(OptionError) as caught:
        run_cells([small()], tmp_path / "out", show=False, **options)
    assert str(caught.value) == words
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("way", UNDER_TORCHRUN)
def test_torchrun_is_told_of_options_that_do_not_fit_it(way, tmp_path, member):
    member(0, 2)
    options, named = UNDER_TORCHRUN[way]
    with pytest.raises(OptionError) as caught:
        run_cells([small()], tmp_path, show=False, **options)
    assert str(caught.value) == (
        f"{named}: torchrun has started 2 processes on this machine, which train together.\n"
        "Leave the option out, or start the command without torchrun."
    )


def _close(mine, theirs, figures):
    for name in figures:
        assert mine["curves"][name] == pytest.approx(theirs["curves"][name], rel=2e-5), name


@pytest.mark.slow
def test_two_processes_learn_what_one_learns_from_the_joint_batch(data, tmp_path):
    # Batches of seven and of one graph: shares of four and three, and of one and none. Of matrices five and four.
    cells = {
        "matrices": small(batch_size=9, epochs=4, learning_rate=0.003),
        "fixed": tiny(data=data, batch_size=7, epochs=4),
        "nested": tiny(data=data, layout="sparse", protocol="nested", validation_part=4, batch_size=5, epochs=4),
    }
    ones = run_cells(list(cells.values()), tmp_path / "one", show=False)

    def stop(epoch):
        if epoch["epoch"] == 2:
            raise KeyError

    with pytest.raises(KeyError):  # two epochs are kept, and both processes go on from there
        run_cell(cells["nested"], tmp_path / "two", stop)
    assert epochs_done(tmp_path / "two", cells["nested"]) == 2
    twos = run_cells(list(cells.values()), tmp_path / "two", devices=2, show=False)
    for kind, one, two in zip(cells, ones, twos, strict=True):
        _close(two, one, FIGURES[kind])
        assert one["curves"]["loss"][0] != one["curves"]["loss"][-1]
    assert epochs_done(tmp_path / "two", cells["fixed"]) == 4


AND_THREADS = """if True:
    import runpy, sys
    from pathlib import Path
    try:
        runpy.run_module("experiments", run_name="__main__")
    finally:
        names = [name.read_text() for name in Path("/proc/self/task").glob("*/comm")]
        print("left over:", sum("gloo" in name for name in names), file=sys.stderr)
"""


@pytest.mark.slow
def test_torchrun_gives_one_table_of_all_its_processes_and_leaves_no_threads_behind(data, tmp_path, capsys):
    command = ["table3", "--data", str(data), "--set", "MUTAG", "--split", "0", "--epochs", "2", "--silent", "--out"]
    assert main([*command, str(tmp_path / "one")]) == 0
    alone = capsys.readouterr().out
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    script = tmp_path / "script.py"
    script.write_text(AND_THREADS)
    together = subprocess.run(
        [*torchrun, script, *command, tmp_path / "two"],
        capture_output=True,
        text=True,
        env={**os.environ, "GLOO_SOCKET_IFNAME": "lo", "PYTHONPATH": str(Path(__file__).parents[2])},
    )
    assert together.returncode == 0, together.stderr
    assert _table(together.stdout) == _table(alone)
    # One that is late when Python ends would kill the process.
    assert together.stderr.count("left over: 0\n") == 2
    (one,), (two,) = (Records(tmp_path / name).read().values() for name in ("one", "two"))
    _close(two, one, FIGURES["fixed"])


def _table(printed):
    """What is printed of accuracies; how long it took is another matter."""
    return printed.partition("Table 3: seconds")[0].rstrip()


@pytest.mark.slow
def test_a_process_of_a_team_that_dies_is_reported_and_none_is_left(tmp_path, monkeypatch):
    cell, members, strangers = small(epochs=5000), [], multiprocessing.active_children()

    def kill(display, cell, epoch):
        if not members:
            members.extend(process for process in multiprocessing.active_children() if process not in strangers)
            os.kill(members[0].pid, signal.SIGKILL)

    monkeypatch.setattr(Display, "epoch", kill)
    with pytest.raises(DataError, match=f"The process that ran {cell.title} ended with code -9 before it was done."):
        run_cells([cell], tmp_path, devices=2, show=False)
    assert [process.is_alive() for process in members] == [False, False]
