"""Records: whatever stops the writer, the reader can read."""

import json
import os
import signal
import subprocess
import sys

import pytest

from bellnet.errors import DataError
from bellnet.experiments import Records

WRITER = """
import sys
from pathlib import Path
from bellnet.experiments import Records
records = Records(Path(sys.argv[1]))
number = 0
while True:
    records.append({"kind": "epoch", "key": sys.argv[2], "epoch": number, "filler": "x" * 500})
    number += 1
    if number == 20:
        print("ready", flush=True)
"""


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
        f"{records.path}: line 2 is not a record.\nDelete that line; its epoch or cell is run again."
    )


def test_of_an_epoch_that_was_run_twice_the_last_counts(tmp_path):
    records = Records(tmp_path)
    for epoch in (_epoch(1, loss=1), _epoch(0, loss=2), _epoch(1, loss=3)):
        records.append(epoch)
    assert records.epochs() == {"a": [_epoch(0, loss=2), _epoch(1, loss=3)]}


def test_two_writers_that_are_killed_leave_whole_lines(tmp_path):
    writers = [
        subprocess.Popen([sys.executable, "-c", WRITER, str(tmp_path), name], stdout=subprocess.PIPE) for name in "ab"
    ]
    for writer in writers:
        assert writer.stdout.readline() == b"ready\n"
    for writer in writers:
        os.kill(writer.pid, signal.SIGKILL)
        writer.wait()
        writer.stdout.close()
    records = Records(tmp_path)
    records.repair()
    epochs = records.epochs()
    for name in "ab":
        assert [epoch["epoch"] for epoch in epochs[name]] == list(range(len(epochs[name])))
        assert len(epochs[name]) >= 20
