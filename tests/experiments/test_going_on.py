"""Going on: whatever was lost or damaged when a cell was stopped, it ends with the figures it would have had."""

import errno
import json
import os
import random
import resource
import shutil
import signal
import stat

import pytest
import torch
from lightning.pytorch.plugins.io import TorchCheckpointIO

from bellnet.errors import DataError
from experiments.records import Records
from experiments.run import run_cells
from experiments.train import checkpoints, run_cell
from tests.experiments.graphs import tiny, write_set
from tests.experiments.processes import ended, run_one, started
from tests.experiments.small import small

EPOCHS = 6
STOPPED = 4
"""The epoch in which cells are stopped, after its line and before its checkpoint; the first is 0."""
PLACES = random.Random(0).sample(range(1, 1000), 3)
"""Places in a file, in thousandths of it."""


class _StopError(Exception):
    pass


@pytest.fixture(scope="module")
def cells(tmp_path_factory):
    """One cell of each kind: the best epoch counts, it does for graphs, the last epoch counts."""
    data = write_set(tmp_path_factory.mktemp("data"))
    return {
        "matrices": small(epochs=EPOCHS),
        "nested": tiny(data=data, epochs=EPOCHS, protocol="nested", held_out=4, rate=0.01),
        "fixed": tiny(data=data, epochs=EPOCHS),
    }


@pytest.fixture(scope="module")
def undisturbed(cells, tmp_path_factory):
    """What each cell gives when nothing happens to it."""
    found = {}
    for kind, cell in cells.items():
        directory = tmp_path_factory.mktemp(kind)
        run_cells([cell], directory, show=False)
        found[kind] = _given(directory, cell)
    return found


def _given(directory, cell):
    """The final figures and all epochs, without what depends on the clock."""
    records = Records(directory)

    def timeless(record):
        return {name: value for name, value in record.items() if name != "seconds"}

    return timeless(records.finished()[cell.key]), [timeless(epoch) for epoch in records.epochs()[cell.key]]


def _stop(cell, directory, epoch=STOPPED):
    """Run a cell until it has recorded an epoch, and not yet kept it."""

    def report(cell, record):
        if record["epoch"] == epoch:
            raise _StopError

    with pytest.raises(_StopError):
        run_cell(cell, directory, report)
    return checkpoints(directory, cell)


def _epochs_run(directory):
    return [record["epoch"] for record in Records(directory).read() if record["kind"] == "epoch"]


def _go_on(cell, directory, capsys):
    """Run what was stopped; what was said, and the epochs that were run."""
    before = len(_epochs_run(directory))
    capsys.readouterr()
    run_cells([cell], directory, show=False)
    return capsys.readouterr().err, _epochs_run(directory)[before:]


def _cut(path, places):
    path.write_bytes(path.read_bytes()[: places(path.stat().st_size)])


KINDS = pytest.mark.parametrize("kind", ["matrices", "nested", "fixed"])


@KINDS
def test_nothing_is_said_where_nothing_was_lost(kind, cells, undisturbed, tmp_path, capsys):
    _stop(cells[kind], tmp_path)
    said, run = _go_on(cells[kind], tmp_path, capsys)
    assert (said, run) == ("", [4, 5])
    assert _given(tmp_path, cells[kind]) == undisturbed[kind]


