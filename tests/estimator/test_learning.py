"""What the estimators learn, from which labels and weights."""

import networkx
import numpy as np
import pytest
import torch

from bellnet.data import Graph, generated, to_dense, to_networkx, to_pyg, to_scipy
from tests.estimator.small import LEARNS, classifier, leaves, regressor, stars_and_paths


def test_classes_that_depend_on_more_than_degrees_are_learned():
    graphs, labels = generated.leaf_pairs(150)
    model = classifier(channels=(16, 16), hidden=(16,), max_epochs=25, batch_size=10).fit(graphs[:100], labels[:100])
    assert model.score(graphs[100:], labels[100:]) > 0.9


def test_numbers_are_learned():
    graphs, _ = generated.leaf_pairs(120)
    numbers = np.array([1000 + 10 * graph.n for graph in graphs])
    model = regressor(**LEARNS, adjacency="both").fit(graphs[:90], numbers[:90])
    assert model.score(graphs[90:], numbers[90:]) > 0.8


def test_several_numbers_are_learned_at_once():
    graphs, labels = stars_and_paths()
    numbers = np.stack([labels, 1.0 - labels, 3 * labels], axis=1)
    model = regressor(**LEARNS, hidden=(16,)).fit(graphs, numbers)  # of eight units too many may be dead from the start
    assert model.predict(graphs).shape == (30, 3)
    assert model.score(graphs, numbers) > 0.8


@pytest.mark.parametrize(
    "names",
    [["path", "star"], [True, False], [-1, 1], np.array(["a", "bc"], dtype=object), [2.0, 7.0]],
    ids=["strings", "booleans", "negative", "objects", "floats"],
)
def test_predictions_are_in_the_classes_that_were_given(names):
    graphs, labels = stars_and_paths()
    given = np.array([names[label] for label in labels], dtype=getattr(names, "dtype", None))
    model = classifier(**LEARNS).fit(graphs, given)
    assert model.classes_.tolist() == sorted(names)
    assert model.classes_.dtype == given.dtype
    assert set(model.predict(graphs).tolist()) == set(names)
    assert model.score(graphs, given) > 0.9


def test_probabilities_of_three_classes_sum_to_one():
    graphs, labels = leaves(30)
    labels = np.arange(30) % 3
    found = classifier().fit(graphs, labels).predict_proba(graphs)
    assert found.shape == (30, 3)
    assert np.allclose(found.sum(1), 1)


def test_the_same_seed_gives_the_same_model():
    graphs, labels = leaves()
    first, again, other = (
        classifier(dropout=0.5, random_state=seed).fit(graphs, labels).predict_proba(graphs) for seed in (7, 7, 8)
    )
    assert np.array_equal(first, again)
    assert not np.array_equal(first, other)


def test_without_a_seed_two_fits_differ():
    graphs, labels = leaves()
    model = classifier(random_state=None)
    assert not np.array_equal(
        model.fit(graphs, labels).predict_proba(graphs), model.fit(graphs, labels).predict_proba(graphs)
    )


@pytest.mark.parametrize("state", [np.random.RandomState, np.random.default_rng])
def test_a_random_state_of_numpy_gives_different_seeds(state):
    graphs, labels = leaves()
    first, same = (classifier(random_state=state(3)).fit(graphs, labels).predict_proba(graphs) for _ in range(2))
    assert np.array_equal(first, same)


@pytest.mark.parametrize("seed", [0, None])
def test_a_fit_does_not_advance_global_random_states(seed):
    graphs, labels = leaves()
    torch.manual_seed(1)
    np.random.seed(1)
    expected = torch.rand(3), np.random.rand(3)
    torch.manual_seed(1)
    np.random.seed(1)
    classifier(dropout=0.1, random_state=seed).fit(graphs, labels).predict(graphs)
    assert torch.equal(torch.rand(3), expected[0])
    assert np.array_equal(np.random.rand(3), expected[1])


def test_a_class_with_a_large_weight_is_predicted_more_often():
    graphs, labels = leaves(40)
    often = [
        (classifier(class_weight=weight, max_epochs=5).fit(graphs, labels).predict(graphs) == 1).mean()
        for weight in ({1: 0.001}, {1: 1000})
    ]
    assert often == [0, 1]


def test_balanced_weights_are_inverse_frequencies():
    model = classifier(class_weight="balanced")
    model.classes_ = np.array(["common", "rare"])
    groups = np.array([0] * 36 + [1] * 4)
    weights = model._group_weights("fit", groups)[groups]
    assert np.isclose(weights[groups == 0].sum(), weights[groups == 1].sum())


def test_a_rare_class_is_found_with_balanced_weights():
    graphs, labels = stars_and_paths(60)
    chosen = [index for index, label in enumerate(labels) if label == 0 or index % 10 == 1]
    few, rare = [graphs[index] for index in chosen], labels[chosen]
    model = classifier(class_weight="balanced", **LEARNS).fit(few, rare)
    assert (model.predict(graphs)[labels == 1] == 1).mean() > 0.9


def test_labels_of_weight_zero_have_no_effect():
    graphs, labels = stars_and_paths(40)
    wrong = np.arange(40) % 4 == 1
    given = np.where(wrong, 1 - labels, labels)
    model = classifier(**LEARNS).fit(graphs, given, sample_weight=(~wrong).astype(float))
    assert model.score(graphs, labels) == 1


def test_weights_can_be_multiplied_by_a_constant():
    graphs, labels = leaves()
    weights = 1 + np.arange(len(graphs)) % 3
    one, other = (
        classifier().fit(graphs, labels, sample_weight=factor * weights).predict_proba(graphs) for factor in (1, 64.0)
    )
    assert np.allclose(one, other, atol=1e-6)


def test_a_score_can_be_weighted():
    graphs, labels = stars_and_paths()
    model = classifier(max_epochs=20).fit(graphs, labels)
    right, heavy = model.predict(graphs) == labels, np.arange(30) < 10
    assert np.isclose(model.score(graphs, np.where(heavy, labels, 1 - labels), heavy), right[:10].mean())


def test_features_of_any_scale_are_learned():
    graphs, _ = leaves(40)
    labels = np.arange(40) % 2
    doubles = [
        Graph(
            graph.n, graph.edge_index, node_features=torch.full((graph.n, 1), 1e6 + 1e-2 * label, dtype=torch.float64)
        )
        for graph, label in zip(graphs, labels.astype(float), strict=True)
    ]
    assert classifier(**LEARNS).fit(doubles, labels).score(doubles, labels) == 1


@pytest.mark.parametrize("convert", [to_dense, to_networkx, to_pyg, to_scipy])
def test_graphs_of_all_libraries_give_the_same_model(convert):
    graphs, labels = leaves(16)
    others = [convert(graph) for graph in graphs]
    model, same = (classifier().fit(given, labels) for given in (graphs, others))
    assert np.array_equal(model.predict_proba(others), same.predict_proba(graphs))


def test_graphs_of_several_libraries_can_be_mixed():
    graphs, labels = leaves(16)
    mixed = [*map(to_networkx, graphs[:5]), *graphs[5:]]
    assert isinstance(mixed[0], networkx.Graph)
    assert classifier().fit(mixed, labels).predict(mixed).shape == (16,)


def test_labels_may_be_a_tensor_or_a_list():
    graphs, labels = leaves()
    given = [labels, torch.tensor(labels), labels.tolist()]
    found = [classifier().fit(graphs, y).predict_proba(graphs) for y in given]
    assert np.array_equal(found[0], found[1])
    assert np.array_equal(found[0], found[2])
