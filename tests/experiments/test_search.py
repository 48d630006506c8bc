"""The search for a recipe: what it compares, and that it goes on from where it was stopped."""

from dataclasses import replace
from pathlib import Path

import pytest

from bellnet.estimator import GraphClassifier
from bellnet.estimator.options import MAX_EPOCHS
from experiments.__main__ import main
from experiments.methods import method
from experiments.records import Records
from experiments.run import run_cells
from experiments.search import (
    BASELINE,
    SPACE,
    SearchCell,
    SearchPlan,
    one_change_each,
    options,
    run_search,
    search_table,
)

PLAN = SearchPlan(trials=4, repeats=2, names=("MUTAG", "PTC_MR"))


class Computed(list):
    """The keys of all cells that were computed; after so many there is an interruption."""

    stop_after = None


@pytest.fixture
def computed(monkeypatch):
    """What was computed: recipes are not trained, and the wider, the better."""
    done = Computed()

    def compute(self, record):
        if len(done) == done.stop_after:
            raise KeyboardInterrupt
        done.append(self.key)
        recipe = dict(zip(SPACE, self.recipe, strict=True))
        found = 0.5 + recipe["width"] / 200 + 0.01 * self.repeat - 0.1 * recipe["jumping_knowledge"]
        return {"accuracy": found, "last": found, "best_epoch": 1, "parameters": 1, "seconds": 1.0}

    monkeypatch.setattr(SearchCell, "compute", compute)
    return done


def test_recipes_differ_from_the_baseline_in_one_parameter():
    recipes = one_change_each()
    assert recipes[0] == BASELINE
    assert len({tuple(recipe.values()) for recipe in recipes}) == len(recipes)
    assert len(recipes) == 1 + sum(len(answers) - 1 for answers in SPACE.values())
    for recipe in recipes[1:]:
        (changed,) = (name for name in SPACE if recipe[name] != BASELINE[name])
        assert recipe[changed] in SPACE[changed][1:]


def test_every_recipe_is_one_of_the_classifier():
    for recipe in one_change_each():
        model = GraphClassifier(**options(recipe))
        assert len(model.channels) == recipe["depth"]


def test_the_study_has_the_mean_over_sets_and_draws(computed, tmp_path):
    study = run_search(tmp_path, PLAN, show=False)
    assert len(study.trials) >= PLAN.trials
    first = study.trials[0]
    assert first.params == BASELINE
    assert first.value == pytest.approx(0.5 + 48 / 200 + 0.005)
    assert len(computed) == PLAN.trials * PLAN.repeats * len(PLAN.names)
    assert len(search_table(list(Records(tmp_path).read().values())).rows) == PLAN.trials


@pytest.mark.parametrize("stop_after", [0, 1, 5, 15])
def test_a_search_that_was_stopped_resumes_and_computes_nothing_twice(computed, tmp_path, stop_after):
    whole = run_search(tmp_path / "whole", PLAN, show=False)
    expected = {tuple(trial.params.items()): trial.value for trial in whole.trials if trial.value is not None}
    computed.clear()
    computed.stop_after = stop_after
    with pytest.raises(KeyboardInterrupt):
        run_search(tmp_path / "stopped", PLAN, show=False)
    computed.stop_after = None
    again = run_search(tmp_path / "stopped", PLAN, show=False)
    assert {tuple(trial.params.items()): trial.value for trial in again.trials if trial.value is not None} == expected
    assert len(computed) == len(set(computed)) == PLAN.trials * PLAN.repeats * len(PLAN.names)


def test_a_search_that_is_done_computes_nothing(computed, tmp_path):
    run_search(tmp_path, PLAN, show=False)
    computed.clear()
    run_search(tmp_path, PLAN, show=False)
    assert computed == []


def test_a_single_parameter_can_be_varied(computed, tmp_path):
    plan = replace(PLAN, trials=2, parameters=("width",))
    study = run_search(tmp_path, plan, show=False)
    assert [trial.params for trial in study.trials] == [BASELINE, BASELINE | {"width": 32}]
    assert study.study_name == "MUTAG PTC_MR, 2 draws, width, selected by error"
    assert len(run_search(tmp_path, PLAN, show=False).trials) >= PLAN.trials, "another study, beside it"


def test_all_recipes_of_a_few_parameters_are_tried_and_then_no_more(computed, tmp_path):
    plan = SearchPlan(trials=100, names=("MUTAG",), parameters=("depth", "width"))
    study = run_search(tmp_path, plan, show=False)
    tried = [trial.params for trial in study.trials if trial.value is not None]
    both = {(recipe["width"], recipe["depth"]) for recipe in tried}
    assert both == {(width, depth) for width in SPACE["width"] for depth in SPACE["depth"]}
    assert all(recipe == BASELINE | {name: recipe[name] for name in plan.parameters} for recipe in tried)
    assert len(computed) == 9
    assert plan.title == replace(plan, parameters=("width", "depth", "width")).title


def test_without_a_number_all_recipes_that_change_one_parameter_are_tried(computed, tmp_path):
    plan = SearchPlan(names=("MUTAG",), parameters=("pool", "width"))
    assert len(run_search(tmp_path, plan, show=False).trials) == 6
    assert SearchPlan().n_recipes == len(one_change_each())


def test_the_command_varies_the_named_parameters(monkeypatch, tmp_path):
    plans = []
    monkeypatch.setattr("experiments.search.run_search", lambda directory, plan, **options: plans.append(plan))
    folder = tmp_path / "data"
    folder.mkdir()
    arguments = ["search", "--data", str(folder), "--out", str(tmp_path / "out"), "--repeats", "2"]
    assert main([*arguments, "--parameter", "degree_bins"]) == 0
    assert main([*arguments, "--trials", "3"]) == 0
    assert [(plan.parameters, plan.trials, plan.repeats) for plan in plans] == [
        (("degree_bins",), None, 2),
        (tuple(SPACE), 3, 2),
    ]


def test_different_criteria_are_never_averaged(computed, tmp_path):
    cells = PLAN.cells(BASELINE)
    run_cells([*cells, *(replace(cell, criterion="loss") for cell in cells)], tmp_path, show=False)
    rows = search_table(list(Records(tmp_path).read().values())).rows
    assert {row[:2] for row in rows} == {
        (f"baseline, selected by {criterion}", "74.5 (2)") for criterion in ("loss", "error")
    }


def test_table_3_knows_how_many_epochs_the_classifier_may_take():
    assert method("bellnet").auto_epochs == MAX_EPOCHS
    assert method("bellnet").max_epochs(method("bellnet").usual("MUTAG")) == MAX_EPOCHS


@pytest.mark.parametrize("study", ["search", "search-degrees", "search-networks"])
def test_the_page_shows_the_studies_of_the_repository(study):
    place = Path(__file__).parents[2]
    found = search_table(list(Records(place / "results" / study).read().values()))
    assert found.markdown().partition("\n\n")[2] in (place / "docs" / "classifier.md").read_text()