@pytest.mark.parametrize("place", [0, *PLACES, 1000])
@KINDS
def test_a_checkpoint_that_is_cut_off_anywhere_counts_as_none(kind, place, cells, undisturbed, tmp_path, capsys):
    cell = cells[kind]
    folder = _stop(cell, tmp_path)
    _cut(folder / "last.ckpt", lambda size: (size - 1) * place // 1000)
    said, run = _go_on(cell, tmp_path, capsys)
    best = -1 if kind == "fixed" else torch.load(folder / "best.ckpt", weights_only=True)["epoch"]
    what = f"{cell.title}: {folder / 'last.ckpt'} is cut off or damaged"
    if kind == "fixed":
        assert said == f"{what}; it starts again from the beginning.\n"
        assert run == list(range(EPOCHS))
    else:
        assert said == f"{what}; it goes on after epoch {run[0]}.\n"
        assert run == list(range(run[0], EPOCHS))
        assert run[0] <= best + 1
    assert _given(tmp_path, cell) == undisturbed[kind]


def test_where_all_checkpoints_are_damaged_the_cell_starts_again(cells, undisturbed, tmp_path, capsys):
    cell = cells["matrices"]
    folder = _stop(cell, tmp_path)
    for name in ("last", "best"):
        _cut(folder / f"{name}.ckpt", lambda size: size // 2)
    said, run = _go_on(cell, tmp_path, capsys)
    assert said == (
        f"{cell.title}: {folder / 'last.ckpt'} is cut off or damaged, {folder / 'best.ckpt'} is cut off or damaged; "
        "it starts again from the beginning.\n"
    )
    assert run == list(range(EPOCHS))
    assert _given(tmp_path, cell) == undisturbed["matrices"]


LOST_BEST = {
    "cut off": (lambda path: _cut(path, lambda size: size // 2), "is cut off or damaged"),
    "deleted": (lambda path: path.unlink(), "is missing"),
}


@pytest.mark.parametrize("lost", LOST_BEST)
def test_a_cell_whose_best_epoch_is_lost_starts_again(lost, cells, undisturbed, tmp_path, capsys):
    cell = cells["matrices"]
    path = _stop(cell, tmp_path) / "best.ckpt"
    lose, words = LOST_BEST[lost]
    lose(path)
    said, run = _go_on(cell, tmp_path, capsys)
    assert said == f"{cell.title}: {path} {words}; it starts again from the beginning.\n"
    assert run == list(range(EPOCHS))
    assert _given(tmp_path, cell) == undisturbed["matrices"]


def test_a_best_epoch_that_is_older_than_the_last_one_knows_is_where_the_cell_goes_on(
    cells, undisturbed, tmp_path, capsys
):
    cell = cells["matrices"]
    path = _stop(cell, tmp_path, 2) / "best.ckpt"
    older = path.read_bytes()
    _stop(cell, tmp_path)
    assert path.read_bytes() != older
    path.write_bytes(older)
    said, run = _go_on(cell, tmp_path, capsys)
    assert said == f"{cell.title}: {path} is not the best epoch that last.ckpt knows of; it goes on after epoch 2.\n"
    assert run == [2, 3, 4, 5]
    assert _given(tmp_path, cell) == undisturbed["matrices"]


def _flip(path):
    """Change one weight, in the middle of the file, and nothing that torch looks at."""
    content = bytearray(path.read_bytes())
    weight = max(torch.load(path, weights_only=True)["state_dict"].values(), key=torch.Tensor.numel)
    content[content.index(weight.numpy().tobytes()) + 5] ^= 64
    path.write_bytes(content)
    torch.load(path, weights_only=True)


FOREIGN = {
    "a flipped bit": _flip,
    "no zip": lambda path: path.write_bytes(b"nothing of the kind"),
    "another dictionary": lambda path: torch.save({"epoch": 3}, path),
    "a list": lambda path: torch.save([1], path),
    "another network": lambda path: torch.save(
        {**torch.load(path, weights_only=True), "state_dict": {"net.weight": torch.zeros(2)}}, path
    ),
}


@pytest.mark.parametrize("foreign", FOREIGN)
def test_a_file_that_is_no_checkpoint_of_the_cell_counts_as_none(foreign, cells, undisturbed, tmp_path, capsys):
    cell = cells["matrices"]
    folder = _stop(cell, tmp_path)
    for name in ("last", "best"):
        FOREIGN[foreign](folder / f"{name}.ckpt")
    said, run = _go_on(cell, tmp_path, capsys)
    assert said.endswith("best.ckpt is cut off or damaged; it starts again from the beginning.\n")
    assert run == list(range(EPOCHS))
    assert _given(tmp_path, cell) == undisturbed["matrices"]


def _without(directory, unwanted):
    records = Records(directory)
    lines = [record for record in records.read() if not unwanted(record)]
    records.path.write_text("".join(json.dumps(line) + "\n" for line in lines))


@KINDS
def test_an_epoch_whose_line_was_deleted_is_run_again(kind, cells, undisturbed, tmp_path, capsys):
    cell = cells[kind]
    _stop(cell, tmp_path)
    _without(tmp_path, lambda record: record["epoch"] in (0, 2))
    said, run = _go_on(cell, tmp_path, capsys)
    assert said == (
        f"{cell.title}: {Records(tmp_path).path} lacks its epochs 0 and 2; it starts again from the beginning.\n"
    )
    assert run == list(range(EPOCHS))
    assert _given(tmp_path, cell) == undisturbed[kind]


@pytest.mark.parametrize(("figure", "value"), [("seconds", "a second"), ("validation", None)])
def test_an_epoch_whose_line_lacks_a_figure_is_run_again(figure, value, cells, undisturbed, tmp_path, capsys):
    cell = cells["matrices"]
    _stop(cell, tmp_path)
    records = Records(tmp_path)
    lines = records.read()
    lines[1][figure] = value
    records.path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    said, run = _go_on(cell, tmp_path, capsys)
    assert f"{records.path} lacks its epoch 1; " in said
    assert 1 in run
    assert _given(tmp_path, cell) == undisturbed["matrices"]


def test_a_result_whose_line_was_deleted_is_had_again_without_training(cells, undisturbed, tmp_path, capsys):
    cell = cells["nested"]
    run_cells([cell], tmp_path, show=False)
    _without(tmp_path, lambda record: record["kind"] == "cell")
    assert _go_on(cell, tmp_path, capsys) == ("", [])
    assert _given(tmp_path, cell) == undisturbed["nested"]


def test_records_that_were_deleted_as_a_whole_are_made_again(cells, undisturbed, tmp_path, capsys):
    cell = cells["fixed"]
    run_cells([cell], tmp_path, show=False)
    Records(tmp_path).path.unlink()
    said, run = _go_on(cell, tmp_path, capsys)
    assert said.endswith("lacks its epochs 0, 1, 2, 3, 4 and 5; it starts again from the beginning.\n")
    assert run == list(range(EPOCHS))
    assert _given(tmp_path, cell) == undisturbed["fixed"]


def test_records_that_are_deleted_while_a_cell_runs_are_missed_in_words(cells, undisturbed, tmp_path, capsys):
    cell = cells["matrices"]

    def report(cell, record):
        if record["epoch"] == 2:
            Records(tmp_path).path.unlink()

    with pytest.raises(DataError) as caught:
        run_cell(cell, tmp_path, report)
    path = Records(tmp_path).path
    assert str(caught.value) == (
        f"{cell.title}: {path} has lost its epochs 0, 1 and 2 while it ran.\n"
        "Leave that file alone and run the same command again: the cell starts again."
    )
    _, run = _go_on(cell, tmp_path, capsys)
    assert run == list(range(EPOCHS))
    assert _given(tmp_path, cell) == undisturbed["matrices"]


@pytest.mark.parametrize("copied", [False, True])
def test_a_folder_that_was_moved_or_copied_remembers_its_best_epoch(copied, cells, undisturbed, tmp_path, capsys):
    # Its best epoch is one before it is stopped, so a cell that forgot it would choose another.
    cell = cells["nested"]
    assert undisturbed["nested"][0]["best_epoch"] == 1
    folder = _stop(cell, tmp_path / "before")
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    (shutil.copytree if copied else shutil.move)(tmp_path / "before", tmp_path / "after")
    assert _go_on(cell, tmp_path / "after", capsys) == ("", [4, 5])
    assert _given(tmp_path / "after", cell) == undisturbed["nested"]
    if copied:
        assert {path.name: path.read_bytes() for path in folder.iterdir()} == before


@KINDS
def test_checkpoints_that_lightning_itself_has_written_are_taken(
    kind, cells, undisturbed, tmp_path, capsys, monkeypatch
):
    from experiments.checkpoints import AtomicCheckpoints

    with monkeypatch.context() as patch:
        patch.setattr(AtomicCheckpoints, "save_checkpoint", TorchCheckpointIO.save_checkpoint)
        _stop(cells[kind], tmp_path)
    assert _go_on(cells[kind], tmp_path, capsys) == ("", [4, 5])
    assert _given(tmp_path, cells[kind]) == undisturbed[kind]


@pytest.mark.parametrize(("name", "number"), [("best", 1), ("last", 2)])
def test_a_full_disk_is_said_and_keeps_the_checkpoint_before(
    name, number, cells, undisturbed, tmp_path, capsys, monkeypatch
):
    cell = cells["matrices"]
    folder = _stop(cell, tmp_path, 2)
    kept = {path.name: path.read_bytes() for path in folder.iterdir()}
    fsync, written = os.fsync, []

    def full(file):
        if stat.S_ISREG(os.fstat(file).st_mode):  # the place of a file in its directory is made sure of as well
            written.append(file)
            if len(written) == number:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        fsync(file)

    with pytest.raises(DataError) as caught:
        # The best epoch is written first, then the last one.
        run_cell(cell, tmp_path, lambda cell, record: monkeypatch.setattr("os.fsync", full))
    monkeypatch.undo()
    assert str(caught.value) == (
        f"{folder / f'{name}.ckpt'} cannot be written: No space left on device.\n"
        "What was done before is kept. When that is mended, the same command goes on from there."
    )
    found = {path.name: path.read_bytes() for path in folder.iterdir()}
    assert found.keys() == kept.keys()
    assert found[f"{name}.ckpt"] == kept[f"{name}.ckpt"]
    assert _go_on(cell, tmp_path, capsys) == ("", [2, 3, 4, 5])
    assert _given(tmp_path, cell) == undisturbed["matrices"]


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
@pytest.mark.parametrize(("end", "kept"), [("killed", PLACES[0]), ("killed", 1000), ("refused", PLACES[1])])
def test_a_cell_that_ends_within_a_checkpoint_goes_on_with_the_one_before(
    end, kept, cells, undisturbed, tmp_path, capsys
):
    """The system ends the process at that byte of the file, or refuses to write more."""
    cell = cells["matrices"]
    folder = _stop(cell, tmp_path)
    limit = ((folder / "last.ckpt").stat().st_size - 1) * kept // 1000
    code, said = ended(*started(_run_limited, cell, tmp_path, STOPPED, limit, end))
    if end == "killed":
        assert code == -signal.SIGXFSZ
    else:
        assert code == 1
        assert "ckpt cannot be written: File too large.\n" in said
    said, run = _go_on(cell, tmp_path, capsys)
    assert said == ""
    assert run == [4, 5]
    # What a killed process leaves is removed once it is a day old; it may still be in use before.
    assert sorted(path.name for path in folder.glob("[!.]*")) == ["best.ckpt", "last.ckpt"]
    assert _given(tmp_path, cell) == undisturbed["matrices"]


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
    said, run = _go_on(cell, tmp_path, capsys)
    assert (said, run) == ("", [3, 4, 5])
    assert _given(tmp_path, cell) == undisturbed["matrices"]
