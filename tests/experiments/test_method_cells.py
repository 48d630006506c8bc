"""Cells of other methods in Table 3: which there are, their keys, and what they refuse."""

from dataclasses import fields, replace
from pathlib import Path

import pytest

from bellnet.errors import MissingExtraError, OptionError
from bellnet.estimator import GraphClassifier
from bellnet.estimator.options import MAX_EPOCHS
from experiments.graph_cells import cells_of_table3
from experiments.graph_data import load_graphs, load_set, parts_of
from experiments.method_cells import MethodCell, cells_of_methods, quick_method
from experiments.methods import NAMES, method
from tests.experiments.graphs import write_set

CELL = MethodCell(method="gin", name="MUTAG", split=0, options={"epochs": 3, "b": [1, 2], "a": None})


def test_there_is_a_cell_for_every_method_data_set_and_split():
    cells = cells_of_methods(["gin", "wl"])
    assert len(cells) == 160
    assert [(cell.name, cell.method, cell.split) for cell in cells[:11]] == [
        *(("MUTAG", "gin", split) for split in range(10)),
        ("MUTAG", "wl", 0),
    ], "splits that share a data set and its kernel come one after the other"


@pytest.mark.parametrize("name", NAMES)
def test_the_usual_options_are_those_of_the_method_and_survive_being_written(name):
    (cell,) = cells_of_methods([name], names=["MUTAG"], splits=[0])
    assert set(dict(cell.options)) == set(method(name).usual())
    assert MethodCell.from_json(cell.to_json()) == cell
    with pytest.raises(TypeError):
        MethodCell.from_json({**cell.to_json(), "unknown": 1})
    assert replace(cell.usual(), split=cell.split) == cell


def test_a_key_stays_what_it_is():
    # Records of earlier runs are found by it: if this fails, they are all run again.
    (wl,) = cells_of_methods(["wl"], names=["MUTAG"], splits=[0])
    assert wl.key == "table3-MUTAG-0-wl-nested-100-5e31c9e844"
    (gin,) = cells_of_methods(["gin"], names=["MUTAG"], splits=[0])
    assert gin.key == "table3-MUTAG-0-gin-nested-100-903b35d265"
    (classifier,) = cells_of_methods(["bellnet"], names=["MUTAG"], splits=[0])
    assert classifier.key == "table3-MUTAG-0-bellnet-nested-100-827e7215e3"


def test_a_key_tells_every_field_apart_but_where_the_data_are():
    others = {
        "method": "dgcnn",
        "name": "PTC_MR",
        "split": 1,
        "options": {**dict(CELL.options), "a": 0},
        "seed": 0,
        "held_out": 5,
    }
    assert {field.name for field in fields(MethodCell)} == {
        *(*others, "protocol", "table", "data", "max_unpacked", "max_ratio", "epochs"),
    }
    assert len({CELL.key, *(replace(CELL, **{name: value}).key for name, value in others.items())}) == 1 + len(others)
    elsewhere = replace(CELL, data=Path("elsewhere"), max_unpacked=2.0**40, max_ratio=1e4)
    assert elsewhere.key == CELL.key
    assert elsewhere == CELL
    assert "data" not in elsewhere.to_json()


def test_the_order_of_options_is_of_no_account():
    assert replace(CELL, options={"a": None, "b": (1, 2), "epochs": 3}) == CELL


def test_the_key_of_best_has_every_argument_of_the_classifier():
    (cell,) = cells_of_methods(["bellnet"], names=["MUTAG"], splits=[0])
    arguments = GraphClassifier().get_params()
    assert {*dict(cell.options), "random_state", "verbose"} == set(arguments)
    assert dict(cell.options) == {name: arguments[name] for name in dict(cell.options)}
    apart = replace(cell, options={**dict(cell.options), "node_channels": "separate"})
    assert apart.key != cell.key
    assert MethodCell.from_json(apart.to_json()) == apart
    assert replace(cell, options={**dict(cell.options), "dropout": 0.7}).key != cell.key


def test_epochs_that_the_classifier_chooses_are_known_by_their_most():
    (cell,) = cells_of_methods(["bellnet"], names=["MUTAG"], splits=[0])
    assert replace(cell, options={**dict(cell.options), "max_epochs": "auto"}).epochs == MAX_EPOCHS
    with pytest.raises(OptionError, match="the option epochs must be an integer from 1 up, not 'auto'"):
        replace(CELL, options={"epochs": "auto"})


def test_epochs_and_rates_change_what_a_method_calls_so():
    for name, epochs, rate in (("gin", "epochs", "rate"), ("bellnet", "max_epochs", "learning_rate")):
        (cell,) = cells_of_methods([name], names=["MUTAG"], splits=[0])
        changed = dict(cell.changed(epochs=7, rate=0.5).options)
        assert {key for key, value in changed.items() if value != dict(cell.options)[key]} == {epochs, rate}
        assert cell.changed(epochs=7).epochs == 7
        assert quick_method(cell).epochs == 10
    (cell,) = cells_of_methods(["wl"], names=["MUTAG"], splits=[0])
    assert cell.changed(epochs=7, rate=0.5) == quick_method(cell) == cell


def test_what_is_kept_aside_is_what_a_nested_cell_of_the_papers_network_keeps(tmp_path):
    data = write_set(tmp_path)
    (ours,) = cells_of_table3(names=["MUTAG"], splits=[1], protocols=["nested"])
    other = replace(CELL, split=1)
    assert parts_of(other, load_graphs("MUTAG", data)) == parts_of(ours, load_set("MUTAG", data))


def test_all_mistakes_of_a_cell_are_said_at_once():
    with pytest.raises(OptionError) as caught:
        MethodCell(method="svm", name="MUTAG", split=-1, options={}, seed=2**32, held_out=1, protocol="fixed")
    assert str(caught.value) == (
        "This cell cannot be run:\n"
        "  - method must be one of 'bellnet', 'wl', 'graphlet', 'random-walk', 'propagation', 'gin', 'dgcnn', "
        "'diffpool', 'ecc', 'ppgn', not 'svm'\n"
        "  - protocol must be one of 'nested', not 'fixed'\n"
        "  - split must be an integer from 0 up, not -1\n"
        "  - held_out must be an integer from 2 up, not 1\n"
        "  - seed must be an integer from 0 to 4294967295, not 4294967296"
    )
    with pytest.raises(OptionError) as caught:
        replace(CELL, name=3, options={"epochs": 0})
    assert str(caught.value) == (
        "This cell cannot be run:\n"
        "  - name must be the name of a data set, not 3\n"
        "  - the option epochs must be an integer from 1 up, not 0"
    )


@pytest.mark.parametrize(("name", "package"), [("wl", "grakel"), ("gin", "torch_geometric"), ("bellnet", "sklearn")])
def test_a_missing_package_is_said_with_the_extra_that_brings_it(name, package, monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda asked: None if asked == package else asked)
    with pytest.raises(MissingExtraError) as caught:
        cells_of_methods([name])
    assert str(caught.value) == (
        f"table3 --method {name} needs {package}, which is not installed.\n"
        "Install it, in the clone of the repository: pip install -e '.[compare]'"
    )


def test_records_can_be_read_where_the_packages_are_missing(monkeypatch):
    (cell,) = cells_of_methods(["bellnet"], names=["MUTAG"], splits=[4])
    monkeypatch.setattr("experiments.methods.base.find_spec", lambda asked: None)
    assert cell.usual() == replace(cell, split=0)
