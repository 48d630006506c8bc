"""Records: whatever stops the writer, the file is whole."""

import errno
import json
import os
import stat
from itertools import count

import pytest

from bellnet.errors import DataError
from experiments.records import Records
from tests.experiments.processes import killed, started

A, B = {"key": "a", "accuracy": 0.5}, {"key": "b", "accuracy": 0.6}


def test_records_are_read_by_key_and_the_last_one_counts(tmp_path):
    records = Records(tmp_path / "new" / "directory")
    assert records.read() == {}
    records.add(A)
    records.add(B, {**A, "accuracy": 0.7})
    assert records.read() == {"a": {**A, "accuracy": 0.7}, "b": B}
    assert len(records.path.read_text().splitlines()) == 3, "lines are only appended"


def test_a_line_without_its_end_is_completed(tmp_path):
    records = Records(tmp_path)
    records.path.write_text(json.dumps(A))
    records.add(B)
    assert records.read() == {"a": A, "b": B}


FOREIGN = {
    "a list": b"[]",
    "a number": b"5",
    "nothing": b"null",
    "no key": b"{}",
    "a key that is no name": b'{"key": 5}',
    "half a record": b'{"key": "c", "acc',
    "two records in one": b'{"key": "a"}{"key": "a"}',
    "zeros": b"\0" * 20,
    "no text": b"\xff\xfe",
    "brackets without end": b"[" * 100_000,
    "a number without end": b"1" * 10_000,
}


@pytest.mark.parametrize("foreign", FOREIGN)
def test_a_line_that_is_no_record_is_named(tmp_path, foreign):
    records = Records(tmp_path)
    records.add(A)
    with records.path.open("ab") as file:
        file.write(FOREIGN[foreign] + b"\n")
    records.add(B)
    with pytest.raises(DataError) as caught:
        records.read()
    assert str(caught.value) == (f"{records.path}: line 2 is not a record.\nDelete it and run the same command again.")


def test_all_lines_that_are_no_records_are_named_at_once(tmp_path):
    records = Records(tmp_path)
    records.path.write_bytes(b'5\n\n{"key": "a"}\n{\n"a"\n')
    with pytest.raises(DataError) as caught:
        records.read()
    assert str(caught.value) == (
        f"{records.path}: lines 1, 4 and 5 are not records.\nDelete them and run the same command again."
    )


def test_a_file_that_cannot_be_read_is_named(tmp_path):
    records = Records(tmp_path)
    records.path.mkdir()
    for use in (records.read, lambda: records.add(A)):
        with pytest.raises(DataError) as caught:
            use()
        assert str(caught.value) == (
            f"{records.path} cannot be read: Is a directory.\nFix that, or choose another directory."
        )


def test_a_full_disk_is_reported_and_changes_nothing(tmp_path, monkeypatch):
    records = Records(tmp_path)
    records.add(A)
    before, fsync = records.path.read_bytes(), os.fsync

    def full(file):
        if stat.S_ISREG(os.fstat(file).st_mode):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        fsync(file)

    with monkeypatch.context() as patch:
        patch.setattr("os.fsync", full)
        with pytest.raises(DataError) as caught:
            records.add(B)
    assert str(caught.value) == (
        f"{records.path} cannot be written: No space left on device.\n"
        "What was done before is kept. Once that is fixed, the same command goes on from there."
    )
    assert records.path.read_bytes() == before


def _write(directory):
    for number in count():
        Records(directory).add({"key": str(number), "filler": "x" * 500})


def test_a_writer_that_is_killed_leaves_whole_lines(tmp_path):
    process, _ = started(_write, tmp_path)
    while len(Records(tmp_path).read()) < 20:
        assert process.is_alive()
    killed(process)
    found = Records(tmp_path).read()
    assert list(found) == [str(number) for number in range(len(found))]
