"""Table 3 from records: the paper's figures, ours beside them, and no two protocols in one column."""

import re
from dataclasses import replace

import pytest

from experiments import plots
from experiments.graph_cell import SETS, GraphCell, cells_of_table3
from experiments.methods import NAMES
from experiments.plots import accuracy_curves
from experiments.records import Records
from experiments.report import tables_of, write_report
from experiments.table3 import (
    OTHERS3,
    PAPER3,
    choose_setups,
    protocols_table,
    rows_here,
    seeds_table,
    table3,
    times_table,
)
from tests.experiments.graphs import classified
from tests.experiments.small import finished, small

MUTAG = cells_of_table3(names=["MUTAG"])
NESTED = cells_of_table3(names=["MUTAG"], protocols=["nested"])
GIN = cells_of_table3(["gin"], names=["MUTAG"])
CURVES = {"test": [0.0, 0.1, 0.2, 0.3]}


def with_options(cell, **options):
    """The cell with some options changed."""
    return replace(cell, options={**dict(cell.options), **options})


def _row(table, *begin):
    (row,) = [row for row in table.rows if row[: len(begin)] == begin]
    return row


def test_the_papers_figures_are_all_there():
    table = table3([])
    assert table.head[1:] == ("MUTAG", "PTC", "PROTEINS", "NCI1", "NCI109", "COLLAB", "IMDB-B", "IMDB-M")
    assert len(PAPER3) == len(SETS) == 8
    assert len(OTHERS3) == 14
    assert {len(row) for row in table.rows} == {9}
    assert _row(table, "the paper")[1::7] == ("84.61 ± 10", "48.55 ± 3.9")
    assert [sum(cell != "-" for cell in figures) for figures in OTHERS3.values()] == [
        *(7, 7, 5, 3, 8, 2, 4, 5, 4, 4, 5),
        *(8, 3, 4),
    ]


def test_mean_and_population_deviation_of_ten_splits():
    records = [classified(cell, accuracy) for cell, accuracy in zip(MUTAG, [0.8, 0.9] * 5, strict=True)]
    assert _row(table3(records), "IGN (authors' set-up), dense")[1] == "85.0 ± 5.0"


def test_what_is_missing_is_shown_as_missing():
    sparse = [with_options(cell, layout="sparse") for cell in MUTAG]
    table = table3([classified(cell, 0.75) for cell in [*MUTAG[:8], sparse[3]]])
    assert _row(table, "IGN (authors' set-up), dense")[1:] == ("75.0 ± 0.0 (8 of 10 splits)", *["-"] * 7)
    assert _row(table, "IGN (authors' set-up), sparse")[1:] == ("75.0 (1 of 10 splits)", *["-"] * 7)


def test_protocols_have_columns_of_their_own():
    records = [classified(cell, 0.8, curves={"test": [0.95, 0.8]}) for cell in MUTAG]
    records += [classified(cell, 0.7, validation=0.9, curves={"validation": [0.95, 0.8]}) for cell in NESTED]
    table = protocols_table(records)
    assert table.head == (
        *("data set", "method", "last epoch", "last epoch, the paper", "nested"),
        "best averaged epoch (uses the test sets)",
    )
    assert table.rows == (
        ("MUTAG", "IGN (authors' set-up), dense", "80.0 ± 0.0", "84.61 ± 10", "70.0 ± 0.0", "95.0 ± 0.0, epoch 1"),
    )
    assert _row(table3(records), "IGN (authors' set-up), dense")[1] == "80.0 ± 0.0"
    assert _row(table3(records), "IGN (authors' set-up), dense, nested")[1] == "70.0 ± 0.0"


def test_nested_runs_alone_leave_the_other_columns_empty():
    records = [classified(cell, 0.7, validation=0.9) for cell in NESTED[:2]]
    (row,) = protocols_table(records).rows
    assert row == ("MUTAG", "IGN (authors' set-up), dense", "-", "84.61 ± 10", "70.0 ± 0.0 (2 of 10 splits)", "-")
    assert _row(table3(records), "IGN (authors' set-up), dense")[1] == "-"


def test_the_best_averaged_epoch_is_one_for_all_splits_and_the_first_of_several():
    curves = ([0.5, 1.0, 0.7, 0.9, 0.5], [0.5, 0.2, 0.9, 0.7, 0.5])
    records = [classified(cell, 0.5, curves={"test": curve}) for cell, curve in zip(MUTAG, curves, strict=False)]
    (row,) = protocols_table(records).rows
    assert row[-1] == "80.0 ± 10.0, epoch 3 (2 of 10 splits)"


