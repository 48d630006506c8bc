"""Records of several directories in one."""

import pytest

from bellnet.errors import DataError, OptionError
from experiments.__main__ import main
from experiments.graph_cell import cells_of_table3
from experiments.records import Records
from experiments.run import exclusive, merge_records
from tests.experiments.graphs import classified

FIRST, SECOND = cells_of_table3(names=["MUTAG"], splits=[0, 1])


@pytest.fixture
def here(tmp_path):
    Records(tmp_path / "here").add(classified(FIRST, 0.9))
    return tmp_path / "here"


@pytest.fixture
def there(tmp_path):
    Records(tmp_path / "there").add(classified(FIRST, 0.2), classified(SECOND, 0.8))
    return tmp_path / "there"


def test_cells_that_are_finished_there_and_not_here_are_copied(here, there):
    before = Records(here).path.read_bytes()
    assert merge_records([there], here) == {there: 1}
    assert Records(here).path.read_bytes().startswith(before), "lines are only appended"
    assert Records(here).read() == {FIRST.key: classified(FIRST, 0.9), SECOND.key: classified(SECOND, 0.8)}


def test_merging_again_changes_nothing(here, there):
    merge_records([there], here)
    before = Records(here).path.read_bytes()
    assert merge_records([there, here], here) == {there: 0, here: 0}
    assert Records(here).path.read_bytes() == before


def test_several_directories_are_gathered_in_a_new_one(here, there, tmp_path, capsys):
    assert main(["merge", str(here), str(there), "--out", str(tmp_path / "new")]) == 0
    assert capsys.readouterr().out == f"took 1 cell of {here}\ntook 1 cell of {there}\n"
    assert set(Records(tmp_path / "new").read()) == {FIRST.key, SECOND.key}


def test_a_directory_that_is_in_use_is_refused_as_target_but_not_as_source(here, there):
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
