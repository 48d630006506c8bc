"""Ensembles: each member is trained on its own, and outputs are averaged."""

import copy

import numpy as np
import pytest
import torch
from sklearn.base import clone

from bellnet.errors import DataError, SizesError
from bellnet.estimator import load
from bellnet.estimator import options as limits
from bellnet.estimator.model import LabelNet
from bellnet.estimator.options import ENTRIES_OF_ENSEMBLE, MAX_ESTIMATORS
from tests.estimator.small import classifier, leaves, regressor
from tests.estimator.stored import changed


def alone(model, index):
    """The estimator with one of its networks only."""
    one = copy.copy(model)
    one.n_estimators, one.n_estimators_, one.ensemble_ = 1, 1, copy.deepcopy(model.ensemble_)
    one.ensemble_.members = one.ensemble_.members[index : index + 1]
    return one


def weights(net):
    return torch.cat([value.flatten() for value in net.state_dict().values()])


@pytest.mark.parametrize("options", [{}, {"target": "node"}, {"layout": "sparse", "norm": "batch"}, {"order": 3}])
def test_outputs_of_an_ensemble_are_the_mean_of_its_members(options):
    graphs, labels = leaves()
    if options.get("target") == "node":
        labels = [np.arange(graph.n) % 2 for graph in graphs]
    number = regressor(n_estimators=3, **options).fit(graphs, labels)
    each = [np.concatenate([*map(np.atleast_1d, alone(number, index).predict(graphs))]) for index in range(3)]
    found = np.concatenate([*map(np.atleast_1d, number.predict(graphs))])
    np.testing.assert_allclose(found, np.mean(each, 0), rtol=1e-12)
    assert not np.allclose(each[0], each[1])
    kind = classifier(n_estimators=3, **options).fit(graphs, labels)
    logs = [np.log(np.concatenate([*map(np.atleast_2d, alone(kind, i).predict_proba(graphs))])) for i in range(3)]
    product = np.exp(np.mean(logs, 0))
    found = np.concatenate([*map(np.atleast_2d, kind.predict_proba(graphs))])
    np.testing.assert_allclose(found, product / product.sum(1, keepdims=True), rtol=1e-10)


@pytest.mark.parametrize(
    "options", [{}, {"layout": "sparse", "norm": "batch"}, {"weight_decay": 0.1}, {"order": 3, "learning_rate": 0.1}]
)
def test_every_member_is_trained_as_if_it_were_alone(options, monkeypatch):
    graphs, labels = leaves(16)
    options = {"max_epochs": 3, "validation_fraction": 0, "batch_size": 7, **options}
    drawn, begun = LabelNet.reset_parameters, []

    def remembered(net, chance):
        drawn(net, chance)
        begun.append(copy.deepcopy(net.state_dict()))

    monkeypatch.setattr(LabelNet, "reset_parameters", remembered)
    together = classifier(n_estimators=3, **options).fit(graphs, labels)
    for first, member in zip(begun, together.ensemble_.members, strict=True):
        monkeypatch.setattr(LabelNet, "reset_parameters", lambda net, chance, first=first: net.load_state_dict(first))
        single = classifier(n_estimators=1, **options).fit(graphs, labels)
        assert torch.equal(weights(member), weights(single.ensemble_.members[0]))
        assert not torch.allclose(weights(member), torch.cat([value.flatten() for value in first.values()]))
    assert not torch.allclose(*map(weights, together.ensemble_.members[:2]))


def test_members_drop_different_channels_and_fits_are_reproducible():
    graphs, labels = leaves()
    model = classifier(n_estimators=2, dropout=0.5, max_epochs=3)
    first = weights(model.fit(graphs, labels).ensemble_)
    assert torch.equal(first, weights(clone(model).fit(graphs, labels).ensemble_))
    assert not torch.equal(first, weights(clone(model).set_params(random_state=1).fit(graphs, labels).ensemble_))
    one, other = model.ensemble_.members
    other.load_state_dict(one.state_dict())
    batch = model.encoding_.encode(graphs)
    with model.ensemble_.train().dropout_from(torch.Generator().manual_seed(0)):
        assert not torch.allclose(one(batch, graphs), other(batch, graphs))
    model.ensemble_.eval()
    assert torch.equal(one(batch, graphs), other(batch, graphs))


@pytest.mark.parametrize("index", range(3))
def test_a_member_with_nan_weights_ends_the_fit(index):
    graphs, labels = leaves()
    model = classifier(n_estimators=3, max_epochs=5, validation_fraction=0)

    def spoil(learning, record):
        if record["epoch"] == 2:
            with torch.no_grad():
                next(learning.ensemble_.members[index].parameters()).fill_(float("nan"))

    model.fit(graphs, labels, callback=spoil)
    assert len(model.history_) == 3


def test_history_has_the_mean_loss_of_members_and_the_score_of_the_ensemble():
    graphs, labels = leaves()
    # The weights hardly change, so that losses in training are those of the final networks.
    options = {"learning_rate": 1e-12, "validation_fraction": 0, "batch_size": 24, "max_epochs": 1}
    model = classifier(n_estimators=3, **options).fit(graphs, labels)
    chances = [alone(model, index).predict_proba(graphs)[np.arange(24), labels] for index in range(3)]
    (record,) = model.history_
    assert record["loss"] == pytest.approx(-np.log(chances).mean(), rel=1e-5)
    assert record["accuracy"] == pytest.approx(model.score(graphs, labels))


