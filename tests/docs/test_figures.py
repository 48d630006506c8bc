"""The figures on the first pages are those of the recorded runs."""

import json
import re

import pytest

from tests.docs.reference import DOCS

ROOT = DOCS.parent
FIRST_PAGES = (ROOT / "README.md", DOCS / "index.md", DOCS / "speed.md")


@pytest.fixture(scope="module")
def measured():
    """The results of the recorded benchmarks by name."""
    record = json.loads((ROOT / "benchmarks" / "results" / "latest.json").read_text(encoding="utf-8"))
    return {one["what"]: one["value"] for one in record["summary"]}


@pytest.mark.parametrize("page", FIRST_PAGES, ids=lambda page: page.name)
def test_first_pages_state_the_recorded_speed_and_memory(page, measured):
    text = page.read_text(encoding="utf-8")
    faster = measured["n n -> n n, forward+backward, stacked/ours"]
    less = measured["n n -> n n, forward+backward, stacked/ours, peak memory"]
    bare = measured["n n -> n n, forward+backward, ours/bare, peak memory"]
    assert f"{faster:.1f} times faster" in text
    assert f"{less:.1f} times less" in text
    assert f"{bare:.2f} of" in text


def test_first_page_counts_the_errors_of_table_1_that_match_the_paper():
    page = (DOCS / "reproduction.md").read_text(encoding="utf-8")
    table = page.partition("## Table 1")[2].partition("\n## ")[0]
    verdicts = re.findall(r"^\| \w+ \| \d \| [^|]+ \| [^|]+ \| (\w+) \|", table, re.MULTILINE)
    good = sum(verdict in ("better", "equal") for verdict in verdicts)
    assert f"{good} of {len(verdicts)}" in (DOCS / "index.md").read_text(encoding="utf-8")
