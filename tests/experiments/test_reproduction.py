"""The page on the paper's tables shows what the records say."""

from pathlib import Path

import pytest

from bellnet.experiments import Records, tables_of

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "reproduction.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", ["table1", "table2"])
def test_every_row_and_note_of_the_tables_is_on_the_page(name):
    tables = tables_of(ROOT / "results" / name)
    assert tables
    for table in tables:
        assert table.markdown() in PAGE


def test_every_cell_of_table_1_was_run():
    (table,) = tables_of(ROOT / "results" / "table1")
    assert len(table.rows) == 13
    assert all(cell != "-" for row in table.rows for cell in row)


def test_every_record_says_where_it_comes_from():
    for name in ("table1", "table2"):
        for record in Records(ROOT / "results" / name).finished().values():
            assert record["commit"]
            assert record["versions"]["torch"]
            assert record["config"]["seed"] == 0
