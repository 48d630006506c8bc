"""Several networks that answer together: each learns as it would alone, and what they say is the mean."""

import copy

import numpy as np
import pytest
import torch
from sklearn.base import clone

from bellnet.errors import DataError, SizesError
from bellnet.estimator import cost, load
from bellnet.estimator.committee import Committee
from tests.estimator.small import classifier, leaves, regressor
from tests.estimator.stored import as_before, changed


def alone(model, place):
    """The estimator with one of its networks only."""
    one = copy.copy(model)
    one.networks, one.networks_, one.net_ = 1, 1, model.net_.members[place]
    return one


def weights(net):
    return torch.cat([value.flatten() for value in net.state_dict().values()])


@pytest.mark.parametrize("options", [{}, {"target": "node"}, {"layout": "sparse", "norm": "batch"}, {"order": 3}])
def test_what_several_networks_say_is_the_mean_of_what_each_says(options):
    graphs, labels = leaves()
    if options.get("target") == "node":
        labels = [np.arange(graph.n) % 2 for graph in graphs]
    number = regressor(networks=3, **options).fit(graphs, labels)
    each = [np.concatenate([*map(np.atleast_1d, alone(number, place).predict(graphs))]) for place in range(3)]
    found = np.concatenate([*map(np.atleast_1d, number.predict(graphs))])
    np.testing.assert_allclose(found, np.mean(each, 0), rtol=1e-12)
    assert not np.allclose(each[0], each[1])
    kind = classifier(networks=3, **options).fit(graphs, labels)
    logs = [np.log(np.concatenate([*map(np.atleast_2d, alone(kind, i).predict_proba(graphs))])) for i in range(3)]
    product = np.exp(np.mean(logs, 0))
    found = np.concatenate([*map(np.atleast_2d, kind.predict_proba(graphs))])
    np.testing.assert_allclose(found, product / product.sum(1, keepdims=True), rtol=1e-10)


@pytest.mark.parametrize(
    "options", [{}, {"layout": "sparse", "norm": "batch", "residual": True}, {"weight_decay": 0.1}]
)
def test_a_member_learns_what_it_would_learn_alone(options):
    graphs, labels = leaves()
    options = {"max_epochs": 4, "validation_fraction": 0, "batch_size": 7, **options}
    together = classifier(networks=2, **options).fit(graphs, labels)
    single = classifier(networks=1, **options).fit(graphs, labels)
    first, second = map(weights, together.net_.members)
    # The first begins with the weights of a network alone, and sees the same batches.
    assert torch.equal(first, weights(single.net_))
    assert not torch.allclose(first, second)


def test_members_drop_channels_independently_and_a_fit_can_be_repeated():
    graphs, labels = leaves()
    model = classifier(networks=2, dropout=0.5, max_epochs=3)
    first = weights(model.fit(graphs, labels).net_)
    assert torch.equal(first, weights(clone(model).fit(graphs, labels).net_))
    assert not torch.equal(first, weights(clone(model).set_params(random_state=1).fit(graphs, labels).net_))


def test_the_history_has_the_mean_loss_of_members_and_the_score_of_all_together():
    graphs, labels = leaves()
    # Weights that hardly move: what was measured while learning is what each network says in the end.
    options = {"learning_rate": 1e-12, "validation_fraction": 0, "batch_size": 24, "max_epochs": 1}
    model = classifier(networks=3, **options).fit(graphs, labels)
    chances = [alone(model, place).predict_proba(graphs)[np.arange(24), labels] for place in range(3)]
    (record,) = model.history_
    assert record["loss"] == pytest.approx(-np.log(chances).mean(), rel=1e-5)
    assert record["accuracy"] == pytest.approx(model.score(graphs, labels))


def test_what_is_held_out_is_asked_of_all_together():
    graphs, labels = leaves(40)
    model = classifier(networks=3, max_epochs=3).fit(
        graphs[:20], labels[:20], validation_data=(graphs[20:], labels[20:])
    )
    chances = model.predict_proba(graphs[20:])[np.arange(20), labels[20:]]
    kept = model.history_[model.kept_epoch_]
    assert kept["validation_loss"] == pytest.approx(-np.log(chances).mean(), rel=1e-4)
    assert kept["validation_accuracy"] == pytest.approx(model.score(graphs[20:], labels[20:]))


