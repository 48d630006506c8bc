"""The defaults of the estimators: layout, epochs, norms, sizes."""

import numpy as np
import pytest
import torch
from sklearn.base import clone

from bellnet.data import generated, undirected
from bellnet.errors import DataError, OptionError
from bellnet.estimator import GraphClassifier, GraphRegressor, load
from bellnet.estimator.options import MAX_EPOCHS, auto_max_epochs
from tests.estimator.small import classifier, leaves, stars_and_paths
from tests.estimator.stored import changed

SMALL = {"channels": (8, 8), "hidden": (8,), "max_epochs": 3, "n_estimators": 1, "verbose": False}
"""The usual recipe, but narrow, alone and soon over."""


def complete(n):
    return undirected(n, [(one, other) for one in range(n) for other in range(one)])


def test_auto_layout_is_sparse_for_few_edges_and_padded_for_many():
    graphs, labels = leaves()
    assert GraphClassifier(**SMALL).fit(graphs, labels).layout_ == "sparse"
    dense = [complete(3 + number % 4) for number in range(12)]
    assert GraphClassifier(**SMALL).fit(dense, np.arange(12) % 2).layout_ == "padded"
    assert GraphClassifier(layout="padded", **SMALL).fit(graphs, labels).layout_ == "padded"


def test_predictions_use_the_layout_of_the_fit():
    graphs, labels = leaves()
    model = GraphClassifier(**SMALL).fit(graphs, labels)
    dense = [complete(graph.n) for graph in graphs[:2]]
    alone = np.concatenate([model.predict_proba([graph]) for graph in dense])
    together = model.predict_proba([*graphs, *dense])[-2:]
    np.testing.assert_allclose(together, alone, rtol=0, atol=1e-12)


@pytest.mark.parametrize("target", ["graph", "node", "edge"])
@pytest.mark.parametrize("norm", ["batch", "graph", "channels"])
@pytest.mark.parametrize("layout", ["padded", "sparse"])
def test_files_of_normalised_networks_have_the_same_predictions(target, norm, layout, tmp_path):
    graphs, labels = leaves(12)
    if target != "graph":
        counts = [graph.n if target == "node" else graph.n_edges for graph in graphs]
        labels = [np.full(count, number % 2) for number, count in enumerate(counts)]
    model = GraphClassifier(target=target, norm=norm, layout=layout, **SMALL).fit(graphs, labels)
    model.save(tmp_path / "model")
    again = load(tmp_path / "model")
    for one, other in zip(model.predict_proba(graphs), again.predict_proba(graphs), strict=True):
        assert np.array_equal(one, other)


@pytest.mark.parametrize(("order", "meant"), [(2, "batch"), (3, "graph")])
@pytest.mark.parametrize("make", [GraphClassifier, GraphRegressor])
def test_auto_norm_depends_on_the_order(make, order, meant, tmp_path):
    graphs, labels = leaves(12)
    options = {**SMALL, "channels": (4, 4), "order": order}
    found, same, other = (
        make(**options, **given).fit(graphs, labels)
        for given in ({}, {"norm": meant}, {"norm": "graph" if meant == "batch" else "batch"})
    )
    predictions = [getattr(model, "predict_proba", model.predict)(graphs) for model in (found, same, other)]
    assert np.array_equal(predictions[0], predictions[1])
    assert not np.array_equal(predictions[0], predictions[2])
    assert found.get_params()["norm"] == clone(found).norm == "auto"
    found.save(tmp_path / "model")
    again = load(tmp_path / "model")
    assert again.norm == "auto"
    assert np.array_equal(getattr(again, "predict_proba", again.predict)(graphs), predictions[0])


def test_a_file_has_the_layout_of_the_fit(tmp_path):
    graphs, labels = leaves()
    path = tmp_path / "model"
    GraphClassifier(**SMALL).fit(graphs, labels).save(path)
    assert (load(path).layout, load(path).layout_) == ("auto", "sparse")
    changed(path, lambda described: described.update(layout="ragged"))
    with pytest.raises(DataError, match="layout must be one that its options allow, not 'ragged'"):
        load(path)


def test_the_defaults_are_reproducible():
    graphs, labels = leaves()
    first, again, other = (
        GraphClassifier(random_state=seed, **SMALL).fit(graphs, labels).predict_proba(graphs) for seed in (7, 7, 8)
    )
    assert np.array_equal(first, again)
    assert not np.array_equal(first, other)


def test_the_number_of_nodes_is_learned():
    graphs, _ = generated.leaf_pairs(120)
    numbers = np.array([graph.n for graph in graphs], dtype=float)
    model = GraphRegressor(channels=(16, 16), max_epochs=30, verbose=False).fit(graphs[:90], numbers[:90])
    assert model.layout_ == "sparse"
    assert model.score(graphs[90:], numbers[90:]) > 0.9


