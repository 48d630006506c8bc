"""Records: whatever stops the writer, the reader can read."""

import errno
import gzip
import json
import multiprocessing
import os
from itertools import count

import pytest

from bellnet.errors import DataError
from experiments.records import Records
from tests.experiments.processes import killed, started


def _write(directory, name, line):
    records = Records(directory)
    for number in count():
        records.append({"kind": "epoch", "key": name, "epoch": number, "filler": "x" * 500})
        if number == 20:
            line.send("ready")


def _epoch(number, **more):
    return {"kind": "epoch", "key": "a", "epoch": number, **more}


def test_what_was_appended_is_read(tmp_path):
    records = Records(tmp_path / "new" / "directory")
    assert records.read() == []
    records.append(_epoch(0))
    records.append({"kind": "cell", "key": "a"})
    assert records.read() == [_epoch(0), {"kind": "cell", "key": "a"}]
    assert records.finished() == {"a": {"kind": "cell", "key": "a"}}


@pytest.mark.parametrize("kept", range(1, len(json.dumps(_epoch(1))) + 1))
def test_a_line_torn_anywhere_is_no_record_and_is_cut_off(tmp_path, kept):
    records = Records(tmp_path)
    records.append(_epoch(0))
    with records.path.open("a") as file:
        file.write(json.dumps(_epoch(1))[:kept])
    assert records.read() == [_epoch(0)]
    assert records.repair()
    assert not records.repair()
    records.append(_epoch(2))
    assert records.read() == [_epoch(0), _epoch(2)]


def test_a_line_that_is_broken_in_the_middle_is_named(tmp_path):
    records = Records(tmp_path)
    records.append(_epoch(0))
    with records.path.open("a") as file:
        file.write("{nonsense\n")
    records.append(_epoch(1))
    with pytest.raises(DataError) as caught:
        records.read()
    assert str(caught.value) == (
        f"{records.path}: line 2 is not a record.\nDelete it and run the same command again: what a cell that is not "
        "finished lacks then is run again; a finished one keeps its result, and curves and the best averaged epoch do "
        "without the line."
    )


FOREIGN = {
    "a list": b"[]",
    "a number": b"5",
    "nothing": b"null",
    "no kind": b"{}",
    "no key": b'{"kind": "cell"}',
    "a key that is no name": b'{"kind": "cell", "key": 5}',
    "another kind": b'{"kind": "row", "key": "a"}',
    "an epoch without number": b'{"kind": "epoch", "key": "a"}',
    "an epoch with a name": b'{"kind": "epoch", "key": "a", "epoch": "first"}',
    "an epoch before the first": b'{"kind": "epoch", "key": "a", "epoch": -1}',
    "an epoch that is true": b'{"kind": "epoch", "key": "a", "epoch": true}',
    "two records in one": b'{"kind": "cell", "key": "a"}{"kind": "cell", "key": "a"}',
    "zeros": b"\0" * 20,
    "no text": b"\xff\xfe",
    "brackets without end": b"[" * 100_000,
    "a number without end": b"1" * 10_000,
}


@pytest.mark.parametrize("foreign", FOREIGN)
def test_a_line_that_no_run_has_written_is_named(tmp_path, foreign):
    records = Records(tmp_path)
    records.append(_epoch(0))
    with records.path.open("ab") as file:
        file.write(FOREIGN[foreign] + b"\n")
    records.append(_epoch(1))
    with pytest.raises(DataError) as caught:
        records.read()
    assert str(caught.value).startswith(f"{records.path}: line 2 is not a record.\nDelete it and run ")


def test_all_lines_that_are_no_records_are_named_at_once(tmp_path):
    records = Records(tmp_path)
    records.path.write_bytes(b'5\n\n{"kind": "cell", "key": "a"}\n{\n"a"\n')
    with pytest.raises(DataError) as caught:
        records.read()
    assert str(caught.value).startswith(f"{records.path}: lines 1, 4 and 5 are not records.\nDelete them and run ")


def test_a_file_that_cannot_be_read_is_named(tmp_path):
    records = Records(tmp_path)
    records.path.mkdir()
    for use in (records.read, records.repair, lambda: records.append(_epoch(0))):
        with pytest.raises(DataError) as caught:
            use()
        assert str(caught.value).startswith(f"{records.path} cannot be ")
        assert ": Is a directory.\n" in str(caught.value)


