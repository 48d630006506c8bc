"""The estimators in scikit-learn's tools: search, cross-validation, pipelines, clones."""

import pickle

import numpy as np
import pytest
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from bellnet.estimator import GraphClassifier, GraphRegressor
from tests.estimator.small import LEARNS, classifier, leaves, regressor, stars_and_paths


def test_scikit_learn_knows_the_kinds_of_estimators():
    assert is_classifier(GraphClassifier())
    assert not is_classifier(GraphRegressor())
    assert is_regressor(GraphRegressor())


def test_cross_validation_works():
    graphs, labels = stars_and_paths()
    scores = cross_val_score(classifier(**LEARNS), graphs, labels, cv=2)
    assert scores.shape == (2,)
    assert scores.mean() > 0.9


def test_grid_search_works():
    graphs, labels = stars_and_paths()
    labels = 1 - labels  # the maximal degree alone, as chance weighs it at first, would be right the other way round
    search = GridSearchCV(classifier(**LEARNS), {"learning_rate": [1e-9, 0.01], "pool": ["max", "mean"]}, cv=2)
    search.fit(graphs, labels)
    assert len(search.cv_results_["params"]) == 4
    assert search.best_params_["learning_rate"] == 0.01
    assert search.predict(graphs).shape == labels.shape


def test_a_pipeline_passes_graphs():
    graphs, labels = stars_and_paths()
    pipeline = make_pipeline(FunctionTransformer(list), classifier(max_epochs=3))
    pipeline.fit(graphs, labels, graphclassifier__sample_weight=np.ones(len(graphs)))
    alone = classifier(max_epochs=3).fit(graphs, labels)
    assert np.array_equal(pipeline.predict_proba(graphs), alone.predict_proba(graphs))


@pytest.mark.parametrize("make", [classifier, regressor])
def test_a_clone_has_the_options_and_is_not_fitted(make):
    graphs, labels = leaves()
    model = make(channels=(3,), random_state=5).fit(graphs, labels)
    copy = clone(model)
    assert copy.get_params() == model.get_params()
    with pytest.raises(NotFittedError):
        copy.predict(graphs)
    assert np.array_equal(copy.fit(graphs, labels).predict(graphs), model.predict(graphs))


@pytest.mark.parametrize("make", [classifier, regressor])
def test_a_pickled_estimator_predicts_the_same(make):
    graphs, labels = leaves()
    model = make().fit(graphs, labels)
    again = pickle.loads(pickle.dumps(model))
    assert np.array_equal(again.predict(graphs), model.predict(graphs))
    assert again.get_params() == model.get_params()


def test_options_can_be_set_by_name():
    model = GraphClassifier().set_params(dropout=0.3, channels=[8])
    assert (model.get_params()["dropout"], model.channels) == (0.3, [8])
    with pytest.raises(ValueError, match="Invalid parameter"):
        model.set_params(layers=3)


def test_the_printed_form_shows_what_is_not_default():
    assert repr(GraphClassifier(dropout=0.3)) == "GraphClassifier(dropout=0.3)"