def test_degree_bins_are_channels(tmp_path):
    graphs, labels = leaves()
    model = GraphClassifier(**SMALL).fit(graphs, labels)
    assert model.encoding_.names[2:] == ("degree", "degree 1", "degree 2", "degree 3", "size")
    model.save(tmp_path / "model")
    assert np.array_equal(load(tmp_path / "model").predict_proba(graphs), model.predict_proba(graphs))
    fewer = GraphClassifier(degree_bins=np.int64(2), **SMALL).fit(graphs, labels)
    assert fewer.encoding_.names[2:] == ("degree", "degree 1", "degree 3", "size")
    for options, left in (({"degree_bins": 0}, ("degree", "size")), ({"degrees": False}, ("size",))):
        assert GraphRegressor(**options, **SMALL).fit(graphs, labels).encoding_.names[2:] == left


def test_auto_max_epochs_falls_with_the_number_of_entries():
    graph = complete(1000)
    epochs = [auto_max_epochs([graph] * count, "sparse", 2) for count in (0, 1, 10, 40, 90, 1000, 10_000)]
    assert epochs == [60, 60, 60, 30, 20, 6, 5]
    path = undirected(4000, [(node, node + 1) for node in range(3999)])
    assert auto_max_epochs([path], "sparse", 2) == 60
    assert auto_max_epochs([path], "padded", 2) == 47
    assert auto_max_epochs([path], "padded", 3) == 5


def test_auto_max_epochs_is_60_for_small_data_sets():
    graphs, labels = leaves(12)
    model = GraphClassifier(**{**SMALL, "max_epochs": "auto", "patience": 100}).fit(graphs, labels)
    assert len(model.history_) == MAX_EPOCHS


def test_smoothed_labels_make_probabilities_less_extreme():
    graphs, labels = stars_and_paths()
    options = {"channels": (8, 8), "batch_size": 5, "max_epochs": 40}
    sure, careful = (
        classifier(label_smoothing=share, **options).fit(graphs, labels).predict_proba(graphs).max(1).mean()
        for share in (0.0, 0.4)
    )
    assert sure > 0.95
    assert careful < 0.9


@pytest.mark.parametrize(
    "options",
    [{"pool": ("mean", "max", "sum")}, {"jumping_knowledge": True}, {"pool": ["sum"], "jumping_knowledge": True}],
)
def test_files_of_several_pools_and_jumping_knowledge_have_the_same_predictions(options, tmp_path):
    graphs, labels = leaves()
    model = GraphClassifier(**options, **SMALL).fit(graphs, labels)
    model.save(tmp_path / "model")
    assert np.array_equal(load(tmp_path / "model").predict_proba(graphs), model.predict_proba(graphs))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"norm": "layer"}, "norm must be one of 'auto', 'batch', 'graph', 'channels' or None, not 'layer'."),
        ({"layout": "dense"}, "layout must be one of 'auto', 'padded', 'sparse', not 'dense'."),
        ({"pool": ("max", "max")}, "pool must be one or several of 'max', 'mean', 'sum', not ('max', 'max')."),
        ({"pool": ()}, "pool must be one or several of 'max', 'mean', 'sum', not ()."),
        ({"pool": 3}, "pool must be one or several of 'max', 'mean', 'sum', not 3."),
        ({"residual": 1}, "residual must be True or False, not 1."),
        ({"jumping_knowledge": "yes"}, "jumping_knowledge must be True or False, not 'yes'."),
        ({"degree_bins": 1}, "degree_bins must be 0 or an integer from 2 up, not 1."),
        ({"degree_bins": True}, "degree_bins must be 0 or an integer from 2 up, not True."),
        ({"n_estimators": 0}, "n_estimators must be 'auto' or an integer from 1 to 2**63 - 1, not 0."),
        ({"n_estimators": "all"}, "n_estimators must be 'auto' or an integer from 1 to 2**63 - 1, not 'all'."),
        (
            {"n_estimators": 2**64},
            "n_estimators must be 'auto' or an integer from 1 to 2**63 - 1, not 18446744073709551616.",
        ),
        ({"size_feature": None}, "size_feature must be True or False, not None."),
        ({"label_smoothing": 1.0}, "label_smoothing must be a number from 0 up and below 1, not 1.0."),
        ({"max_epochs": "all"}, "max_epochs must be 'auto' or an integer from 1 to 2**63 - 1, not 'all'."),
    ],
)
def test_invalid_options_are_refused_by_name(options, message):
    graphs, labels = leaves()
    with pytest.raises(OptionError) as caught:
        classifier(**options).fit(graphs, labels)
    assert str(caught.value) == f"GraphClassifier.fit(graphs, y): {message}"


def test_running_statistics_are_finite_and_in_state_dict():
    graphs, labels = leaves()
    model = GraphClassifier(**SMALL).fit(graphs, labels)
    buffers = {name: value for name, value in model.ensemble_.state_dict().items() if "running" in name}
    assert len(buffers) == 4
    assert all(bool(value.isfinite().all()) for value in buffers.values())
    assert not torch.equal(buffers["members.0.net.blocks.0.norm.running_var"], torch.ones(8))
