"""Where the random numbers of a fit come from: from its own seed, whatever else draws meanwhile, and nothing else."""

import copy
import pickle
import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
import torch

from bellnet.cli.main import main
from bellnet.estimator import GraphClassifier
from bellnet.estimator.training import ProgressBar
from tests.estimator.small import classifier, leaves

TARGETS = ("graph", "node", "edge")


def labels_of(graphs, target):
    """A label for each graph, node or edge."""
    counts = {"node": lambda graph: graph.n, "edge": lambda graph: graph.n_edges}
    if target == "graph":
        return np.arange(len(graphs)) % 2
    return [np.full(counts[target](graph), number % 2) for number, graph in enumerate(graphs)]


def weights_of(model):
    return torch.cat([value.flatten() for value in model.ensemble_.state_dict().values()])


@pytest.mark.parametrize("dropout", [0.0, 0.3])
def test_threads_side_by_side_learn_what_one_alone_learns(dropout):
    graphs, labels = leaves()

    def learned(_):
        return weights_of(classifier(dropout=dropout, max_epochs=4, batch_size=4).fit(graphs, labels))

    alone = learned(0)
    with ThreadPoolExecutor(3) as threads:
        for found in threads.map(learned, range(6)):
            assert torch.equal(found, alone)


@pytest.mark.parametrize("layout", ["padded", "sparse"])
@pytest.mark.parametrize("target", TARGETS)
def test_what_others_draw_during_a_fit_does_not_change_it(target, layout, monkeypatch):
    graphs, _ = leaves(12)
    labels = labels_of(graphs, target)
    model = classifier(target=target, layout=layout, dropout=0.3, hidden=(8, 8), batch_size=4)
    expected = weights_of(model.fit(graphs, labels))
    torch.manual_seed(5)
    np.random.seed(5)
    monkeypatch.setattr(ProgressBar, "batch", lambda self, epoch, share: (torch.rand(3), np.random.rand(3)))
    assert torch.equal(weights_of(model.fit(graphs, labels)), expected)


@pytest.mark.parametrize("target", TARGETS)
def test_nobody_sees_the_global_random_numbers_change_while_a_fit_runs(target, monkeypatch):
    graphs, _ = leaves(12)
    before, seen = (torch.get_rng_state(), str(np.random.get_state())), []

    def look(*_):
        seen.append(torch.equal(torch.get_rng_state(), before[0]))
        seen.append(str(np.random.get_state()) == before[1])

    monkeypatch.setattr(ProgressBar, "batch", look)
    monkeypatch.setattr(ProgressBar, "__enter__", lambda self: look() or self)
    classifier(target=target, dropout=0.3, hidden=(8, 8)).fit(graphs, labels_of(graphs, target))
    look()
    assert len(seen) > 4
    assert all(seen)


def test_dropout_differs_from_batch_to_batch_and_from_seed_to_seed():
    graphs, labels = leaves()
    fits = [
        weights_of(classifier(dropout=p, random_state=seed).fit(graphs, labels))
        for p, seed in ((0.5, 0), (0.5, 1), (0, 0))
    ]
    assert not torch.equal(fits[0], fits[1])
    assert not torch.equal(fits[0], fits[2])


def test_a_fitted_network_with_dropout_can_be_copied_pickled_and_trained_on():
    graphs, labels = leaves()
    model = classifier(dropout=0.5).fit(graphs, labels)
    batch = model.encoding_.encode(graphs)
    for net in (copy.deepcopy(model.ensemble_), pickle.loads(pickle.dumps(model)).ensemble_):
        said = []
        for seed in (3, 3, 4):
            torch.manual_seed(seed)  # outside of a fit dropout is torch's, as in any other module
            said.append(net.train()(batch, graphs))
        assert torch.equal(said[0], said[1])
        assert not torch.equal(said[0], said[2])


ROOT = Path(__file__).parents[2]


def paragraph(text, start):
    """The words from a start to the next empty line or argument."""
    _, found, rest = text.partition(start)
    assert found, start
    return " ".join(re.split(r"\n\s*\n|\n +\w+: ", rest)[0].split())


def test_each_promise_of_the_same_model_names_the_number_of_threads(capsys):
    with pytest.raises(SystemExit):
        main(["fit", "--help"])
    promises = [
        paragraph(GraphClassifier.__doc__, "random_state: "),
        paragraph(capsys.readouterr().out, "--seed N "),
        paragraph((ROOT / "docs" / "classifier.md").read_text(), "The same `random_state` gives"),
        paragraph((ROOT / "docs" / "scaling.md").read_text(), "draw no random numbers"),
    ]
    for words in promises:
        assert "number of torch threads" in words, words
