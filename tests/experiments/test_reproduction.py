"""The pages on the paper's tables show what the records say."""

from pathlib import Path

import pytest

from experiments.records import Records
from experiments.report import tables_of

ROOT = Path(__file__).parents[2]
SEEDS = {"table1": {0}, "table2": {0}, "table3": {100, 101, 102}}
PAGES = {"table1": "reproduction.md", "table2": "reproduction.md", "table3": "table3.md"}


@pytest.mark.parametrize("name", PAGES)
def test_every_row_and_note_of_the_tables_is_on_the_page(name):
    page = (ROOT / "docs" / PAGES[name]).read_text(encoding="utf-8")
    tables = tables_of(ROOT / "results" / name)
    assert tables
    for table in tables:
        assert table.markdown() in page


def test_every_cell_of_table_1_was_run():
    (table,) = tables_of(ROOT / "results" / "table1")
    assert len(table.rows) == 13
    assert all(cell != "-" for row in table.rows for cell in row)


@pytest.mark.parametrize(("name", "seeds"), SEEDS.items())
def test_every_record_says_where_it_comes_from(name, seeds):
    for record in Records(ROOT / "results" / name).read().values():
        assert record["commit"]
        assert record["versions"]["torch"]
        assert record["config"]["seed"] in seeds