def test_the_validation_set_is_evaluated_on_the_ensemble():
    graphs, labels = leaves(40)
    model = classifier(n_estimators=3, max_epochs=3).fit(
        graphs[:20], labels[:20], validation_data=(graphs[20:], labels[20:])
    )
    chances = model.predict_proba(graphs[20:])[np.arange(20), labels[20:]]
    best = model.history_[model.best_epoch_]
    assert best["validation_loss"] == pytest.approx(-np.log(chances).mean(), rel=1e-4)
    assert best["validation_accuracy"] == pytest.approx(model.score(graphs[20:], labels[20:]))


def test_small_data_sets_have_an_ensemble(monkeypatch):
    graphs, labels = leaves()
    stored, pairs = sum(graph.n + graph.n_edges for graph in graphs), sum(graph.n**2 for graph in graphs)
    assert stored < pairs < ENTRIES_OF_ENSEMBLE
    for layout, count in (("sparse", stored), ("padded", pairs)):
        monkeypatch.setattr("bellnet.estimator.options.ENTRIES_OF_ENSEMBLE", count)
        several = classifier(n_estimators="auto", layout=layout).fit(graphs, labels)
        assert (several.n_estimators_, len(several.ensemble_.members)) == (
            MAX_ESTIMATORS,
            MAX_ESTIMATORS,
        )
        assert "trained 3 networks on 24 graphs " in several.fit_summary_
        monkeypatch.setattr("bellnet.estimator.options.ENTRIES_OF_ENSEMBLE", count - 1)
        one = classifier(n_estimators="auto", layout=layout).fit(graphs, labels)
        assert (one.n_estimators_, len(one.ensemble_.members)) == (1, 1)
        assert torch.equal(
            weights(one.ensemble_), weights(classifier(n_estimators=1, layout=layout).fit(graphs, labels).ensemble_)
        )
        assert classifier(n_estimators=2, layout=layout).fit(graphs, labels).n_estimators_ == 2
    triples = sum(graph.n**3 for graph in graphs)
    for little, count in ((triples, 3), (triples - 1, 1)):
        monkeypatch.setattr("bellnet.estimator.options.ENTRIES_OF_ENSEMBLE", little)
        assert classifier(n_estimators="auto", order=3).fit(graphs, labels).n_estimators_ == count


def test_too_many_networks_are_refused_before_they_are_built(monkeypatch):
    graphs, labels = leaves()
    monkeypatch.setattr(LabelNet, "__init__", lambda *given, **options: pytest.fail("it was made"))
    with pytest.raises(SizesError) as caught:
        classifier(n_estimators=10**6, channels=(64, 64), max_gigabytes=1).fit(graphs, labels)
    assert str(caught.value) == (
        "GraphClassifier.fit(graphs, y): training 1,000,000 networks of at least 4,816,000,000 weights in total "
        "takes about 97 GB of memory, but 1 GB is allowed.\n"
        "Use fewer estimators, fewer channels or narrower hidden layers, or set max_gigabytes=97."
    )


def test_the_memory_of_all_weights_is_checked():
    graphs, labels = leaves()
    one = sum(value.numel() for value in classifier(n_estimators=1).fit(graphs, labels).ensemble_.parameters())
    allowed = limits.WEIGHT_BYTES * one * 1e-9
    options = {"n_estimators": 2, "layout": "sparse"}
    assert classifier(max_gigabytes=2.01 * allowed, **options).fit(graphs, labels).n_estimators_ == 2
    with pytest.raises(SizesError, match=f"2 networks of at least {2 * one:,} weights in total"):
        classifier(max_gigabytes=1.99 * allowed, **options).fit(graphs, labels)


@pytest.mark.parametrize("n_estimators", [1, 3, "auto", np.int64(2)])
def test_a_loaded_ensemble_has_the_same_predictions(tmp_path, n_estimators):
    graphs, labels = leaves()
    model = classifier(n_estimators=n_estimators, norm="batch", layout="sparse").fit(graphs, labels)
    model.save(tmp_path / "model")
    again = load(tmp_path / "model")
    assert (again.n_estimators, again.n_estimators_) == (n_estimators, model.n_estimators_)
    first, last = model.ensemble_.members[0].scale, model.ensemble_.members[-1].scale
    assert torch.equal(first, last)
    assert not torch.equal(last, torch.ones_like(last))
    assert np.array_equal(again.predict_proba(graphs), model.predict_proba(graphs))


@pytest.mark.parametrize(
    ("claimed", "message"),
    [
        *((one, f"n_estimators must be one that its options allow, not {one!r}.") for one in (0, -3, True, "3", None)),
        (1, "its tensors are not those of the network that it describes."),
        (2, "its tensors are not those of the network that it describes."),
        (4, "its tensors are not those of the network that it describes."),
        (99, "it describes 297 layers but holds"),
        (10**15, "it describes 3000000000000000 layers but holds"),
    ],
)
def test_a_file_with_another_number_of_networks_is_refused(tmp_path, monkeypatch, claimed, message):
    graphs, labels = leaves()
    classifier(n_estimators="auto").fit(graphs, labels).save(tmp_path / "model")
    changed(tmp_path / "model", lambda described: described.update(n_estimators=claimed))
    if claimed in (99, 10**15):
        monkeypatch.setattr(LabelNet, "__init__", lambda *given, **options: pytest.fail("it was made"))
    with pytest.raises(DataError) as caught:
        load(tmp_path / "model")
    assert f"is invalid: {message}" in str(caught.value)


def test_a_file_whose_networks_contradict_its_options_is_refused(tmp_path):
    graphs, labels = leaves()
    classifier(n_estimators=2).fit(graphs, labels).save(tmp_path / "model")
    changed(tmp_path / "model", lambda described: described["options"].update(n_estimators=3))
    with pytest.raises(DataError, match="n_estimators must be one that its options allow, not 2"):
        load(tmp_path / "model")