def test_a_write_that_takes_only_a_part_goes_on_with_the_rest(tmp_path, monkeypatch):
    write = os.write
    monkeypatch.setattr("os.write", lambda file, content: write(file, content[:7]))
    records = Records(tmp_path)
    for number in range(3):
        records.append(_epoch(number))
    assert records.read() == [_epoch(number) for number in range(3)]


@pytest.mark.parametrize("call", ["write", "fsync"])
def test_a_full_disk_is_said_and_leaves_nothing_of_the_line(tmp_path, monkeypatch, call):
    records = Records(tmp_path)
    records.append(_epoch(0))
    before = records.path.read_bytes()
    write = os.write
    calls = []

    def full(file, *content):
        calls.append(file)
        if content and len(calls) == 1:
            return write(file, content[0][:7])  # the last room there was
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr(f"os.{call}", full)
        with pytest.raises(DataError) as caught:
            records.append(_epoch(1))
    assert str(caught.value) == (
        f"{records.path} cannot be written: No space left on device.\n"
        "What was done before is kept. Once that is fixed, the same command goes on from there."
    )
    assert records.path.read_bytes() == before
    records.append(_epoch(1))
    assert records.read() == [_epoch(0), _epoch(1)]


def test_what_a_killed_writer_has_torn_is_cut_off_by_the_next_one(tmp_path):
    records = Records(tmp_path)
    records.append(_epoch(0))
    with records.path.open("a") as file:
        file.write(json.dumps(_epoch(1))[:9])
    records.append(_epoch(2))
    assert records.read() == [_epoch(0), _epoch(2)]


def test_a_file_system_without_locks_is_written_to_all_the_same(tmp_path, monkeypatch):
    def no_locks(file, how):
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr("fcntl.flock", no_locks)
    records = Records(tmp_path)
    records.append(_epoch(0))
    assert records.read() == [_epoch(0)]


def test_records_of_a_compressed_archive_are_read_before_those_that_were_appended(tmp_path):
    records = Records(tmp_path)
    records.append(_epoch(0))
    (tmp_path / "records.jsonl.gz").write_bytes(gzip.compress(records.path.read_bytes()))
    records.path.unlink()
    assert records.read() == [_epoch(0)]
    records.append(_epoch(1))
    assert records.read() == [_epoch(0), _epoch(1)]


@pytest.mark.parametrize("content", [b"no archive", gzip.compress(b"{}" * 1000, mtime=0)[:-9]], ids=["text", "cut off"])
def test_an_archive_that_is_damaged_is_refused_by_name(tmp_path, content):
    (tmp_path / "records.jsonl.gz").write_bytes(content)
    with pytest.raises(DataError, match=r"records\.jsonl\.gz cannot be read: "):
        Records(tmp_path).read()


def test_of_an_epoch_that_was_run_twice_the_last_counts(tmp_path):
    records = Records(tmp_path)
    for epoch in (_epoch(1, loss=1), _epoch(0, loss=2), _epoch(1, loss=3)):
        records.append(epoch)
    assert records.epochs() == {"a": [_epoch(0, loss=2), _epoch(1, loss=3)]}


def test_two_writers_that_are_killed_leave_whole_lines(tmp_path):
    ours, theirs = multiprocessing.Pipe()
    writers = [started(_write, tmp_path, name, theirs)[0] for name in "ab"]
    assert [ours.recv() for _ in writers] == ["ready", "ready"]
    for writer in writers:
        killed(writer)
    records = Records(tmp_path)
    records.repair()
    epochs = records.epochs()
    for name in "ab":
        assert [epoch["epoch"] for epoch in epochs[name]] == list(range(len(epochs[name])))
        assert len(epochs[name]) >= 20


def test_an_interrupt_while_the_disk_is_waited_for_takes_nothing_back(tmp_path, monkeypatch):
    def interrupted(file):
        raise KeyboardInterrupt

    records = Records(tmp_path)
    monkeypatch.setattr(os, "fsync", interrupted)
    with pytest.raises(KeyboardInterrupt):
        records.append({"kind": "epoch", "key": "a", "epoch": 0})
    assert [record["key"] for record in records.read()] == ["a"]
