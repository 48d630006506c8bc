"""Two records are compared ratio by ratio, without measurements."""

import json
from pathlib import Path

import pytest

from benchmarks.regressions import ChangedRatio, changed, changes_table, ratios

RECORDED = Path(__file__).parents[2] / "benchmarks" / "results" / "latest.json"


def record(ours: float = 1.0, **summary: float) -> dict:
    case = {"spec": "n n -> n n", "batch": 1, "n": 5, "in_channels": 8, "out_channels": 4, "pass": "forward"}
    contestants = {"ours": {"median": ours}, "bare": {"median": 1.0}}
    return {
        "results": [{**case, "contestants": contestants}],
        "summary": [{"what": what, "value": value} for what, value in summary.items()],
    }


def test_ratios_of_cases_and_of_the_summary_have_names():
    assert ratios(record(3.0, growth=1.5)) == {"n n -> n n at 1,5,8,4, forward, ours/bare": 3.0, "growth": 1.5}


@pytest.mark.parametrize(("new", "expected"), [(1.16, True), (1.14, False), (1.0, False), (0.86, False), (0.84, True)])
def test_a_ratio_changed_if_it_is_more_than_15_percent_larger_or_smaller(new, expected):
    assert bool(changed(record(1.0), record(new))) is expected
    assert bool(changed(record(share=1.0), record(share=new))) is expected


def test_changed_ratios_are_reported_with_both_values():
    old, new = record(1.0, growth=2.0, steady=1.0), record(1.5, growth=1.0, steady=1.1)
    assert changed(old, new) == [
        ChangedRatio("n n -> n n at 1,5,8,4, forward, ours/bare", 1.0, 1.5),
        ChangedRatio("growth", 2.0, 1.0),
    ]
    assert changes_table(old, new).splitlines() == [
        "| changed by more than 15% since the recorded run |  old |  new | change |",
        "|-------------------------------------------------|-----:|-----:|--------|",
        "| n n -> n n at 1,5,8,4, forward, ours/bare       | 1.00 | 1.50 | +50%   |",
        "| growth                                          | 2.00 | 1.00 | -50%   |",
    ]


def test_ratios_of_one_record_only_are_ignored():
    assert changed(record(old=1.0), record(new=9.0)) == []


def test_a_ratio_that_was_zero_is_ignored():
    assert changed(record(share=0.0), record(share=0.5)) == []


def test_no_change_is_reported_in_a_sentence():
    sentence = "None of 2 ratios in both runs changed by more than 15%."
    assert changes_table(record(growth=1.0), record(growth=1.1, another=2.0)) == sentence


def test_the_recorded_run_can_be_compared():
    recorded = json.loads(RECORDED.read_text(encoding="utf-8"))
    assert len(ratios(recorded)) > len(recorded["summary"])
    assert changed(recorded, recorded) == []