def test_a_quick_run_does_not_mix_with_a_whole_one_and_says_what_it_is():
    quick = [classified(cell.quick(), 0.6) for cell in MUTAG]
    table = table3(quick)
    assert _row(table, "IGN (authors' set-up), dense")[1] == "60.0 ± 0.0"
    assert "MUTAG, IGN, dense, fixed: epochs=10 instead of 130. Not the authors' set-up." in table.notes
    table = table3([*quick, classified(MUTAG[0], 0.9)])
    assert _row(table, "IGN (authors' set-up), dense")[1] == "90.0 (1 of 10 splits)"
    assert not any("authors" in note for note in table.notes)
    assert table.notes[-1] == (
        "MUTAG, IGN, dense, fixed: 10 records with epochs=10 instead of 130 are not shown; run "
        "another set-up with another --out."
    )


def test_published_figures_of_a_later_method_stand_beside_it_once_it_was_run():
    (cell,) = cells_of_table3(["ppgn"], names=["MUTAG"], splits=[0])
    table = table3([classified(cell, 0.9)])
    assert _row(table, "PPGN, nested")[1] == "90.0 (1 of 10 splits)"
    assert _row(table, "PPGN, published")[1:3] == ("90.5", "66.2")
    assert any(note.startswith("Published: ") for note in table.notes)
    before = table3([classified(MUTAG[0], 0.9)])
    assert not any(row[0].startswith("PPGN") for row in before.rows)


def test_of_two_set_ups_alike_the_order_of_the_records_does_not_decide():
    records = [classified(replace(MUTAG[0], seed=seed), seed / 10) for seed in (1, 2)]
    assert table3(records).rows == table3(records[::-1]).rows


def test_a_set_up_is_never_chosen_for_its_figures():
    longer = [with_options(MUTAG[0], epochs=500), with_options(replace(MUTAG[0], seed=1), epochs=9)]
    for good in longer:
        records = [classified(MUTAG[0], 0.1), *(classified(cell, 0.9 if cell == good else 0.2) for cell in longer)]
        for order in (records, records[::-1]):
            (chosen,) = choose_setups(order).values()
            assert chosen.cell == MUTAG[0]
        (chosen,) = choose_setups(records[1:]).values()
        assert chosen.cell.epochs == 500


def test_of_two_unusual_set_ups_the_one_closer_to_the_usual_is_shown_but_never_another_seed_instead():
    near = with_options(MUTAG[0], decay_every=3)
    far, reseeded = with_options(near, learning_rate=0.5), replace(near, seed=1)
    for cells in ([near, far, reseeded], [reseeded, far, near]):
        (chosen,) = choose_setups([classified(cell, 0.5) for cell in cells]).values()
        assert chosen.cell == near
    (chosen,) = choose_setups([classified(cell, 0.5) for cell in (far, reseeded)]).values()
    assert chosen.cell == far


@pytest.mark.parametrize("names", [["MUTAG"], ["MUTAG", "PTC_MR", "NCI1", "COLLAB", "IMDB-MULTI"]])
def test_a_report_is_drawn_from_partial_records(tmp_path, names):
    for cell in cells_of_table3(names=names, splits=[0, 4], protocols=["fixed", "nested"]):
        if cell.split == 0 or cell.protocol == "fixed":
            curve = "test" if cell.protocol == "fixed" else "validation"
            Records(tmp_path).add(classified(cell, 0.7, curves={"loss": [1.0] * 3, curve: [0.5, 0.6, 0.7]}))
    files = write_report(tmp_path)
    assert [file.name for file in files] == ["accuracy.png", "report.md", "report.html"]
    assert files[0].read_bytes().startswith(b"\x89PNG")
    page = (tmp_path / "report.md").read_text()
    assert page.startswith("# Invariant and equivariant graph networks: graph classification\n")
    assert "70.0 ± 0.0 (2 of 10 splits)" in page
    assert re.findall(r"!\[.*?\]\((.*?)\)", page) == ["accuracy.png"]


def test_records_of_all_tables_may_stand_in_one_directory(tmp_path):
    records = Records(tmp_path)
    for record in (finished(small(), 0.5), finished(small(table="table2"), 0.5), classified(MUTAG[0], 0.5)):
        records.add(record)
    assert [table.title.partition(":")[0] for table in tables_of(tmp_path)] == [
        *("Table 1", "Table 2", "Error against the number of nodes"),
        *["Table 3"] * 3,
    ]
    write_report(tmp_path)
    assert "graph networks: the experiments\n" in (tmp_path / "report.md").read_text()


def test_a_curve_is_the_mean_over_the_epochs_that_all_splits_have():
    curves = ([0.0, 0.1, 0.2, 0.3], [0.1, 0.2, 0.3])
    records = [classified(cell, 0.3, curves={"test": curve}) for cell, curve in zip(MUTAG, curves, strict=False)]
    line = accuracy_curves(records).axes[0].lines[0]
    assert list(line.get_xdata()) == [1, 2, 3]
    assert list(line.get_ydata()) == pytest.approx([5, 15, 25])


