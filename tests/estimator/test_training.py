"""The validation set, early stopping, and what is shown in training."""

import io
import re
from functools import partial

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from bellnet.data import Encoding, Loader, generated, undirected
from bellnet.errors import OptionError
from bellnet.estimator import training
from bellnet.estimator.model import Ensemble
from bellnet.estimator.validation import split_units, validation_split
from tests.estimator.small import classifier, leaves, regressor, stars_and_paths

SCHEDULE = training.Schedule(max_epochs=9, patience=3, batch_size=4, learning_rate=0.1, weight_decay=0.0)


@given(st.lists(st.integers(0, 3), min_size=1, max_size=60), st.floats(0, 0.9), st.integers(0, 9))
def test_the_validation_set_is_stratified(classes, fraction, seed):
    groups = np.array(classes)
    in_validation = validation_split(groups, np.arange(len(groups)), fraction, np.random.default_rng(seed))
    if round(fraction * len(groups)) < 1:
        assert not in_validation.any()
        return
    for group in np.unique(groups):
        members = (groups == group).sum()
        assert in_validation[groups == group].sum() == min(round(fraction * members), members - 1)


@given(st.lists(st.integers(0, 5), min_size=1, max_size=40), st.integers(0, 9))
def test_a_unit_is_not_split(units, seed):
    units = np.array(units)
    in_validation = validation_split(np.zeros(len(units), dtype=int), units, 0.5, np.random.default_rng(seed))
    assert all(len(set(in_validation[units == unit])) == 1 for unit in units)


def test_units_are_graphs_or_nodes_or_edges():
    graphs = [undirected(3, [(0, 1), (1, 2)])] * 2
    assert split_units(graphs, "graph", 0.1).tolist() == [0, 1]
    assert split_units(graphs, "node", 0.5).tolist() == [0, 0, 0, 1, 1, 1]
    assert split_units(graphs, "node", 0.1).tolist() == [0, 1, 2, 3, 4, 5]
    edges = split_units(graphs, "edge", 0.1)
    ends = graphs[0].edge_index.T.tolist()
    pairs = [(number, *sorted(edge)) for number in range(2) for edge in ends]
    for one, unit in zip(pairs, edges, strict=True):
        for other, same in zip(pairs, edges, strict=True):
            assert (one == other) == (unit == same)


class Scripted(nn.Module):
    """A network whose validation loss follows a script: the output is the next entry, per epoch."""

    def __init__(self, script):
        super().__init__()
        self.script, self.epoch = script, -1
        self.weight = nn.Parameter(torch.zeros(1))
        self.register_buffer("seen", torch.zeros(1))

    def train(self, mode=True):
        if mode:
            self.epoch += 1
            self.seen.fill_(self.epoch)
        return super().train(mode)

    @property
    def members(self):
        return (self,)

    combine = staticmethod(Ensemble.combine)

    def parameter_groups(self, learning_rate):
        return [{"params": [self.weight], "lr": learning_rate}]

    def forward(self, batch, graphs):
        value = self.script[self.epoch] if not self.training else 0.0
        return self.weight * 0 + torch.tensor(value).expand(len(graphs))


def scripted(script, share=0.25, error=0.0, weights=None):
    """A network trained by a script, and the outcome; the weights of the validation set are appended to `weights`."""
    graphs, _ = leaves(8)

    def validation_error(outputs, targets, given):
        if weights is not None:
            weights.append(given.tolist())
        return float((outputs - targets).nan_to_num().mean()), error

    data = training.TrainingData(
        graphs=graphs,
        starts=np.arange(9),
        targets=torch.zeros(8),
        weights=torch.arange(1.0, 9.0),
        known=torch.ones(8, dtype=torch.bool),
        in_validation=torch.arange(8) < 8 * share,
        loader=partial(Loader, encoding=Encoding.fit(graphs)),
    )
    objective = training.Objective(
        loss=lambda outputs, targets: outputs - targets,
        validation_error=validation_error,
        score=lambda outputs, targets: float(outputs.mean()),
        score_name="mark",
    )
    net = Scripted(script)
    with training.ProgressBar("", 9, show=False) as bar:
        return net, training.train(net, data, objective, SCHEDULE, seed=0, bar=bar)


@pytest.mark.parametrize(
    ("script", "best", "epochs"),
    [
        ([5, 4, 3, 4, 4, 4, 4, 4, 4], 2, 6),
        ([5, 4, 3, 2, 1, 0, -1, -2, -3], 8, 9),
        ([1, 2, 3, 4, 5, 6, 7, 8, 9], 0, 4),
        ([3, 1, 2, 1, 2, 2, 2, 2, 2], 3, 7),
    ],
)
def test_training_stops_early_and_uses_the_last_of_the_best_epochs(script, best, epochs):
    net, outcome = scripted(script)
    assert (outcome.best_epoch, len(outcome.history)) == (best, epochs)
    assert int(net.seen) == best
    assert not net.training


