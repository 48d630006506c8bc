"""The random numbers of a fit."""

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
def test_concurrent_fits_equal_a_single_fit(dropout):
    graphs, labels = leaves()

    def fitted_weights(_):
        return weights_of(classifier(dropout=dropout, max_epochs=4, batch_size=4).fit(graphs, labels))

    alone = fitted_weights(0)
    with ThreadPoolExecutor(3) as threads:
        for found in threads.map(fitted_weights, range(6)):
            assert torch.equal(found, alone)


@pytest.mark.parametrize("layout", ["padded", "sparse"])
@pytest.mark.parametrize("target", TARGETS)
def test_random_numbers_drawn_elsewhere_do_not_change_a_fit(target, layout, monkeypatch):
    graphs, _ = leaves(12)
    labels = labels_of(graphs, target)
    model = classifier(target=target, layout=layout, dropout=0.3, hidden=(8, 8), batch_size=4)
    expected = weights_of(model.fit(graphs, labels))
    torch.manual_seed(5)
    np.random.seed(5)
    monkeypatch.setattr(ProgressBar, "batch", lambda self, epoch, share: (torch.rand(3), np.random.rand(3)))
    assert torch.equal(weights_of(model.fit(graphs, labels)), expected)


@pytest.mark.parametrize("target", TARGETS)
def test_a_fit_does_not_change_global_random_states(target, monkeypatch):
    graphs, _ = leaves(12)
    before, seen = (torch.get_rng_state(), str(np.random.get_state())), []

    def check(*_):
        seen.append(torch.equal(torch.get_rng_state(), before[0]))
        seen.append(str(np.random.get_state()) == before[1])

    monkeypatch.setattr(ProgressBar, "batch", check)
    monkeypatch.setattr(ProgressBar, "__enter__", lambda self: check() or self)
    classifier(target=target, dropout=0.3, hidden=(8, 8)).fit(graphs, labels_of(graphs, target))
    check()
    assert len(seen) > 4
    assert all(seen)


def test_dropout_depends_on_the_seed():
    graphs, labels = leaves()
    fits = [
        weights_of(classifier(dropout=p, random_state=seed).fit(graphs, labels))
        for p, seed in ((0.5, 0), (0.5, 1), (0, 0))
    ]
    assert not torch.equal(fits[0], fits[1])
    assert not torch.equal(fits[0], fits[2])


def test_a_fitted_network_with_dropout_can_be_copied_and_trained_further():
    graphs, labels = leaves()
    model = classifier(dropout=0.5).fit(graphs, labels)
    batch = model.encoding_.encode(graphs)
    for net in (copy.deepcopy(model.ensemble_), pickle.loads(pickle.dumps(model)).ensemble_):
        outputs = []
        for seed in (3, 3, 4):
            torch.manual_seed(seed)  # outside of a fit dropout is torch's, as in any other module
            outputs.append(net.train()(batch, graphs))
        assert torch.equal(outputs[0], outputs[1])
        assert not torch.equal(outputs[0], outputs[2])


ROOT = Path(__file__).parents[2]


def paragraph(text, start):
    """The words from a start to the next empty line or argument."""
    _, found, rest = text.partition(start)
    assert found, start
    return " ".join(re.split(r"\n\s*\n|\n +\w+: ", rest)[0].split())


def test_documentation_of_reproducibility_mentions_the_number_of_threads(capsys):
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
