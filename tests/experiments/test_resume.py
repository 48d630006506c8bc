"""Resuming: whatever was lost or damaged when a cell was stopped, it ends with the figures it would have had."""

import errno
import os
import resource
import shutil
import signal
import stat

import pytest
import torch

from bellnet.errors import DataError
from experiments.display import Display
from experiments.records import Records
from experiments.run import run_cell, run_cells
from tests.experiments.graphs import tiny, write_set
from tests.experiments.processes import ended, started
from tests.experiments.small import small, timeless

EPOCHS = 6
STOPPED = 4
"""The epoch in which cells are stopped, after its line and before its checkpoint; the first is 0."""


class _StopError(Exception):
    pass


@pytest.fixture(scope="module")
def cells(tmp_path_factory):
    """One cell of each kind: the best epoch counts, it does for graphs, the last epoch counts."""
    data = write_set(tmp_path_factory.mktemp("data"))
    return {
        "matrices": small(epochs=EPOCHS),
        "nested": tiny(data=data, epochs=EPOCHS, protocol="nested", validation_part=4, learning_rate=0.01),
        "fixed": tiny(data=data, epochs=EPOCHS),
    }


@pytest.fixture(scope="module")
def undisturbed(cells, tmp_path_factory):
    """The record of each cell when it is not stopped, without times."""
    found = {}
    for kind, cell in cells.items():
        directory = tmp_path_factory.mktemp(kind)
        run_cells([cell], directory, show=False)
        found[kind] = _figures(directory, cell)
    return found


def _figures(directory, cell):
    return timeless(Records(directory).read()[cell.key])


def _stop(cell, directory, epoch=STOPPED):
    """Run a cell until an epoch is reported, whose checkpoint is not yet written; returns the path of that."""

    def report(figures):
        if figures["epoch"] == epoch:
            raise _StopError

    with pytest.raises(_StopError):
        run_cell(cell, directory, report)
    return Records(directory).checkpoint(cell.key)


@pytest.fixture
def resume(capsys, monkeypatch):
    """Runs what was stopped; returns the warnings, and the epochs that were run."""
    epochs = []
    show = Display.epoch
    monkeypatch.setattr(Display, "epoch", lambda *given: (epochs.append(given[-1]["epoch"]), show(*given))[1])

    def resume(cell, directory):
        epochs.clear()
        capsys.readouterr()
        run_cells([cell], directory, show=False)
        return capsys.readouterr().err, list(epochs)

    return resume


KINDS = pytest.mark.parametrize("kind", ["matrices", "nested", "fixed"])


@KINDS
@pytest.mark.parametrize("place", ["same", "moved", "copied"])
def test_a_stopped_cell_goes_on_where_it_was_also_in_another_directory(
    kind, place, cells, undisturbed, tmp_path, resume
):
    path = _stop(cells[kind], tmp_path / "before")
    before, directory = path.read_bytes(), tmp_path / ("before" if place == "same" else "after")
    if place != "same":
        (shutil.copytree if place == "copied" else shutil.move)(tmp_path / "before", directory)
    assert resume(cells[kind], directory) == ("", [4, 5])
    assert _figures(directory, cells[kind]) == undisturbed[kind]
    assert place != "copied" or path.read_bytes() == before


def _cut(path, thousandths):
    path.write_bytes(path.read_bytes()[: (path.stat().st_size - 1) * thousandths // 1000])


def _flip(path):
    """Change one weight in the middle of the file, which torch does not notice."""
    content = bytearray(path.read_bytes())
    weight = max(torch.load(path, weights_only=True)["state_dict"].values(), key=torch.Tensor.numel)
    content[content.index(weight.numpy().tobytes()) + 5] ^= 64
    path.write_bytes(content)
    torch.load(path, weights_only=True)


def _replace(path, **changes):
    torch.save({**torch.load(path, weights_only=True), **changes}, path)


DAMAGE = {
    **{f"cut off at {place}": lambda path, place=place: _cut(path, place) for place in (0, 1, 321, 864, 1000)},
    "a flipped bit": _flip,
    "no zip": lambda path: path.write_bytes(b"nothing of the kind"),
    "another dictionary": lambda path: torch.save({"epoch": 3}, path),
    "a list": lambda path: torch.save([1], path),
    "another network": lambda path: _replace(path, state_dict={"net.weight": torch.zeros(2)}),
    "no epochs": lambda path: _replace(path, experiments={"epochs": [], "best": None, "random": None}),
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_a_damaged_checkpoint_is_reported_and_the_cell_starts_again(damage, cells, undisturbed, tmp_path, resume):
    cell = cells["nested"]
    path = _stop(cell, tmp_path)
    DAMAGE[damage](path)
    said, run = resume(cell, tmp_path)
    assert said == f"{cell.title}: {path} is damaged or of another network; it starts again from the beginning.\n"
    assert run == list(range(EPOCHS))
    assert _figures(tmp_path, cell) == undisturbed["nested"]


def test_records_that_were_deleted_are_made_again_without_training(cells, undisturbed, tmp_path, resume):
    cell = cells["nested"]
    run_cells([cell], tmp_path, show=False)
    Records(tmp_path).path.unlink()
    assert resume(cell, tmp_path) == ("", [])
    assert _figures(tmp_path, cell) == undisturbed["nested"]


def test_a_full_disk_is_reported_and_the_previous_checkpoint_stays(cells, undisturbed, tmp_path, resume, monkeypatch):
    cell = cells["matrices"]
    path = _stop(cell, tmp_path, 2)
    before, fsync = path.read_bytes(), os.fsync

    def full(file):
        if stat.S_ISREG(os.fstat(file).st_mode):  # directories are synced as well
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        fsync(file)

    with monkeypatch.context() as patch, pytest.raises(DataError) as caught:
        run_cell(cell, tmp_path, lambda epoch: epoch["epoch"] == 2 and patch.setattr("os.fsync", full))
    assert str(caught.value) == (
        f"{path} cannot be written: No space left on device.\n"
        "What was done before is kept. Once that is fixed, the same command goes on from there."
    )
    assert path.read_bytes() == before
    assert resume(cell, tmp_path) == ("", [2, 3, 4, 5])
    assert _figures(tmp_path, cell) == undisturbed["matrices"]


def _run_limited(cell, directory, limit, end):
    """In a process of its own: after the epoch files may not be longer than that."""

    def report(figures):
        if figures["epoch"] == STOPPED:
            resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))

    if end == "killed":
        signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
    run_cell(cell, directory, report)


@pytest.mark.slow
@pytest.mark.parametrize(("end", "kept"), [("killed", 400), ("killed", 1000), ("refused", 700)])
def test_a_cell_that_ends_within_a_checkpoint_goes_on_with_the_one_before(
    end, kept, cells, undisturbed, tmp_path, resume
):
    """The system ends the process at that byte of the file, or refuses to write more."""
    cell = cells["matrices"]
    path = _stop(cell, tmp_path)
    limit = (path.stat().st_size - 1) * kept // 1000
    code, said = ended(*started(_run_limited, cell, tmp_path, limit, end))
    if end == "killed":
        assert code == -signal.SIGXFSZ
    else:
        assert code == 1
        assert "ckpt cannot be written: File too large.\n" in said
    assert resume(cell, tmp_path) == ("", [4, 5])
    # What a killed process leaves is removed once it is a day old; it may still be in use before.
    assert [found.name for found in path.parent.glob("[!.]*")] == [path.name]
    assert _figures(tmp_path, cell) == undisturbed["matrices"]