def test_where_there_is_little_to_see_there_are_several_networks(monkeypatch):
    graphs, labels = leaves()
    listed, pairs = sum(graph.n + graph.n_edges for graph in graphs), sum(graph.n**2 for graph in graphs)
    assert listed < pairs < cost.LITTLE
    for layout, count in (("sparse", listed), ("padded", pairs)):
        monkeypatch.setattr(cost, "LITTLE", count)
        several = classifier(networks="auto", layout=layout).fit(graphs, labels)
        assert (several.networks_, len(several.net_.members)) == (cost.MOST_NETWORKS, cost.MOST_NETWORKS)
        assert isinstance(several.net_, Committee)
        assert " from 24 graphs by 3 networks in " in several.told_
        monkeypatch.setattr(cost, "LITTLE", count - 1)
        one = classifier(networks="auto", layout=layout).fit(graphs, labels)
        assert (one.networks_, len(one.net_.members)) == (1, 1)
        assert torch.equal(weights(one.net_), weights(classifier(networks=1, layout=layout).fit(graphs, labels).net_))
        assert classifier(networks=2, layout=layout).fit(graphs, labels).networks_ == 2


def test_networks_that_would_take_too_much_memory_are_refused_before_they_are_made():
    graphs, labels = leaves()
    with pytest.raises(SizesError) as caught:
        classifier(networks=10**6, channels=(64, 64), max_gigabytes=1).fit(graphs, labels)
    assert str(caught.value) == (
        "GraphClassifier.fit(graphs, y): 1,000,000 networks of at least 4,816,000,000 weights would take about 97 GB "
        "of memory to train, but 1 GB is the most that they may take.\n"
        "Narrower channels and hidden, and fewer networks, take less, and max_gigabytes=97 allows it."
    )


@pytest.mark.parametrize("networks", [1, 3, "auto"])
def test_several_networks_are_stored_and_say_the_same(tmp_path, networks):
    graphs, labels = leaves()
    model = classifier(networks=networks, norm="batch", layout="sparse").fit(graphs, labels)
    model.save(tmp_path / "model")
    again = load(tmp_path / "model")
    assert (again.networks, again.networks_) == (networks, model.networks_)
    assert np.array_equal(again.predict_proba(graphs), model.predict_proba(graphs))


@pytest.mark.parametrize("claimed", [1, 2, 4, 0, -3, 10**15, True, "3", None])
def test_a_file_that_claims_another_number_of_networks_than_it_holds_is_refused(tmp_path, claimed):
    graphs, labels = leaves()
    classifier(networks="auto").fit(graphs, labels).save(tmp_path / "model")
    changed(tmp_path / "model", lambda described: described.update(networks=claimed))
    with pytest.raises(DataError, match=r"not a sound one: (networks must be|it describes|its tensors)"):
        load(tmp_path / "model")


def test_a_file_whose_networks_contradict_its_options_is_refused(tmp_path):
    graphs, labels = leaves()
    classifier(networks=2).fit(graphs, labels).save(tmp_path / "model")
    changed(tmp_path / "model", lambda described: described["options"].update(networks=3))
    with pytest.raises(DataError, match="networks must be what its options allow, not 2"):
        load(tmp_path / "model")


def test_files_and_pickles_from_before_there_could_be_several_networks_have_one(tmp_path):
    graphs, labels = leaves()
    model = classifier(networks=1).fit(graphs, labels)
    model.save(tmp_path / "model")

    def of_version_9(described):
        as_before(9, "networks")(described)
        del described["networks"]

    changed(tmp_path / "model", of_version_9)
    again = load(tmp_path / "model")
    state = {name: value for name, value in model.__getstate__().items() if name not in ("networks", "networks_")}
    older = type(model).__new__(type(model))
    older.__setstate__(state)
    for one in (again, older):
        assert (one.networks, one.networks_, clone(one).networks) == (1, 1, 1)
        assert np.array_equal(one.predict_proba(graphs), model.predict_proba(graphs))
