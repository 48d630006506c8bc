"""Cells of Table 3: which there are, their keys and options, and what they refuse."""

from dataclasses import fields, replace
from pathlib import Path

import pytest

from bellnet.errors import MissingExtraError, OptionError
from bellnet.estimator import GraphClassifier
from bellnet.estimator.options import MAX_EPOCHS
from experiments.graph_cell import SETS, GraphCell, cells_of_table3
from experiments.methods import NAMES, method
from experiments.methods.ign import TRAINING
from tests.experiments.graphs import TINY, tiny

CELL = GraphCell(method="gin", name="MUTAG", split=0, options={"epochs": 3, "learning_rate": 1, "b": [1, 2], "a": None})


def _cell(name, **changes):
    (cell,) = cells_of_table3([name], names=["MUTAG"], splits=[0], **changes)
    return cell


def test_table_3_has_8_data_sets_of_10_splits():
    cells = cells_of_table3()
    assert len(cells) == 80
    assert list(dict.fromkeys(cell.name for cell in cells)) == list(SETS)
    assert {(cell.row, cell.protocol, cell.seed) for cell in cells} == {
        ("IGN (authors' set-up), dense", "fixed", 100),
    }


def test_splits_of_a_data_set_and_a_method_are_consecutive():
    cells = cells_of_table3(["gin", "wl"])
    assert len(cells) == 160
    assert [(cell.name, cell.method, cell.split) for cell in cells[:11]] == [
        *(("MUTAG", "gin", split) for split in range(10)),
        ("MUTAG", "wl", 0),
    ]


def test_layouts_and_protocols_apply_to_the_methods_that_have_them():
    cells = cells_of_table3(["ign", "gin"], names=["MUTAG"], splits=[0], layouts=["dense", "sparse"])
    assert [(cell.row, cell.protocol) for cell in cells] == [
        ("IGN (authors' set-up), dense", "fixed"),
        ("IGN (authors' set-up), sparse", "fixed"),
        ("GIN", "nested"),
    ]
    cells = cells_of_table3(["ign", "gin"], names=["MUTAG"], splits=[0], protocols=["fixed", "nested"])
    assert [(cell.method, cell.protocol) for cell in cells] == [
        *(("ign", "fixed"), ("ign", "nested"), ("gin", "nested")),
    ]


def test_the_set_up_is_the_authors():
    for cell in cells_of_table3(layouts=["dense", "sparse"]):
        options = dict(cell.options)
        assert (options["channels"], options["hidden"], options["batch_size"]) == ((16, 32, 256), (512, 256), 5)
        assert options["min_learning_rate"] == 1e-5
    names = ("learning_rate", "decay", "epochs", "decay_every")
    assert {name: tuple(TRAINING[name][option] for option in names) for name in SETS} == {
        "MUTAG": (0.00512, 0.7, 130, 16),
        "PTC_MR": (0.00128, 0.6, 9, 15),
        "PROTEINS": (0.00064, 0.7, 20, 14),
        "NCI1": (0.00256, 0.7, 99, 19),
        "NCI109": (0.00256, 0.7, 99, 19),
        "COLLAB": (0.00256, 0.7, 100, 17),
        "IMDB-BINARY": (0.00064, 0.4, 40, 17),
        "IMDB-MULTI": (0.00064, 0.7, 150, 18),
    }


def test_the_documentation_has_the_same_training():
    page = (Path(__file__).parents[2] / "docs" / "experiments.md").read_text(encoding="utf-8")
    words = {"learning rate": "learning_rate", "factor": "decay", "epochs": "epochs", "decay after": "decay_every"}
    for word, name in words.items():
        figures = " | ".join(f"{TRAINING[one][name]:g}" for one in SETS)
        assert f"\n| {word} | {figures} |\n" in page


@pytest.mark.parametrize("name", NAMES)
def test_the_usual_options_are_recognised_after_they_were_written(name):
    cell = _cell(name)
    assert set(dict(cell.options)) == set(method(name).usual("MUTAG"))
    assert GraphCell.from_json(cell.to_json()) == cell
    with pytest.raises(TypeError):
        GraphCell.from_json({**cell.to_json(), "unknown": 1})
    assert replace(cell.usual(), split=cell.split) == cell


KEYS = {
    "ign": "table3-MUTAG-0-ign-fixed-100-1978c4313b",
    "wl": "table3-MUTAG-0-wl-nested-100-d118b3cd4a",
    "gin": "table3-MUTAG-0-gin-nested-100-8133483fc2",
    "bellnet": "table3-MUTAG-0-bellnet-nested-100-827e7215e3",
}


@pytest.mark.parametrize("name", KEYS)
def test_a_key_stays_what_it_is(name):
    # Records of earlier runs are found by it: if this fails, they are all run again.
    assert _cell(name).key == KEYS[name]


@pytest.mark.parametrize("cell", [TINY, CELL], ids=["ign", "gin"])
def test_a_key_is_different_for_every_field_but_the_folder_of_the_data(cell):
    others = {
        "method": "ppgn" if cell is CELL else "gin",
        "name": "PTC_MR",
        "split": 1,
        "options": {**dict(cell.options), "a": 0},
        "protocol": "nested",
        "seed": 0,
        "validation_part": 5,
    }
    assert {field.name for field in fields(GraphCell)} == {
        *(*others, "table", "data", "max_unpacked", "max_ratio", "epochs", "is_learned"),
    }
    changed = {
        replace(cell, protocol="nested", **{name: value}) for name, value in others.items() if name != "protocol"
    }
    assert len({cell.key, *(other.key for other in changed)}) == len(others)
    elsewhere = replace(cell, data=Path("elsewhere"), max_unpacked=2.0**40, max_ratio=1e4)
    assert elsewhere.key == cell.key
    assert elsewhere == cell
    assert "data" not in elsewhere.to_json()
    assert tiny(layout="sparse").key != TINY.key


