"""Resuming: whatever was lost or damaged when a cell was stopped, it ends with the figures it would have had."""

import errno
import json
import os
import resource
import shutil
import signal
import stat

import pytest
import torch

from bellnet.errors import DataError
from experiments.records import Records
from experiments.run import run_cell, run_cells
from tests.experiments.graphs import tiny, write_set
from tests.experiments.processes import ended, run_one, started
from tests.experiments.small import small

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
    """The figures of each cell when it is not stopped."""
    found = {}
    for kind, cell in cells.items():
        directory = tmp_path_factory.mktemp(kind)
        run_cells([cell], directory, show=False)
        found[kind] = _figures(directory, cell)
    return found


def _figures(directory, cell):
    """The final figures and all epochs, without times."""
    records = Records(directory)
    lines = [records.finished()[cell.key], *records.epochs()[cell.key]]
    return [{name: value for name, value in line.items() if name != "seconds"} for line in lines]


def _stop(cell, directory, epoch=STOPPED):
    """Run a cell until it has recorded an epoch, and not yet written its checkpoint, whose path is returned."""

    def report(record):
        if record["epoch"] == epoch:
            raise _StopError

    with pytest.raises(_StopError):
        run_cell(cell, directory, report)
    return Records(directory).checkpoint(cell.key)


def _epochs_run(directory):
    return [record["epoch"] for record in Records(directory).read() if record["kind"] == "epoch"]


def _resume(cell, directory, capsys):
    """Run what was stopped; returns the warnings, and the epochs that were recorded."""
    before = len(_epochs_run(directory))
    capsys.readouterr()
    run_cells([cell], directory, show=False)
    return capsys.readouterr().err, _epochs_run(directory)[before:]


KINDS = pytest.mark.parametrize("kind", ["matrices", "nested", "fixed"])


@KINDS
@pytest.mark.parametrize("place", ["same", "moved", "copied"])
def test_a_stopped_cell_goes_on_where_it_was_also_in_another_directory(
    kind, place, cells, undisturbed, tmp_path, capsys
):
    path = _stop(cells[kind], tmp_path / "before")
    before, directory = path.read_bytes(), tmp_path / ("before" if place == "same" else "after")
    if place != "same":
        (shutil.copytree if place == "copied" else shutil.move)(tmp_path / "before", directory)
    assert _resume(cells[kind], directory, capsys) == ("", [4, 5])
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
def test_a_damaged_checkpoint_is_reported_and_the_cell_starts_again(damage, cells, undisturbed, tmp_path, capsys):
    cell = cells["nested"]
    path = _stop(cell, tmp_path)
    DAMAGE[damage](path)
    said, run = _resume(cell, tmp_path, capsys)
    assert said == f"{cell.title}: {path} is damaged or of another network; it starts again from the beginning.\n"
    assert run == list(range(EPOCHS))
    assert _figures(tmp_path, cell) == undisturbed["nested"]


@pytest.mark.parametrize("value", [None, "a second"])
@KINDS
def test_epochs_whose_lines_were_deleted_or_changed_are_recorded_again(
    kind, value, cells, undisturbed, tmp_path, capsys
):
    cell = cells[kind]
    _stop(cell, tmp_path)
    records = Records(tmp_path)
    lines = [{**line, "loss": value} if line["epoch"] in (0, 2) else line for line in records.read()]
    lines = [line for line in lines if line["loss"] is not None]
    records.path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    assert _resume(cell, tmp_path, capsys) == ("", [0, 2, 4, 5])
    assert _figures(tmp_path, cell) == undisturbed[kind]


def test_records_that_were_deleted_are_made_again_without_training(cells, undisturbed, tmp_path, capsys):
    cell = cells["nested"]
    run_cells([cell], tmp_path, show=False)
    before = Records(tmp_path).epochs()
    Records(tmp_path).path.unlink()
    assert _resume(cell, tmp_path, capsys) == ("", list(range(EPOCHS)))
    assert Records(tmp_path).epochs() == before
    assert _figures(tmp_path, cell) == undisturbed["nested"]


def test_a_full_disk_is_reported_and_the_previous_checkpoint_stays(cells, undisturbed, tmp_path, capsys, monkeypatch):
    cell = cells["matrices"]
    path = _stop(cell, tmp_path, 2)
    before, fsync = path.read_bytes(), os.fsync

    def full(file):
        if stat.S_ISREG(os.fstat(file).st_mode):  # directories are synced as well
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        fsync(file)

    def report(epoch):
        if epoch["epoch"] == 2:
            monkeypatch.setattr("os.fsync", full)

    with pytest.raises(DataError) as caught:
        run_cell(cell, tmp_path, report)
    monkeypatch.undo()
    assert str(caught.value) == (
        f"{path} cannot be written: No space left on device.\n"
        "What was done before is kept. Once that is fixed, the same command goes on from there."
    )
    assert path.read_bytes() == before
    assert _resume(cell, tmp_path, capsys) == ("", [2, 3, 4, 5])
    assert _figures(tmp_path, cell) == undisturbed["matrices"]


def _run_limited(cell, directory, after, limit, end):
    """In a process of its own: after that epoch files may not be longer, or only the records may be, by a few bytes."""
    append = Records.append

    def counting(records, record):
        append(records, record)
        if record["kind"] == "epoch" and record["epoch"] == after:
            resource.setrlimit(resource.RLIMIT_FSIZE, (limit or records.path.stat().st_size + 9,) * 2)

    Records.append = counting
    if end == "killed":
        signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
    run_one(cell, directory)


@pytest.mark.slow
@pytest.mark.parametrize(("end", "kept"), [("killed", 400), ("killed", 1000), ("refused", 700)])
def test_a_cell_that_ends_within_a_checkpoint_goes_on_with_the_one_before(
    end, kept, cells, undisturbed, tmp_path, capsys
):
    """The system ends the process at that byte of the file, or refuses to write more."""
    cell = cells["matrices"]
    path = _stop(cell, tmp_path)
    limit = (path.stat().st_size - 1) * kept // 1000
    code, said = ended(*started(_run_limited, cell, tmp_path, STOPPED, limit, end))
    if end == "killed":
        assert code == -signal.SIGXFSZ
    else:
        assert code == 1
        assert "ckpt cannot be written: File too large.\n" in said
    assert _resume(cell, tmp_path, capsys) == ("", [4, 5])
    # What a killed process leaves is removed once it is a day old; it may still be in use before.
    assert [found.name for found in path.parent.glob("[!.]*")] == [path.name]
    assert _figures(tmp_path, cell) == undisturbed["matrices"]


@pytest.mark.slow
@pytest.mark.parametrize("end", ["killed", "refused"])
def test_a_cell_that_ends_within_a_line_of_its_records_goes_on(end, cells, undisturbed, tmp_path, capsys):
    # The records are made longer than a checkpoint, so that they are what no longer fits.
    cell = cells["matrices"]
    records = Records(tmp_path)
    for number in range(200):
        records.append({"kind": "epoch", "key": "another", "epoch": number, "filler": "x" * 500})
    code, _ = ended(*started(_run_limited, cell, tmp_path, 2, None, end))
    assert code == (-signal.SIGXFSZ if end == "killed" else 1)
    assert records.path.read_bytes().endswith(b"\n") == (end == "refused")
    assert _resume(cell, tmp_path, capsys) == ("", [3, 4, 5])
    assert _figures(tmp_path, cell) == undisturbed["matrices"]
