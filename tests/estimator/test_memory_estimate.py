"""The memory of the padded layout is estimated and checked in advance."""

import re

import numpy as np
import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from bellnet.data import undirected
from bellnet.errors import OptionError, SizesError
from bellnet.estimator import load
from bellnet.estimator import options as limits
from tests.estimator.small import classifier, leaves, regressor

LARGE = 20_000


def path_graph(n):
    return undirected(n, [(node, node + 1) for node in range(n - 1)])


class Largest(TorchDispatchMode):
    """Sees the number of entries of the largest tensor that is made."""

    def __init__(self):
        super().__init__()
        self.entries = 0

    def __torch_dispatch__(self, function, types, arguments=(), options=None):
        made = function(*arguments, **(options or {}))
        for one in made if isinstance(made, tuple | list) else [made]:
            if isinstance(one, torch.Tensor) and not one.is_meta:
                self.entries = max(self.entries, one.untyped_storage().nbytes() // one.itemsize)
        return made


@pytest.mark.parametrize("target", ["graph", "node", "edge"])
def test_a_fit_that_takes_too_much_memory_is_refused_before_allocation(target):
    graphs = [path_graph(LARGE), path_graph(5)]
    labels = {"graph": [0, 1], "node": [np.arange(LARGE) % 2, np.zeros(5, dtype=int)]}
    labels["edge"] = [np.zeros(2 * LARGE - 2, dtype=int), np.ones(8, dtype=int)]
    model = classifier(target=target, max_gigabytes=1, channels=(32, 32), hidden=(64,))
    with Largest() as largest, pytest.raises(SizesError) as caught:
        model.fit(graphs, labels[target])
    assert largest.entries < 50 * LARGE
    expected = {"graph": 293, "node": 242, "edge": 475}[target]
    assert str(caught.value) == (
        "GraphClassifier.fit(graphs, y): a training step on 1 graph of 20000 nodes takes about "
        f"{expected} GB of memory, but 1 GB is allowed.\n"
        "Use fewer channels or layout='sparse', which holds edges and nodes only, or set max_gigabytes="
        f"{expected}."
    )
    assert not hasattr(model, "ensemble_")


def test_a_prediction_that_takes_too_much_memory_is_refused_before_allocation():
    graphs, labels = leaves()
    model = classifier(max_gigabytes=1, channels=(32, 32)).fit(graphs, labels)
    with Largest() as largest, pytest.raises(SizesError) as caught:
        model.predict([*graphs, path_graph(LARGE)])
    assert largest.entries < 50 * LARGE
    assert str(caught.value) == (
        "GraphClassifier.predict(graphs): the prediction of 1 graph of 20000 nodes takes about 327 GB of memory, "
        "but 1 GB is allowed.\n"
        "Fit a model with layout='sparse', which holds edges and nodes only, or set max_gigabytes=327."
    )


def test_the_sparse_layout_is_not_refused():
    graphs = [path_graph(3000), path_graph(5)] * 2
    model = classifier(layout="sparse", max_gigabytes=0.001, max_epochs=1).fit(graphs, [0, 1] * 2)
    assert model.predict(graphs).shape == (4,)


def test_a_fit_within_max_gigabytes_is_allowed():
    graphs = [path_graph(150), path_graph(5)]
    with pytest.raises(SizesError, match=r"takes about 0\.0\d+ GB of memory, but 0\.001 GB is allowed"):
        classifier(max_gigabytes=0.001).fit(graphs, [0, 1])
    assert classifier(max_gigabytes=0.1).fit(graphs, [0, 1]).predict(graphs).shape == (2,)


def test_the_default_limit_is_half_of_the_memory(monkeypatch):
    monkeypatch.setattr(limits, "machine_memory", lambda: 2 * 10**6)
    with pytest.raises(SizesError, match=r"but 0\.001 GB is allowed"):
        classifier().fit([path_graph(150), path_graph(5)], [0, 1])


def test_unknown_memory_is_8_gigabytes(monkeypatch):
    monkeypatch.setattr(limits, "machine_memory", lambda: None)
    assert limits.allowed_bytes(None, torch.device("cpu")) == 4 * 10**9


@pytest.mark.parametrize("target", ["graph", "node"])
@pytest.mark.parametrize(
    "options",
    [
        {"channels": (10**6, 10**6)},
        {"hidden": (10**9, 10**9)},
        {"hidden": (2**31 - 1, 2**31 - 1)},
        {"channels": (1000, 1000)},  # 15 maps of a million weights each; a million would be allowed
    ],
    ids=str,
)
def test_weights_that_take_too_much_memory_are_refused_before_allocation(target, options):
    graphs, labels = leaves()
    if target == "node":
        labels = [np.full(graph.n, label) for graph, label in zip(graphs, labels, strict=True)]
    model = classifier(target=target, layout="sparse", max_gigabytes=0.03, **options)
    with Largest() as largest, pytest.raises(SizesError) as caught:
        model.fit(graphs, labels)
    assert largest.entries < 10**5
    assert re.fullmatch(
        r"GraphClassifier\.fit\(graphs, y\): training a network of at least [\d,]+ weights takes about [\d.]+ GB of "
        r"memory, but 0\.03 GB is allowed\.\nUse fewer channels or narrower hidden layers, or set "
        r"max_gigabytes=[\d.]+\.",
        str(caught.value),
    )


def test_the_suggested_max_gigabytes_suffices():
    graphs, labels = leaves()
    options = {"layout": "sparse", "channels": (20, 20), "max_epochs": 1}
    with pytest.raises(SizesError, match=r"a network of at least [\d,]+ weights") as caught:
        classifier(max_gigabytes=0.00012, **options).fit(graphs, labels)
    enough = float(re.search(r"max_gigabytes=([0-9.]+)\.$", str(caught.value))[1])
    classifier(max_gigabytes=enough, **options).fit(graphs, labels)


@pytest.mark.parametrize(
    "options",
    [
        {"norm": None, "residual": False, "jumping_knowledge": False, "dropout": 0.0},
        {"norm": None, "residual": True, "jumping_knowledge": True, "dropout": 0.2},
        {"norm": "batch", "residual": True, "jumping_knowledge": False, "dropout": 0.1},
        {"norm": "graph", "residual": False, "jumping_knowledge": True, "dropout": 0.0},
        {"norm": "channels", "residual": True, "jumping_knowledge": False, "dropout": 0.1},
    ],
    ids=str,
)
@pytest.mark.parametrize("sizes", [(60, 60, 59, 58), (120,)], ids=["padded", "alone"])
def test_saved_tensors_are_within_the_estimate(options, sizes):
    graphs = [path_graph(n) for n in sizes]
    widths, pool = (24, 24, 24, 24), ("mean", "max")
    model = classifier(channels=widths, pool=pool, layout="padded", max_epochs=1, **options)
    model.fit([path_graph(4), path_graph(5)] * 4, [0, 1] * 4)
    batch = model.encoding_.encode(graphs)
    saved = {}

    def keep(tensor):
        saved[tensor.untyped_storage().data_ptr()] = tensor.untyped_storage().nbytes()
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        result = model.ensemble_.train()(batch, graphs)
    assert result.requires_grad
    estimate = limits.training_bytes(model._net_config(), (len(sizes), max(sizes)))
    assert 0.3 * estimate < sum(saved.values()) < estimate


@pytest.mark.parametrize(
    ("sizes", "batch_size", "expected"),
    [
        ([10, 20], 32, (2, 20)),
        ([10] * 100, 32, (32, 10)),
        ([1000, 10, 10], 32, (1, 1000)),
        ([300] * 9, 32, (5, 300)),
    ],
)
def test_largest_batch_is_bounded_by_batch_size_and_entries(sizes, batch_size, expected):
    assert limits.largest_batch(sizes, batch_size, 2) == expected


@pytest.mark.parametrize("value", [0, -1, "much", float("nan"), True])
def test_an_invalid_max_gigabytes_is_refused(value):
    graphs, labels = leaves()
    with pytest.raises(OptionError, match=r"max_gigabytes must be a number from 1e-9 .* or None, not"):
        regressor(max_gigabytes=value).fit(graphs, labels)


def test_max_gigabytes_is_in_the_file(tmp_path):
    graphs, labels = leaves()
    classifier(max_gigabytes=2.5).fit(graphs, labels).save(tmp_path / "model")
    assert load(tmp_path / "model").max_gigabytes == 2.5
