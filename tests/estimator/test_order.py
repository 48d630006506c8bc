"""Networks over triples of nodes."""

import numpy as np
import pytest
import torch

import bellnet as bn
from bellnet.data import generated
from bellnet.errors import OptionError, SizesError
from bellnet.estimator import load
from bellnet.estimator import options as limits
from bellnet.estimator.labels import count_labels
from bellnet.estimator.model import DOWN, UP, LabelNet, RunningNorm, TripleBlock, TripleNet
from tests.estimator.small import classifier, leaves, regressor
from tests.estimator.test_memory_estimate import Largest, path_graph

SOLVES = {"channels": (16, 16), "hidden": (32,), "batch_size": 4, "max_epochs": 30, "learning_rate": 0.005}


def skip_links(count):
    graphs, labels = generated.skip_links(count, n=9, skips=(2, 3))
    return graphs, labels.numpy()


def test_order_3_distinguishes_skip_links_and_order_2_does_not():
    graphs, labels = skip_links(32)
    assert classifier(order=3, **SOLVES).fit(graphs[:16], labels[:16]).score(graphs[16:], labels[16:]) == 1
    probabilities = classifier(order=2, **{**SOLVES, "max_epochs": 3}).fit(graphs, labels).predict_proba(graphs)
    assert np.ptp(probabilities, axis=0).max() < 1e-6


@pytest.mark.parametrize("make", [classifier, regressor])
@pytest.mark.parametrize("target", ["graph", "node", "edge"])
def test_predictions_of_order_3_do_not_depend_on_the_batch(make, target, tmp_path):
    graphs = leaves(8)[0]
    labels = [np.full(count, graph.n % 2) for graph, count in zip(graphs, count_labels(graphs, target), strict=True)]
    model = make(order=3, target=target, dropout=0.1).fit(
        graphs, [*map(int, np.ravel(labels))] if target == "graph" else labels
    )
    predict = getattr(model, "predict_proba", model.predict)
    for graph, found in zip(graphs, predict(graphs), strict=True):
        np.testing.assert_allclose(predict([graph])[0], found, rtol=1e-9, atol=1e-12)
    model.save(tmp_path / "model")
    again = load(tmp_path / "model")
    assert again.order == 3
    for one, other in zip(getattr(again, "predict_proba", again.predict)(graphs), predict(graphs), strict=True):
        assert np.array_equal(one, other)


@pytest.mark.parametrize("given", [2, (2, 3)])
def test_triple_blocks_are_initialised_as_a_matrix_product(given):
    block = TripleBlock(given, 3, norm=None, residual=False)
    block.reset_to_matrix_product(torch.Generator().manual_seed(0))
    pairs, nodes = torch.randn(5, 5, 2), torch.zeros(5, 3)
    up = block.up.weight if given == 2 else block.up.weight_0_to_0
    names = [diagram.name for diagram in block.up.plan.diagrams]
    first, second = (pairs @ up[names.index(name)].detach() for name in UP)  # of (i, k) and of (k, j)
    bias = block.up((pairs * 0, nodes) if given != 2 else pairs * 0)
    added = torch.relu(first[:, None, :] + second.transpose(0, 1)[None, :, :] + bias)
    (down,) = (block.down.weight[index] for index, d in enumerate(block.down.plan.diagrams) if d.name in DOWN)
    expected = added.mean(2) @ down
    found = block((pairs, nodes) if given != 2 else pairs) - block.across((pairs, nodes) if given != 2 else pairs)
    torch.testing.assert_close(found, expected)


def test_learning_rates_of_triple_blocks_are_divided_by_the_number_of_maps():
    config = classifier(order=3, channels=(3, 3), hidden=(4,), norm="graph").fit(*leaves())._net_config()
    net = LabelNet(config)
    groups = net.parameter_groups(0.1)
    assert sorted(id(one) for group in groups for one in group["params"]) == sorted(map(id, net.parameters()))
    rates = {id(one): group["lr"] for group in groups for one in group["params"]}
    layers = [module for module in net.modules() if isinstance(module, bn.EquivariantLinear)]
    assert [0.1 / rates[id(layer.weight)] for layer in layers] == pytest.approx([15, 52, 52] * 2)
    assert {rates[id(one)] for one in net.net.head.parameters()} == {0.1}