@pytest.mark.parametrize("n_steps", [1, 2, 7, 30, 1000])
def test_the_learning_rate_rises_and_then_falls_to_zero(n_steps):
    pace = [training._learning_rate_factor(n_steps)(step) for step in range(n_steps + 1)]
    top = pace.index(max(pace))
    assert max(pace) == 1
    assert pace[:top] == sorted(pace[:top])
    assert pace[top:] == sorted(pace[top:], reverse=True)
    assert top <= 0.1 * n_steps
    assert pace[0] > 0
    assert pace[-1] == pytest.approx(0)


def test_training_that_diverges_raises_an_error():
    graphs, labels = leaves()
    with pytest.raises(OptionError, match=r"training diverged: the loss of epoch 0 is .*\nUse a smaller learning_rate"):
        classifier(learning_rate=1e18, batch_size=4).fit(graphs, labels)


def test_without_a_validation_set_the_last_epoch_is_the_best():
    net, outcome = scripted([0] * 9, share=0)
    assert (outcome.best_epoch, len(outcome.history), int(net.seen)) == (8, 9, 8)
    assert outcome.history[0]["validation_loss"] is None


def error_of(right, weights=None):
    """The validation error of predictions, some of which are right, with probabilities near one and near a half."""
    right = torch.tensor(right)
    sure = torch.where(torch.arange(len(right)) % 2 == 0, 9.0, 0.1)
    outputs = torch.stack([torch.zeros(len(right)), torch.where(right, sure, -sure)], 1)
    weights = torch.ones(len(right)) if weights is None else torch.tensor(weights)
    return classifier()._validation_error(outputs, torch.ones(len(right), dtype=torch.int64), weights)


def test_validation_error_of_classifiers_is_the_error_rate():
    rate, error = error_of([True] * 6 + [False] * 2)
    assert rate == 0.25
    # Of twelve labels, four of which are made up, four are missed.
    assert error == pytest.approx((1 / 3 * 2 / 3 / 12) ** 0.5)
    assert error_of([False] * 2 + [True] * 6) == (rate, error)
    assert error_of([True, False], [1.0, 3.0])[0] == 0.75


def test_validation_error_depends_on_relative_weights():
    some = [True] * 6 + [False] * 2
    assert error_of([*some, False, True], [1.0] * 8 + [0.0] * 2) == pytest.approx(error_of(some))
    assert error_of(some, [3.0] * 8) == pytest.approx(error_of(some))
    assert error_of(some, [0.0] * 8) == (0, 0)
    # Where few labels weigh most, they are as good as few: here as (7 + 5)^2 / (7 + 25) = 4.5.
    share, error = error_of([True] * 8, [1.0] * 7 + [5.0])
    assert share == 0
    assert error == pytest.approx((2 / 8.5 * 6.5 / 8.5 / 8.5) ** 0.5)


def test_validation_error_of_regressors_is_the_loss():
    outputs, weights = torch.tensor([[1.0], [2.0], [4.0]]), torch.tensor([1.0, 2.0, 0.5])
    losses = np.array([1.0, 8.0, 8.0])
    found = regressor()._validation_error(outputs, torch.zeros(3, 1), weights)
    assert found == pytest.approx((losses.mean(), losses.std() / 3**0.5))


def test_the_standard_error_of_no_misclassification_is_positive():
    for n in (15, 100, 1000):
        none, error = error_of([True] * n)
        assert none == 0
        assert error_of([True] * (n - 1) + [False])[0] < error < error_of([True] * (n - 2) + [False] * 2)[0]


def test_epochs_within_the_standard_error_of_the_best_are_as_good():
    script = [5, 3, 3.4, 3.6, 4, 4, 4, 4, 4]
    assert scripted(script, error=0.5)[1].best_epoch == 2
    assert scripted(script, error=0.7)[1].best_epoch == 3
    assert scripted(script)[1].best_epoch == 1


def test_validation_error_gets_the_weights_of_the_validation_set():
    weights = []
    scripted([5, 4, 3, 2, 1, 0, -1, -2, -3], share=0.5, weights=weights)
    assert [sorted(some) for some in weights] == [[1, 2, 3, 4]] * 9


def test_an_epoch_with_nan_predictions_is_never_the_best():
    nan = float("nan")
    net, outcome = scripted([5, 4, nan, nan, nan, nan, nan, nan, nan])
    assert (outcome.best_epoch, int(net.seen)) == (1, 1)
    graphs, labels = leaves(40)
    model = classifier(max_epochs=6)

    def spoil(fitted, record):
        if record["epoch"] == 2:
            with torch.no_grad():
                next(fitted.ensemble_.parameters()).fill_(nan)

    model.fit(graphs, labels, callback=spoil)
    assert model.best_epoch_ <= 2
    assert len(model.history_) == 3


def test_the_history_has_a_record_for_every_epoch():
    graphs, labels = leaves()
    model = regressor(max_epochs=3).fit(graphs, labels)
    assert [record["epoch"] for record in model.history_] == [0, 1, 2]
    keys = {"epoch", "loss", "validation_loss", "r2", "validation_r2"}
    assert all(record.keys() == keys for record in model.history_)


