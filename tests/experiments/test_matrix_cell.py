"""Cells: which there are, their keys, and what they refuse."""

import pytest

from bellnet.errors import OptionError
from experiments.matrix_cell import MatrixCell, cells_of_table1, cells_of_table2
from tests.experiments.small import SMALL, small


def test_table_1_has_13_columns_and_3_methods():
    cells = cells_of_table1()
    assert len(cells) == 39
    assert len({(cell.task, cell.layers) for cell in cells}) == 13
    assert {cell.layers for cell in cells if cell.task == "singular"} == {1, 2, 3, 4}


def test_the_set_up_is_the_papers():
    for cell in cells_of_table1() + cells_of_table2():
        assert (cell.n, cell.train, cell.test, cell.channels) == (40, 10_000, 1_000, 8)


def test_table_2_is_tested_at_the_papers_sizes_and_at_more():
    cells = cells_of_table2()
    assert [cell.subject for cell in cells] == ["symmetric", "singular", "diagonal", "trace", "trace per node"]
    assert all({30, 40, 50} < set(cell.sizes) and min(cell.sizes) == 10 and max(cell.sizes) == 100 for cell in cells)


def test_a_key_tells_every_field_apart():
    others = [small(seed=1), small(n=5), small(epochs=4), small(learning_rate=0.02), small(sizes=(3,))]
    assert len({SMALL.key, *(cell.key for cell in others)}) == 1 + len(others)


def test_a_key_stays_what_it_is():
    # Records of earlier runs are found by it: if this fails, they are all run again.
    assert SMALL.key == "table1-diagonal-1-bellnet-0-591fe0d6ae"


def test_a_cell_is_what_was_written_of_it():
    assert MatrixCell.from_json(SMALL.to_json()) == SMALL
    with pytest.raises(TypeError):
        MatrixCell.from_json({**SMALL.to_json(), "unknown": 1})


def test_readouts_are_tried_for_the_trace_alone():
    cells = cells_of_table1(layers=[1], methods=["bellnet", "trivial"], readouts=["mean", "max"])
    tried = [(cell.method, cell.readout) for cell in cells if cell.task == "trace"]
    assert tried == [("bellnet", "mean"), ("bellnet", "max"), ("trivial", "max")]
    assert len(cells) == 3 * 2 + 3


def test_several_rates_make_several_cells_but_one_trivial_predictor():
    cells = cells_of_table1(tasks=["trace"], layers=[1], learning_rates=[0.01, 0.1, 0.01])
    assert [(cell.method, cell.learning_rate) for cell in cells if cell.method == "bellnet"] == [
        ("bellnet", 0.01),
        ("bellnet", 0.1),
    ]
    assert sum(cell.method == "trivial" for cell in cells) == 1


def test_quick_cells_learn_from_less_and_have_other_keys():
    for cell in cells_of_table1() + cells_of_table2():
        assert cell.quick().train < cell.train
        assert cell.quick().key != cell.key
        assert cell.quick().n in cell.quick().sizes


def test_a_quick_cell_keeps_a_rate_that_was_asked_for():
    cell = cells_of_table1(tasks=["diagonal"], layers=[3], methods=["bellnet"])[0]
    assert cell.quick().learning_rate < cell.learning_rate
    assert cell.quick(keep_learning_rate=True).learning_rate == cell.learning_rate


def test_all_mistakes_of_a_cell_are_said_at_once():
    with pytest.raises(OptionError) as caught:
        small(task="rank", layers=0, seed=-1, learning_rate=0.0)
    assert str(caught.value) == (
        "This cell cannot be run:\n"
        "  - task must be one of 'symmetric', 'diagonal', 'singular', 'trace', not 'rank'\n"
        "  - layers must be an integer from 1 up, not 0\n"
        "  - seed must be an integer from 0 to 4294967295, not -1\n"
        "  - learning_rate must be a positive number, not 0.0"
    )


def test_validation_leaves_something_to_learn_from():
    with pytest.raises(OptionError, match="validation=60 leaves nothing of train=60 to train on"):
        small(validation=60)


def test_a_table_without_cells_is_refused():
    with pytest.raises(OptionError, match="Only the task 'singular' has 4 layers"):
        cells_of_table1(tasks=["trace"], layers=[4])
