"""The page on the classifier shows what the records of the comparison say."""

from pathlib import Path

from bellnet.experiments import Records
from benchmarks import classifiers

ROOT = Path(__file__).parents[2]
RECORDS = ROOT / "benchmarks" / "results" / "classifiers"


def test_the_table_on_the_page_is_that_of_the_records():
    table = classifiers.table(RECORDS)
    assert table in (ROOT / "docs" / "classifier.md").read_text(encoding="utf-8")
    assert (RECORDS / "table.md").read_text(encoding="utf-8") == table + "\n"


def test_all_records_of_a_method_are_of_one_commit():
    commits = {record["commit"] for record in Records(RECORDS).finished().values() if record["method"] == "bellnet"}
    assert len(commits) == 1
    assert all(commits)
