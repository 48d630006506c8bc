"""Kernels with a support vector machine: what they compare, how they are selected, and what they refuse."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from bellnet.data import Graph, generated
from bellnet.errors import DataError
from experiments.graph_data import GraphSet, Parts
from experiments.methods import kernels, method
from experiments.methods.base import Task
from experiments.methods.kernels import labels_of

KERNELS = ("wl", "graphlet", "random-walk", "propagation")
QUICK = {"C": (1.0, 100.0), "n_splits": 3, "samples": 40}


def _task(count=60, *, test=20):
    """Graphs that 1-WL distinguishes."""
    graphs, labels = generated.leaf_pairs(count)
    places = tuple(range(count))
    parts = Parts(places[: count - 2 * test], places[count - 2 * test : count - test], places[count - test :])
    return Task(GraphSet("SMALL", tuple(graphs), labels, 2, ()), parts, seed=3)


def _options(name):
    usual = method(name).usual("MUTAG")
    return {key: QUICK.get(key, value[:2] if isinstance(value, tuple) else value) for key, value in usual.items()}


def _matrices(name, task):
    return kernels._matrices(method(name), task.graphs, tuple(_options(name).items()), task.seed)[0]


@pytest.fixture(scope="module")
def task():
    return _task()


def test_graphs_that_1_wl_distinguishes_are_classified(task):
    found = method("wl").run(task, method("wl").usual("MUTAG"), lambda epoch: pytest.fail("kernels have no epochs"))
    assert found["accuracy"] > 0.9
    assert found["validation"] > 0.9
    assert set(found["selected"]) == {"depth", "C"}
    assert found["seconds"] >= found["kernel_seconds"] > 0


@pytest.mark.parametrize("name", KERNELS)
def test_matrices_are_symmetric_normalised_and_the_same_again(name, task):
    first = _matrices(name, task)
    kernels._matrices.cache_clear()
    again = _matrices(name, task)
    assert first.keys() == again.keys()
    for value, matrix in first.items():
        np.testing.assert_array_equal(matrix, again[value])
        np.testing.assert_allclose(matrix, matrix.T, atol=1e-12)
        np.testing.assert_allclose(matrix.diagonal(), 1)
        assert matrix.shape == (60, 60)


def test_a_matrix_of_all_graphs_has_what_training_graphs_alone_would_give(task):
    from grakel.kernels import VertexHistogram, WeisfeilerLehman

    graphs = task.graphs.graphs
    all_of_them = _matrices("wl", task)[1]
    alone = WeisfeilerLehman(n_iter=1, base_graph_kernel=VertexHistogram, normalize=True)
    known = alone.fit_transform(kernels.for_grakel(graphs[:40]))
    asked = alone.transform(kernels.for_grakel(graphs[40:]))
    np.testing.assert_allclose(all_of_them[:40, :40], known, atol=1e-12)
    np.testing.assert_allclose(all_of_them[40:, :40], asked, atol=1e-12)


@pytest.mark.parametrize("name", KERNELS)
def test_labels_of_test_graphs_do_not_affect_the_selection(name, task):
    wrong = task.graphs.labels.clone()
    wrong[list(task.parts.test)] = 1 - wrong[list(task.parts.test)]
    lied = replace(task, graphs=replace(task.graphs, labels=wrong))
    true, false = (method(name).run(one, _options(name), lambda epoch: None) for one in (task, lied))
    assert true["selected"] == false["selected"]
    assert true["validation"] == false["validation"]
    assert true["accuracy"] == pytest.approx(1 - false["accuracy"])


def test_matrices_are_computed_once_for_all_splits(task, monkeypatch):
    kernels._matrices.cache_clear()
    asked = []
    real = kernels.for_grakel
    monkeypatch.setattr(kernels, "for_grakel", lambda graphs: (asked.append(len(graphs)), real(graphs))[1])
    other = replace(task, parts=Parts(task.parts.test, task.parts.validation, task.parts.train))
    for one in (task, other):
        method("wl").run(one, _options("wl"), lambda epoch: None)
    assert asked == [60, 60], "one for each of two depths"


def test_nodes_without_labels_are_labelled_by_their_degrees():
    path, labelled = Graph(3, [[0, 1, 1, 2], [1, 0, 2, 1]]), Graph(1, [[], []], node_labels=[5])
    assert [labels.tolist() for labels in labels_of([path])] == [[1, 2, 1]]
    assert [labels.tolist() for labels in labels_of([labelled])] == [[5]]
    assert [labels.tolist() for labels in labels_of([path, labelled])] == [[1, 2, 1], [0]]


@pytest.mark.parametrize("name", KERNELS)
def test_graphs_without_edges_and_single_nodes_are_compared_too(name):
    graphs = [Graph(1 + place % 4, torch.zeros(2, 0, dtype=torch.long)) for place in range(6)]
    graphs += [Graph(3, [[0, 1, 1, 2], [1, 0, 2, 1]])] * 6
    task = Task(GraphSet("BARE", tuple(graphs), torch.tensor([0, 1] * 6), 2, ()), Parts(tuple(range(12)), (), (0,)), 0)
    for matrix in _matrices(name, task).values():
        assert np.isfinite(matrix).all()


def test_too_many_pairs_of_walks_are_refused(task):
    many = replace(task.graphs, name="NCI1", graphs=task.graphs.graphs * 40)
    with pytest.raises(DataError) as caught:
        method("random-walk").run(replace(task, graphs=many), _options("random-walk"), lambda epoch: None)
    assert str(caught.value) == (
        "NCI1: the random walk kernel of 2,400 graphs has 2,881,200 pairs, and each takes about a millisecond; the "
        "maximum is 2,000,000.\nLeave the data set out of --set, or random-walk out of --method."
    )