def test_other_methods_have_rows_between_ours_and_the_papers_that_say_nested():
    records = [classified(cell, 0.8) for cell in cells_of_table3(["gin", "wl"], names=["MUTAG", "COLLAB"])]
    rows = [row[0] for row in table3(records).rows]
    assert rows[:5] == [
        "IGN (authors' set-up), dense",
        "IGN (authors' set-up), sparse",
        "WL, nested",
        "GIN, nested",
        "the paper",
    ]
    assert _row(table3(records), "GIN, nested")[1:] == ("80.0 ± 0.0", *["-"] * 4, "80.0 ± 0.0", "-", "-")
    assert _row(table3(records), "WL")[1] == "84.11 ± 1.9", "the paper's own row is another one"
    assert any(note.startswith("Nested: run here, on the same splits,") for note in table3(records).notes)
    assert not any("Nested" in note for note in table3([classified(MUTAG[0], 0.8)]).notes)


def _seeded(seed, accuracies):
    cells = [replace(cell, seed=seed) for cell in GIN[: len(accuracies)]]
    return [classified(cell, accuracy) for cell, accuracy in zip(cells, accuracies, strict=True)]


def test_other_seeds_have_a_table_of_their_own_and_no_say_in_the_others():
    usual = _seeded(100, [0.8] * 10)
    more = [*_seeded(102, [0.6, 0.7] * 5), *_seeded(101, [0.9] * 4), *usual]
    assert table3(more) == table3(usual)
    assert times_table(more) == times_table(usual)
    what = ("MUTAG", "GIN, nested")
    assert seeds_table(more).rows == (
        (*what, "100", "80.0 ± 0.0"),
        (*what, "101", "90.0 ± 0.0 (4 of 10 splits)"),
        (*what, "102", "65.0 ± 5.0"),
        (*what, "mean of 2", "72.5 ± 7.5"),
    )
    assert seeds_table(usual).rows == ()


def test_seeds_of_the_paper_s_network_are_compared_on_every_data_set():
    cells = [*MUTAG, *cells_of_table3(names=["COLLAB"], splits=[2])]
    table = seeds_table([classified(replace(cell, seed=seed), seed / 200) for cell in cells for seed in (100, 102)])
    assert (table.title, table.head, table.left) == (
        *("Table 3: seeds", ("data set", "method", "seed", "accuracy")),
        3,
    )
    assert table.rows == (
        ("MUTAG", "IGN (authors' set-up), dense, fixed", "100", "50.0 ± 0.0"),
        ("MUTAG", "IGN (authors' set-up), dense, fixed", "102", "51.0 ± 0.0"),
        ("MUTAG", "IGN (authors' set-up), dense, fixed", "mean of 2", "50.5 ± 0.5"),
        ("COLLAB", "IGN (authors' set-up), dense, fixed", "100", "50.0 (1 of 10 splits)"),
        ("COLLAB", "IGN (authors' set-up), dense, fixed", "102", "51.0 (1 of 10 splits)"),
    )
    assert table.notes[0].startswith("The other tables show seed 100 where it was run. ")


def test_one_seed_with_all_splits_has_no_mean_of_seeds():
    rows = seeds_table([*_seeded(100, [0.8] * 10), *_seeded(101, [0.9] * 4)]).rows
    assert [row[2] for row in rows] == ["100", "101"]


@pytest.mark.parametrize("changes", [{"epochs": 10}, {"learning_rate": 0.5}])
def test_another_seed_with_other_options_is_another_set_up(changes):
    others = [classified(replace(with_options(cell, **changes), seed=7), 0.3) for cell in GIN[:2]]
    table = table3([*_seeded(100, [0.8] * 10), *others])
    (name,) = changes
    assert table.notes[-1].startswith(f"MUTAG, GIN, nested: 2 records with {name}={changes[name]} instead of ")
    assert ", seed=7 instead of 100 are not shown" in table.notes[-1]
    assert seeds_table([*_seeded(100, [0.8] * 10), *others]).rows == ()


@pytest.mark.parametrize(
    "change", [GraphCell.quick, lambda cell: with_options(cell, learning_rate=0.5)], ids=["quick", "rate"]
)
def test_where_no_set_up_is_the_usual_one_the_usual_seed_is_shown_all_the_same(change):
    usual, other = ([classified(replace(change(cell), seed=seed), seed / 200) for cell in GIN] for seed in (100, 101))
    for records in ([*usual[:3], *other], [*other, *usual[:3]]):
        assert _row(table3(records), "GIN, nested")[1] == "50.0 ± 0.0 (3 of 10 splits)"
        assert [row[2] for row in seeds_table(records).rows] == ["100", "101"]


