"""Records of several directories in one: finished cells come once, with their epochs, and nothing is spoiled."""

import pytest

from bellnet.errors import DataError, OptionError
from experiments.__main__ import main
from experiments.graph_cell import cells_of_table3
from experiments.records import Records
from experiments.run import exclusive, merge_records
from tests.experiments.graphs import classified

FIRST, SECOND, THIRD = cells_of_table3(names=["MUTAG"], splits=[0, 1, 2])


def _epoch(cell, number, accuracy=0.5):
    return {"kind": "epoch", "key": cell.key, "epoch": number, "test": accuracy, "seconds": 1.0}


def _write(directory, *records):
    for record in records:
        Records(directory).append(record)
    return directory


@pytest.fixture
def here(tmp_path):
    return _write(tmp_path / "here", _epoch(FIRST, 0), classified(FIRST, 0.9), _epoch(SECOND, 0, 0.1))


@pytest.fixture
def there(tmp_path):
    epochs = [_epoch(SECOND, number) for number in range(2)]
    return _write(
        tmp_path / "there", *epochs, classified(FIRST, 0.2), classified(SECOND, 0.8), _epoch(THIRD, 0), _epoch(THIRD, 1)
    )


def test_cells_that_are_finished_there_and_not_here_are_taken_with_their_epochs(here, there):
    before = Records(here).path.read_bytes()
    assert merge_records([there], here) == {there: 1}
    records = Records(here)
    assert records.path.read_bytes().startswith(before), "lines are only appended"
    assert records.finished() == {FIRST.key: classified(FIRST, 0.9), SECOND.key: classified(SECOND, 0.8)}
    assert records.epochs()[SECOND.key] == [_epoch(SECOND, 0), _epoch(SECOND, 1)]
    assert THIRD.key not in records.epochs(), "what is not finished goes on where its checkpoint is"


def test_merging_again_changes_nothing(here, there):
    merge_records([there], here)
    before = Records(here).path.read_bytes()
    assert merge_records([there, here], here) == {there: 0, here: 0}
    assert Records(here).path.read_bytes() == before


def test_a_merge_that_was_cut_off_is_done_again(here, there):
    merge_records([there], here)
    path = Records(here).path
    path.write_bytes(path.read_bytes()[:-10])
    assert merge_records([there], here) == {there: 1}
    assert Records(here).finished()[SECOND.key] == classified(SECOND, 0.8)


def test_several_directories_may_be_gathered_in_a_new_one(here, there, tmp_path, capsys):
    assert main(["merge", str(here), str(there), "--out", str(tmp_path / "new")]) == 0
    assert capsys.readouterr().out == f"took 1 cell of {here}\ntook 1 cell of {there}\n"
    assert set(Records(tmp_path / "new").finished()) == {FIRST.key, SECOND.key}


def test_a_directory_in_which_something_runs_is_left_alone_but_may_be_read(here, there):
    before = Records(here).path.read_bytes()
    with exclusive(here), pytest.raises(OptionError, match=f"{here} is in use by another process"):
        merge_records([there], here)
    assert Records(here).path.read_bytes() == before
    with exclusive(there):
        assert merge_records([there], here) == {there: 1}


def test_a_directory_without_records_is_named(here, tmp_path):
    with pytest.raises(DataError) as caught:
        merge_records([tmp_path / "nowhere"], here)
    assert str(caught.value) == (
        f"{tmp_path / 'nowhere'}: there is no records.jsonl.\n"
        "Name directories that table1, table2 or table3 has written with --out."
    )