def test_running_statistics_are_exact_within_the_window():
    values = torch.randn(90, 4, dtype=torch.float64) * 3 + 5
    for cuts in ([1] * 90, [7] * 12 + [6], [90]):
        norm = RunningNorm(4, eps=0).double()
        for part in values.split(cuts):
            seen = norm(part)
        torch.testing.assert_close(norm.mean, values.mean(0))
        torch.testing.assert_close(norm.variance, values.var(0, unbiased=False))
        torch.testing.assert_close(norm.eval()(part), seen)
    for part in torch.randn(3000, 4, dtype=torch.float64).split(10):
        norm.train()(part)
    assert norm.mean.abs().max() < 0.5
    assert (norm.variance - 1).abs().max() < 0.5


@pytest.mark.parametrize("order", [1, 4, 2.0, True, "3", None])
def test_other_orders_are_refused(order):
    with pytest.raises(OptionError, match=r"GraphClassifier\.fit\(graphs, y\): order must be 2 or 3, not "):
        classifier(order=order).fit(*leaves())


def test_order_3_with_the_sparse_layout_is_refused():
    with pytest.raises(OptionError) as refusal:
        classifier(order=3, layout="sparse").fit(*leaves())
    assert str(refusal.value) == (
        "GraphClassifier.fit(graphs, y): order=3 holds all triples of nodes, layout='sparse' edges and nodes only; "
        "choose one of them."
    )


@pytest.mark.parametrize("target", ["graph", "node", "edge"])
def test_triples_that_take_too_much_memory_are_refused_before_allocation(target):
    graphs = [path_graph(400), path_graph(5)]
    labels = [np.full(count, index) for index, count in enumerate(count_labels(graphs, target))]
    model = regressor(target=target, order=3, channels=(16, 16), pool="mean", max_gigabytes=1)
    with Largest() as largest, pytest.raises(SizesError) as caught:
        model.fit(graphs, [0, 1] if target == "graph" else labels)
    assert largest.entries < 10**7
    assert str(caught.value) == (
        "GraphRegressor.fit(graphs, y): a training step on 1 graph of 400 nodes takes about 23 GB of memory, but 1 GB "
        "is allowed.\nUse fewer channels or order=2, which holds pairs of nodes only, or set max_gigabytes=23."
    )


def test_predictions_by_triples_that_take_too_much_memory_are_refused():
    graphs, labels = leaves()
    model = classifier(order=3, max_gigabytes=1, channels=(16, 16), max_epochs=1).fit(graphs, labels)
    with Largest() as largest, pytest.raises(SizesError) as caught:
        model.predict([*graphs, path_graph(400)])
    assert largest.entries < 10**7
    assert str(caught.value) == (
        "GraphClassifier.predict(graphs): the prediction of 1 graph of 400 nodes takes about 25 GB of memory, but 1 GB "
        "is allowed.\nFit a model with order=2, which holds pairs of nodes only, or set max_gigabytes=25."
    )


def test_batches_of_triples_have_as_many_entries_as_those_of_pairs(monkeypatch):
    assert limits.largest_batch([41] * 99, 32, 3) == (7, 41)
    assert limits.largest_batch([41] * 99, 32, 2) == (32, 41)
    graphs, labels = leaves()
    model = classifier(order=3)
    sizes = []
    monkeypatch.setattr(limits, "MAX_ENTRIES", 3 * 16**3)
    forward = TripleNet.forward
    monkeypatch.setattr(TripleNet, "forward", lambda net, x: sizes.append(shape(x)) or forward(net, x))
    model.fit(graphs, labels).predict(graphs)
    assert max(count * n**3 for count, n in sizes) <= 3 * 16**3
    assert max(count for count, _ in sizes) > 3


def shape(batch):
    values = batch if isinstance(batch, torch.Tensor) else batch.values
    return values.shape[0], values.shape[1]


@pytest.mark.parametrize(
    "changed_option", [{"jumping_knowledge": True}, {"norm": "batch"}, {"residual": True}, {"pool": ("mean", "max")}]
)
def test_every_option_of_the_network_has_an_effect_at_order_3(changed_option):
    graphs, labels = leaves(8)
    options = {
        "order": 3,
        "channels": (4, 4),
        "pool": "max",
        "norm": None,
        "residual": False,
        "jumping_knowledge": False,
    }
    plain = classifier(**options).fit(graphs, labels).predict_proba(graphs)
    other = classifier(**{**options, **changed_option}).fit(graphs, labels).predict_proba(graphs)
    assert np.abs(plain - other).max() > 1e-6