def test_the_order_of_options_is_irrelevant():
    assert replace(CELL, options={"a": None, "b": (1, 2), "learning_rate": 1, "epochs": 3}) == CELL


def test_the_options_of_the_classifier_are_all_of_its_arguments():
    cell = _cell("bellnet")
    arguments = GraphClassifier().get_params()
    assert {*dict(cell.options), "random_state", "verbose"} == set(arguments)
    assert dict(cell.options) == {name: arguments[name] for name in dict(cell.options)}
    assert replace(cell, options={**dict(cell.options), "dropout": 0.7}).key != cell.key


def test_the_maximum_number_of_epochs_of_the_classifier_is_known():
    assert dict(_cell("bellnet").options)["max_epochs"] == "auto"
    assert _cell("bellnet").epochs == MAX_EPOCHS
    with pytest.raises(OptionError, match="the option epochs must be an integer from 1 up, not 'auto'"):
        replace(CELL, options={**dict(CELL.options), "epochs": "auto"})


@pytest.mark.parametrize(("name", "epochs"), [("gin", "epochs"), ("ign", "epochs"), ("bellnet", "max_epochs")])
def test_epochs_and_learning_rates_can_be_changed(name, epochs):
    cell = _cell(name)
    changed = dict(cell.changed(max_epochs=7, learning_rate=0.5).options)
    assert {key for key, value in changed.items() if value != dict(cell.options)[key]} == {epochs, "learning_rate"}
    assert cell.changed(max_epochs=7).epochs == 7
    assert cell.quick().epochs == 10
    assert cell.quick().key != cell.key


def test_kernels_have_neither_epochs_nor_a_learning_rate():
    cell = _cell("wl")
    assert cell.changed(max_epochs=7, learning_rate=0.5) == cell.quick() == cell


def test_the_learning_rate_decays_in_steps_down_to_its_minimum():
    cell, ign = _cell("ign"), method("ign")
    options = dict(cell.options)
    assert [ign.learning_rate(options, epoch) for epoch in (0, 15)] == [0.00512, 0.00512]
    assert ign.learning_rate(options, 16) == pytest.approx(0.00512 * 0.7)
    assert ign.learning_rate(options, 129) == pytest.approx(0.00512 * 0.7**8)
    assert ign.learning_rate(options, 10_000) == 1e-5
    assert ign.learning_rate({**options, "learning_rate": 1e-6}, 10_000) == 1e-6


def test_all_mistakes_of_a_cell_are_reported_at_once():
    with pytest.raises(OptionError) as caught:
        GraphCell(method="svm", name="MUTAG", split=-1, options={}, seed=2**32, validation_part=1, protocol="best")
    assert str(caught.value) == (
        "This cell cannot be run:\n"
        "  - method must be one of 'ign', 'bellnet', 'wl', 'graphlet', 'random-walk', 'propagation', 'gin', 'dgcnn', "
        "'diffpool', 'ecc', 'ppgn', not 'svm'\n"
        "  - protocol must be one of 'fixed', 'nested', not 'best'\n"
        "  - split must be an integer from 0 up, not -1\n"
        "  - validation_part must be an integer from 2 up, not 1\n"
        "  - seed must be an integer from 0 to 4294967295, not 4294967296"
    )
    with pytest.raises(OptionError) as caught:
        tiny(name=3, epochs=0, learning_rate=0.0, layout="padded", decay=2.0)
    assert str(caught.value) == (
        "This cell cannot be run:\n"
        "  - name must be the name of a data set, not 3\n"
        "  - the option epochs must be an integer from 1 up, not 0\n"
        "  - the option learning_rate must be a positive number, not 0.0\n"
        "  - the option layout must be one of 'dense', 'sparse', not 'padded'\n"
        "  - the option decay must be a factor above 0, at most 1, not 2.0"
    )
    with pytest.raises(OptionError, match="protocol must be one of 'nested', not 'fixed'"):
        replace(CELL, protocol="fixed")


def test_an_unknown_data_set_is_refused():
    with pytest.raises(OptionError) as caught:
        cells_of_table3(names=["MUTAG", "ENZYMES"])
    assert str(caught.value) == (
        "cells_of_table3: names must be some of 'MUTAG', 'PTC_MR', 'PROTEINS', 'NCI1', 'NCI109', 'COLLAB', "
        "'IMDB-BINARY', 'IMDB-MULTI', not 'ENZYMES'."
    )


@pytest.mark.parametrize(("name", "package"), [("wl", "grakel"), ("gin", "torch_geometric"), ("bellnet", "sklearn")])
def test_a_missing_package_is_reported_with_the_extra_that_installs_it(name, package, monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda asked: None if asked == package else asked)
    with pytest.raises(MissingExtraError) as caught:
        cells_of_table3([name])
    assert str(caught.value) == (
        f"table3 --method {name} needs {package}, which is not installed.\n"
        "Install it, in the clone of the repository: pip install -e '.[compare]'"
    )


def test_records_can_be_read_where_the_packages_are_missing(monkeypatch):
    cell = _cell("bellnet")
    monkeypatch.setattr("experiments.methods.base.find_spec", lambda asked: None)
    assert cell.usual() == cell
