"""Tables: the paper's figures beside ours, chosen by validation."""

from dataclasses import replace

import pytest

from experiments.matrix_cell import cells_of_table1, cells_of_table2
from experiments.tables import BETTER, EQUAL, WORSE, choose, sizes_table, table1, table2, verdict
from tests.experiments.small import finished, small

CELL = next(cell for cell in cells_of_table1() if (cell.task, cell.layers, cell.method) == ("trace", 2, "bellnet"))


def _row(table, *begin):
    (row,) = [row for row in table.rows if row[: len(begin)] == begin]
    return row


def test_table_1_shows_the_papers_39_figures():
    rows = table1([]).rows
    assert len(rows) == 13
    assert [row[3] for row in rows] == [
        *("1.0e-05", "7.0e-06", "2.0e-05"),
        *("8.0e-06", "7.0e-06", "1.0e-04"),
        *("0.015", "0.0084", "0.0054", "0.0016"),
        *("0.005", "0.001", "0.003"),
    ]
    assert [row[6] for row in rows[-3:]] == ["316.2", "311.6", "308"]
    assert [row[8] for row in rows[::3]] == ["4.17", "0.21", "0.025", "0.025", "333.3"]


def test_table_2_shows_the_papers_9_figures():
    assert [row[3::3] for row in table2([]).rows] == [
        ("0.0053", "3.8e-05", "0.0013"),
        ("0.0108", "0.0084", "0.0096"),
        ("0.015", "1.5e-05", "0.0055"),
        ("-", "-", "-"),
        ("-", "-", "-"),
    ]


@pytest.mark.parametrize(("found", "word"), [(0.0005, BETTER), (0.00102, EQUAL), (0.002, WORSE), (float("nan"), WORSE)])
def test_a_figure_is_called_better_or_worse_than_the_papers(found, word):
    assert verdict(found, 0.001) == word
    assert _row(table1([finished(CELL, found)]), "trace", "2")[4] == word


def test_a_quick_run_is_judged_and_says_that_it_learned_from_less():
    table = table1([finished(CELL.quick(), 1e-9)])
    assert _row(table, "trace", "2")[2:5] == ("1.0e-09", "0.001", BETTER)
    assert "Trained with n=40 on 2000 examples, tested on 200." in table.notes
    assert any("leave out --quick" in note for note in table.notes)


def test_the_trace_per_node_is_a_row_of_its_own():
    plain, per_node = cells_of_table2(tasks=["trace"])
    table = table2([finished(plain, 0.0, errors={"30": 9.0}), finished(per_node, 0.0, errors={"30": 0.5})])
    assert _row(table, "trace")[2] == "9"
    assert _row(table, "trace per node")[2:5] == ("0.5", "-", "-")


def test_matrices_of_another_size_are_not_judged_by_the_papers_figures():
    table = table1([finished(small(task="trace", layers=2), 1e-9)])
    assert _row(table, "trace", "2")[2:5] == ("1.0e-09", "0.001", "-")
    assert any("cannot be compared" in note for note in table.notes)


def test_a_quick_run_does_not_mix_with_a_whole_one():
    table = table1([finished(small(task="trace", layers=2), 1e-9, validation=0.0), finished(CELL, 0.5)])
    assert _row(table, "trace", "2")[2] == "0.5"


def test_the_learning_rate_is_chosen_by_validation_and_never_by_the_test_set():
    good_by_validation = finished(replace(CELL, learning_rate=0.1), 0.7, validation=0.1)
    good_by_test = finished(replace(CELL, learning_rate=0.2), 0.0001, validation=0.2)
    diverged = finished(replace(CELL, learning_rate=0.3), 0.0, validation=float("nan"))
    for records in ([good_by_validation, good_by_test, diverged], [diverged, good_by_test, good_by_validation]):
        assert choose(records, "table1")["trace", 2, "bellnet"] == [good_by_validation]


def test_several_seeds_are_averaged():
    table = table1([finished(CELL, 1.0), finished(replace(CELL, seed=1), 2.0)])
    assert _row(table, "trace", "2")[2] == "1.5"
    assert "Means over up to 2 seeds." in table.notes


def test_errors_at_other_sizes_are_shown():
    cell = cells_of_table2(tasks=["diagonal"])[0]
    records = [finished(cell, 0.0, errors={str(n): n / 1000 for n in cell.sizes})]
    assert _row(table2(records), "diagonal")[2:] == (
        *("0.03", "0.015", WORSE),
        *("0.04", "1.5e-05", WORSE),
        *("0.05", "0.0055", WORSE),
    )
    assert [row[0] for row in sizes_table(records).rows] == [str(n) for n in range(10, 101, 10)]


def test_words_are_safe_in_html_and_columns_fit_in_markdown():
    table = table1([finished(CELL, 0.5)])
    lines = table.markdown().splitlines()
    assert {line.count("|") for line in lines if line.startswith("|")} == {len(table.head) + 1}
    assert '<td class="worse">worse</td>' in table.html()