@pytest.mark.parametrize(("make", "name"), [(classifier, "accuracy"), (regressor, "r2")])
def test_history_has_the_scores_of_both_sets(make, name):
    graphs, labels = leaves()
    others = generated.leaf_pairs(9, seed=1)
    # Weights that hardly move: what was scored while learning is what the model scores.
    model = make(learning_rate=1e-12, max_epochs=2).fit(graphs, labels, validation_data=others)
    best = model.history_[model.best_epoch_]
    assert best[name] == pytest.approx(model.score(graphs, labels), abs=1e-5)
    assert best[f"validation_{name}"] == pytest.approx(model.score(*others), abs=1e-5)
    assert best[name] != pytest.approx(best[f"validation_{name}"], abs=1e-4)


def test_a_score_that_is_not_defined_is_none():
    graphs, _ = leaves(10)
    model = regressor(target="node", validation_fraction=0).fit(graphs, [np.ones(graph.n) for graph in graphs])
    assert [model.history_[0][name] for name in ("r2", "validation_r2", "validation_loss")] == [None] * 3


@pytest.mark.parametrize(
    ("given", "max_epochs", "expected"), [(None, 30, 10), (None, 90, 30), (None, 3, 5), (20, 30, 20), (1, 9, 1)]
)
def test_patience_is_a_third_of_all_epochs_unless_it_is_given(given, max_epochs, expected):
    model = classifier(patience=given, max_epochs=max_epochs)
    model.layout_ = "padded"
    assert model._schedule([]).patience == expected


def test_a_fit_on_random_labels_stops_early():
    options = {"channels": (16, 16), "learning_rate": 0.02, "batch_size": 4, "max_epochs": 60}
    graphs, _ = leaves(40)
    chance = np.random.default_rng(0).integers(2, size=40)
    by_loss = regressor(**options).fit(graphs[:20], chance[:20], validation_data=(graphs[20:], chance[20:]))
    graphs, labels = stars_and_paths()
    slow = classifier(**{**options, "learning_rate": 0.002})
    by_misses = slow.fit(graphs[:20], labels[:20], validation_data=(graphs[20:], 1 - labels[20:]))
    for model in (by_loss, by_misses):
        assert len(model.history_) < 60
        assert len(model.history_) == model.best_epoch_ + 1 + 20


def test_a_classifier_continues_if_the_loss_rises_but_not_the_error_rate():
    graphs, labels = stars_and_paths()
    wrong = labels[20:].copy()
    wrong[:3] = 1 - wrong[:3]  # a network that learns the rule misclassifies these
    options = {"channels": (16, 16), "learning_rate": 0.02, "batch_size": 4, "max_epochs": 40, "patience": 40}
    model = classifier(**options).fit(graphs[:20], labels[:20], validation_data=(graphs[20:], wrong))
    losses = [record["validation_loss"] for record in model.history_]
    assert losses[-1] > 2 * min(losses)
    assert model.best_epoch_ == 39
    assert model.score(graphs, labels) == 1


def test_fit_prints_a_summary_if_verbose(capfd):
    graphs, labels = leaves()
    quiet = classifier(verbose=False).fit(graphs, labels)
    assert "(at most 60)" in classifier(max_epochs="auto", channels=(1,)).fit(graphs, labels).fit_summary_
    assert capfd.readouterr() == ("", "")
    model = classifier(verbose=True).fit(graphs, labels)
    assert capfd.readouterr() == ("", f"{model.fit_summary_}\n")
    figures = [r"loss \d\.\d{3}", r"accuracy [01]\.\d{3}"]
    assert re.fullmatch(
        rf"trained a network on 24 graphs with 2 classes in \d+ s: best epoch {model.best_epoch_} of 2 \(at most 2\), "
        rf"{figures[0]}, validation {figures[0]}, {figures[1]}, validation {figures[1]}",
        quiet.fit_summary_,
    )


def test_the_summary_names_the_target():
    graphs, _ = leaves(1)
    model = regressor(target="node", validation_fraction=0).fit(graphs, [np.arange(graphs[0].n)])
    assert re.fullmatch(
        r"trained a network on 1 graph with numbers of nodes in \d+ s: best epoch 1 of 2 \(at most 2\), "
        r"loss \d\.\d{3}, r2 -?\d+\.\d{3}",
        model.fit_summary_,
    )


def test_a_terminal_shows_a_progress_bar(monkeypatch):
    import rich.console

    screen = io.StringIO()
    real = rich.console.Console
    monkeypatch.setattr(
        rich.console, "Console", lambda stderr: real(file=screen, force_terminal=True, width=120, legacy_windows=False)
    )
    graphs, labels = leaves()
    classifier(verbose=True).fit(graphs, labels)
    assert "fit 24 graphs" in screen.getvalue()
    assert "2/2" in screen.getvalue()
    assert "validation loss" in screen.getvalue()
