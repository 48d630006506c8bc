"""The page on the classifier shows what the records of the comparison say."""

from pathlib import Path

from bellnet.experiments import Records
from benchmarks import classifiers

ROOT = Path(__file__).parents[2]
RECORDS = ROOT / "benchmarks" / "results" / "classifiers"
BEFORE_GENERATORS = "0578015224b0a87d1ead0cd0200f5f941d7a6348"
"""The commit of records that are older than the generators of a fit."""


def test_the_table_on_the_page_is_that_of_the_records():
    table = classifiers.table(RECORDS)
    assert table in (ROOT / "docs" / "classifier.md").read_text(encoding="utf-8")
    assert (RECORDS / "table.md").read_text(encoding="utf-8") == table + "\n"


def commits_of_bellnet():
    return {record["commit"] for record in Records(RECORDS).finished().values() if record["method"] == "bellnet"}


def test_all_records_of_a_method_are_of_one_commit():
    commits = commits_of_bellnet()
    assert len(commits) == 1
    assert all(commits)


def test_the_page_says_whether_its_figures_are_older_than_the_random_numbers_of_a_fit():
    page = (ROOT / "docs" / "classifier.md").read_text(encoding="utf-8")
    said = "The table was recorded before a fit had random numbers of its own, and has not been measured again" in page
    assert said == (BEFORE_GENERATORS in commits_of_bellnet())
