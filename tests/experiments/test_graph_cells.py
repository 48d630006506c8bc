"""Cells of Table 3: which there are, their keys, their learning rates, and what they refuse."""

from dataclasses import fields, replace
from pathlib import Path

import pytest

from bellnet.errors import OptionError
from experiments.graph_cells import SETS, TRAINING, GraphCell, cells_of_table3, quick_graphs
from tests.experiments.graphs import TINY, tiny


def test_table_3_has_8_data_sets_of_10_splits():
    cells = cells_of_table3()
    assert len(cells) == 80
    assert list(dict.fromkeys(cell.name for cell in cells)) == list(SETS)
    assert {(cell.layout, cell.protocol, cell.seed) for cell in cells} == {("dense", "fixed", 100)}


def test_the_set_up_is_the_authors():
    for cell in cells_of_table3(layouts=["dense", "sparse"]):
        assert (cell.channels, cell.hidden, cell.batch) == ((16, 32, 256), (512, 256), 5)
        assert cell.last_rate == 1e-5
    chosen = {cell.name: (cell.rate, cell.decay, cell.epochs, cell.decay_every) for cell in cells_of_table3(splits=[0])}
    assert chosen == {
        "MUTAG": (0.00512, 0.7, 130, 16),
        "PTC_MR": (0.00128, 0.6, 9, 15),
        "PROTEINS": (0.00064, 0.7, 20, 14),
        "NCI1": (0.00256, 0.7, 99, 19),
        "NCI109": (0.00256, 0.7, 99, 19),
        "COLLAB": (0.00256, 0.7, 100, 17),
        "IMDB-BINARY": (0.00064, 0.4, 40, 17),
        "IMDB-MULTI": (0.00064, 0.7, 150, 18),
    }


def test_the_documentation_has_the_same_rates_factors_and_epochs():
    page = (Path(__file__).parents[2] / "docs" / "experiments.md").read_text(encoding="utf-8")
    words = {"rate": "rate", "factor": "decay", "epochs": "epochs", "rate falls after": "decay_every"}
    for word, name in words.items():
        figures = " | ".join(f"{getattr(TRAINING[one], name):g}" for one in SETS)
        assert f"\n| {word} | {figures} |\n" in page


def test_a_key_stays_what_it_is():
    # Records of earlier runs are found by it: if this fails, they are all run again.
    (cell,) = cells_of_table3(names=["MUTAG"], splits=[0])
    assert replace(cell, decay_every=15).key == "table3-MUTAG-0-dense-fixed-100-56bdab5139"
    assert cell.key == "table3-MUTAG-0-dense-fixed-100-ede7729df2"
    (cell,) = cells_of_table3(names=["MUTAG"], splits=[0], layouts=["sparse"])
    assert replace(cell, decay_every=15).key == "table3-MUTAG-0-sparse-fixed-100-986d05ea00"


def test_a_key_tells_every_field_apart_but_where_the_data_are():
    others = {
        "name": "PTC_MR",
        "split": 1,
        "epochs": 4,
        "rate": 0.1,
        "decay": 0.9,
        "layout": "sparse",
        "protocol": "nested",
        "seed": 0,
        "channels": (4,),
        "hidden": (9,),
        "batch": 1,
        "decay_every": 9,
        "last_rate": 1e-4,
        "held_out": 5,
    }
    assert {field.name for field in fields(GraphCell)} == {*others, "table", "data", "max_unpacked", "max_ratio"}
    assert len({TINY.key, *(tiny(**{name: value}).key for name, value in others.items())}) == 1 + len(others)
    elsewhere = tiny(data=Path("elsewhere"), max_unpacked=2.0**40, max_ratio=1e4)
    assert elsewhere.key == TINY.key
    assert elsewhere == TINY


def test_a_cell_is_what_was_written_of_it_and_does_not_tell_where_the_data_were():
    written = tiny(data=Path("elsewhere")).to_json()
    assert "data" not in written
    assert GraphCell.from_json(written) == TINY
    with pytest.raises(TypeError):
        GraphCell.from_json({**written, "unknown": 1})


def test_the_learning_rate_falls_in_steps_but_not_below_the_last():
    (cell,) = cells_of_table3(names=["MUTAG"], splits=[0])
    assert [cell.rate_in(epoch) for epoch in (0, 15)] == [0.00512, 0.00512]
    assert cell.rate_in(16) == pytest.approx(0.00512 * 0.7)
    assert cell.rate_in(129) == pytest.approx(0.00512 * 0.7**8)
    assert cell.rate_in(10_000) == 1e-5
    assert replace(cell, rate=1e-6).rate_in(10_000) == 1e-6


def test_quick_cells_have_few_epochs_and_other_keys():
    for cell in cells_of_table3(splits=[0]):
        assert quick_graphs(cell).epochs <= 10
        assert quick_graphs(cell).key != cell.key or cell.epochs <= 10


def test_all_mistakes_of_a_cell_are_said_at_once():
    with pytest.raises(OptionError) as caught:
        tiny(layout="padded", protocol="best", split=-1, seed=2**32, channels=(), rate=0.0, decay=2.0, held_out=1)
    assert str(caught.value) == (
        "This cell cannot be run:\n"
        "  - layout must be one of 'dense', 'sparse', not 'padded'\n"
        "  - protocol must be one of 'fixed', 'nested', not 'best'\n"
        "  - split must be an integer from 0 up, not -1\n"
        "  - held_out must be an integer from 2 up, not 1\n"
        "  - seed must be an integer from 0 to 4294967295, not 4294967296\n"
        "  - rate must be a positive number, not 0.0\n"
        "  - channels must be integers from 1 up, at least one, not ()\n"
        "  - decay must be a factor above 0, at most 1, not 2.0"
    )


def test_an_unknown_data_set_is_refused():
    with pytest.raises(OptionError) as caught:
        cells_of_table3(names=["MUTAG", "ENZYMES"])
    assert str(caught.value) == (
        "cells_of_table3: names must be some of 'MUTAG', 'PTC_MR', 'PROTEINS', 'NCI1', 'NCI109', 'COLLAB', "
        "'IMDB-BINARY', 'IMDB-MULTI', not 'ENZYMES'."
    )
