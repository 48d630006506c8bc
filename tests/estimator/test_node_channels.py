"""Estimators with a tensor for nodes beside that of pairs."""

import numpy as np
import pytest
import torch

from bellnet.data import generated
from bellnet.errors import DataError, OptionError
from bellnet.estimator import load
from bellnet.estimator.validation import channel_scale
from tests.data.strategies import permuted
from tests.estimator.small import classifier, leaves, regressor, with_features
from tests.estimator.stored import changed
from tests.estimator.test_targets import degrees, touches_a_leaf

QUICK = {"channels": (8,), "batch_size": 5, "max_epochs": 6, "learning_rate": 0.03}
APART = {"node_channels": "separate", "size_feature": True}


def marked(count):
    """Graphs whose class stands on their nodes alone: some have a mark on one node, others on none."""
    graphs, labels = generated.leaf_pairs(count)[0], np.arange(count) % 2
    found = []
    for graph, label in zip(graphs, labels.tolist(), strict=True):
        marked = with_features(graph, 1, value=0)
        marked.node_features[0] = 3.0 * label
        found.append(marked)
    return found, labels


def test_node_labels_are_used():
    graphs, labels = marked(40)
    model = classifier(**APART, layout="sparse", batch_size=5, max_epochs=10).fit(graphs[:30], labels[:30])
    assert model.score(graphs[30:], labels[30:]) > 0.9


@pytest.mark.parametrize("layout", ["padded", "sparse"])
def test_labels_of_nodes_and_edges_are_learned(layout):
    graphs = generated.leaf_pairs(40)[0]
    for target, label_of in (("node", lambda graph: degrees(graph) == 1), ("edge", touches_a_leaf)):
        labels = [label_of(graph) for graph in graphs]
        model = classifier(target=target, **QUICK, **APART, layout=layout).fit(graphs[:30], labels[:30])
        assert [len(part) for part in model.predict(graphs[30:])] == [len(part) for part in labels[30:]]
        assert model.score(graphs[30:], labels[30:]) > 0.9, target


@pytest.mark.parametrize(
    "options", [{"layout": "sparse"}, {"layout": "padded"}, {"layout": "padded", "order": 3}], ids=str
)
@pytest.mark.parametrize("make", [classifier, regressor])
def test_predictions_do_not_depend_on_files_batches_and_permutations(make, options, tmp_path):
    graphs, labels = marked(12)
    model = make(**APART, **options, norm="batch", residual=True, channels=(4, 4), dropout=0.1).fit(graphs, labels)
    predict = getattr(model, "predict_proba", model.predict)
    together = predict(graphs)
    np.testing.assert_allclose(np.concatenate([predict([graph]) for graph in graphs]), together, rtol=0, atol=1e-12)
    moved = [permuted(graph, torch.randperm(graph.n)) for graph in graphs]
    np.testing.assert_allclose(predict(moved), together, rtol=0, atol=1e-12)
    model.save(tmp_path / "model")
    again = load(tmp_path / "model")
    assert again.node_channels == "separate"
    assert np.array_equal(getattr(again, "predict_proba", again.predict)(graphs), together)


def test_a_file_whose_node_channels_contradict_its_tensors_is_refused(tmp_path):
    graphs, labels = leaves()
    classifier().fit(graphs, labels).save(tmp_path / "model")
    changed(tmp_path / "model", lambda described: described["options"].update(node_channels="separate"))
    with pytest.raises(DataError, match="its tensors are not those of the network that it describes"):
        load(tmp_path / "model")


def test_separate_pair_channels_have_a_mean_square_of_one():
    graphs = generated.leaf_pairs(12)[0]
    model = classifier(**APART, layout="sparse").fit(graphs, leaves(12)[1])
    pairs, _ = model.encoding_.encode(graphs, layout="sparse", node_channels="separate")
    scale = channel_scale(graphs, model.encoding_, "sparse", "separate")
    torch.testing.assert_close((pairs.values * scale[:2]).square().mean(0), torch.ones(2))
    assert torch.equal(model.ensemble_.members[0].scale, scale)


def test_invalid_node_channels_are_refused():
    with pytest.raises(OptionError) as refusal:
        classifier(node_channels="tensor").fit(*leaves())
    assert str(refusal.value) == (
        "GraphClassifier.fit(graphs, y): node_channels must be one of 'diagonal', 'separate', not 'tensor'."
    )
    with pytest.raises(
        OptionError, match=r"GraphClassifier\.fit\(graphs, y\): node_channels='separate' needs channels"
    ):
        classifier(node_channels="separate", degrees=False).fit(*leaves())