def test_what_is_not_shown_is_compared_with_what_is():
    old = [classified(with_options(cell, decay_every=15), 0.8) for cell in MUTAG]
    new = [classified(replace(cell, seed=101), 0.9) for cell in MUTAG]
    table = table3([*old, *new])
    assert _row(table, "IGN (authors' set-up), dense")[1] == "80.0 ± 0.0"
    assert table.notes[-2:] == (
        "MUTAG, IGN, dense, fixed: decay_every=15 instead of 16. Not the authors' set-up.",
        "MUTAG, IGN, dense, fixed: 10 records with decay_every=16 instead of 15, seed=101 instead of "
        "100 are not shown; run another set-up with another --out.",
    )


def test_a_report_tells_of_seeds_only_where_there_are_several(tmp_path):
    records = Records(tmp_path)
    for record in _seeded(100, [0.8] * 2):
        records.add(record)
    assert [table.title for table in tables_of(tmp_path)][-1] == "Table 3: seconds for a split"
    records.add(_seeded(101, [0.5])[0])
    assert [table.title for table in tables_of(tmp_path)][-1] == "Table 3: seeds"


def test_every_method_has_a_row_of_its_own():
    assert len(set(rows_here())) == 1 + len(NAMES)


def test_the_best_averaged_epoch_of_a_method_is_that_of_its_test_graphs():
    records = [classified(cell, 0.6, validation=0.9, curves={"test": [0.5, 0.7]}) for cell in GIN]
    (row,) = protocols_table(records).rows
    assert row == ("MUTAG", "GIN", "-", "-", "60.0 ± 0.0", "70.0 ± 0.0, epoch 2")
    (row,) = protocols_table([{**record, "curves": {}} for record in records]).rows
    assert row[-1] == "-", "kernels have no epochs"


def test_the_time_of_a_split_is_said_by_method_and_protocol():
    records = [
        *({**classified(cell, 0.6), "seconds": seconds} for cell, seconds in zip(GIN, range(10), strict=True)),
        classified(NESTED[0], 0.5),
    ]
    rows = times_table(records).rows
    assert [row[:3] for row in rows] == [
        ("IGN (authors' set-up), dense, nested", "1 (1 of 10 splits)", "-"),
        ("GIN, nested", "4.5", "-"),
    ]


def test_a_method_with_other_options_is_named_and_never_mixed_with_the_usual_ones():
    quick = [classified(cell.quick(), 0.3) for cell in GIN]
    table = table3(quick)
    assert _row(table, "GIN, nested")[1] == "30.0 ± 0.0"
    assert "MUTAG, GIN, nested: epochs=10 instead of 150. Not the usual set-up." in table.notes
    for records in ([*quick, classified(GIN[0], 0.9)], [classified(GIN[0], 0.9), *quick]):
        table = table3(records)
        assert _row(table, "GIN, nested")[1] == "90.0 (1 of 10 splits)"
        assert table.notes[-1] == (
            "MUTAG, GIN, nested: 10 records with epochs=10 instead of 150 are not shown; "
            "run another set-up with another --out."
        )


def test_methods_have_curves_of_test_accuracy_beside_ours_and_kernels_have_none():
    wl = cells_of_table3(["wl"], names=["MUTAG"], splits=[0])
    records = [classified(cell, 0.3, curves=CURVES) for cell in [*MUTAG[:2], *GIN[:2]]]
    figure = accuracy_curves([*records, classified(*wl, 0.3)])
    assert [words.get_text() for words in figure.legends[0].get_texts()] == [
        "IGN (authors' set-up), dense",
        "GIN",
        "the paper",
    ]
    (axes,) = figure.axes
    assert axes.get_xlabel() == "epoch\nIGN, dense: 2 splits; GIN: 2 splits"
    first, second = axes.lines[:2]
    assert first.get_color() != second.get_color()


@pytest.mark.parametrize("most", [1, 2])
def test_bands_are_drawn_where_few_methods_share_a_panel(most, monkeypatch):
    monkeypatch.setattr(plots, "MAX_BANDS", most)
    (axes,) = accuracy_curves([classified(cell, 0.3, curves=CURVES) for cell in [*MUTAG[:2], *GIN[:2]]]).axes
    assert len(axes.collections) == (2 if most == 2 else 0)


def test_a_report_has_all_methods_of_a_directory(tmp_path):
    records = Records(tmp_path)
    for cell in cells_of_table3(NAMES, names=["MUTAG", "NCI1"], splits=[0]):
        records.add(classified(cell, 0.7, curves={"test": [0.5]} if cell.epochs > 1 else None))
    write_report(tmp_path)
    page = (tmp_path / "report.md").read_text()
    assert "![Accuracy after each epoch" in page
    for row in rows_here()[2:]:
        assert f"| {row}, nested | 70.0 (1 of 10 splits) | - | - | 70.0" in page
