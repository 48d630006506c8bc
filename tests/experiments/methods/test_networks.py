"""Message passing networks and the classifier: their invariances, their records, and which epoch counts."""

from dataclasses import replace
from pathlib import Path
from tempfile import mkdtemp

import pytest
import torch

from bellnet.data import Graph
from bellnet.estimator import GraphClassifier
from experiments.graph_cell import GraphCell, cells_of_table3
from experiments.graph_data import load_graphs, parts_of
from experiments.methods import method
from experiments.methods.base import Task
from experiments.methods.networks import graph_batch, node_features, pair_channels
from experiments.run import run_cell
from tests.experiments.graphs import write_set
from tests.experiments.small import timeless

NETWORKS = ("gin", "dgcnn", "diffpool", "ecc", "ppgn")
SMALL = {"epochs": 3, "max_epochs": 3, "batch_size": 7, "width": 8, "edge_width": 4}


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    return write_set(tmp_path_factory.mktemp("data"))


@pytest.fixture(scope="module")
def task(data):
    graphs = load_graphs("MUTAG", data)
    cell = GraphCell(method="wl", name="MUTAG", split=0, options={}, validation_part=4)
    return Task(graphs, parts_of(cell, graphs), seed=5)


def _options(name, **changes):
    return {key: changes.get(key, SMALL.get(key, value)) for key, value in method(name).usual("MUTAG").items()}


def _net(name, task, **changes):
    torch.manual_seed(0)
    return method(name).make(task, _options(name, **changes))


@pytest.fixture
def run(data, tmp_path):
    """Runs a small cell; its result and its epochs."""

    def run(name, **changes):
        (cell,) = cells_of_table3([name], names=["MUTAG"], splits=[0], seed=5, data=data)
        cell = replace(cell, options=_options(name, **changes), validation_part=4)
        directory = Path(mkdtemp(dir=tmp_path))
        epochs = []
        return run_cell(cell, directory, epochs.append), epochs

    return run


@pytest.mark.parametrize("name", NETWORKS)
def test_networks_are_invariant_under_permutations(name, task):
    net = _net(name, task).eval().double()
    order = torch.tensor([3, 0, 4, 1, 2])
    graphs = [graph for graph in task.graphs.graphs if graph.n == 5]
    permuted = [Graph(5, order[graph.edge_index], node_labels=graph.node_labels[order.argsort()]) for graph in graphs]
    logits = []
    for some in (graphs, permuted):
        batch = graph_batch(replace(task.graphs, graphs=tuple(some)), list(range(len(some))))
        logits.append(net(replace(batch, x=batch.x.double())))
    torch.testing.assert_close(*logits)
    assert logits[0].shape == (10, 2)


@pytest.mark.parametrize("name", NETWORKS)
def test_graphs_in_a_batch_are_independent(name, task):
    net = _net(name, task).eval().double()

    def logits(indices):
        batch = graph_batch(task.graphs, indices)
        return net(replace(batch, x=batch.x.double()))

    torch.testing.assert_close(logits([0, 4, 11]), torch.cat([logits([index]) for index in (0, 4, 11)]))


@pytest.mark.parametrize("name", NETWORKS)
def test_the_epoch_of_the_highest_validation_accuracy_counts(name, run):
    found, epochs = run(name, epochs=6)
    assert [epoch["epoch"] for epoch in epochs] == list(range(6))
    best = max(epochs, key=lambda epoch: (epoch["validation"], -epoch["validation_loss"]))
    assert found["best_epoch"] == best["epoch"]
    assert (found["validation"], found["accuracy"]) == pytest.approx((best["validation"], best["test"]))
    assert found["seconds"] > 0


@pytest.mark.parametrize("name", [*NETWORKS, "bellnet"])
def test_a_cell_is_reproducible_and_leaves_the_random_number_generator_as_it_is(name, run):
    torch.manual_seed(0)
    expected = torch.rand(3)
    torch.manual_seed(0)
    first, epochs = run(name)
    assert torch.equal(torch.rand(3), expected)
    again, same = run(name)
    assert timeless(first) == timeless(again)
    assert [epoch["loss"] for epoch in epochs] == [epoch["loss"] for epoch in same]


@pytest.mark.parametrize("name", [*NETWORKS, "bellnet"])
def test_labels_of_test_graphs_affect_nothing_but_the_accuracy(name, run, monkeypatch):
    true, epochs = run(name)
    load = GraphCell.task

    def wrong(cell):
        task = load(cell)
        labels = task.graphs.labels.clone()
        labels[list(task.parts.test)] = 1 - labels[list(task.parts.test)]
        return replace(task, graphs=replace(task.graphs, labels=labels))

    monkeypatch.setattr(GraphCell, "task", wrong)
    false, others = run(name)
    assert true["best_epoch"] == false["best_epoch"]
    assert true["accuracy"] == pytest.approx(1 - false["accuracy"])
    for here, there in zip(epochs, others, strict=True):
        assert here["loss"] == there["loss"]
        assert here["validation_loss"] == there["validation_loss"]


@pytest.mark.parametrize("name", NETWORKS)
def test_cycles_are_distinguished_from_paths(name, run):
    _, epochs = run(name, epochs=40, learning_rate=0.02, halve_every=100, dropout=0.0)
    assert epochs[-1]["loss"] < epochs[0]["loss"]
    assert max(epoch["validation"] for epoch in epochs) > 0.8


def test_the_learning_rate_is_halved(run):
    _, epochs = run("gin", epochs=5, halve_every=2, learning_rate=0.08, batch_size=100)
    assert [epoch["learning_rate"] for epoch in epochs] == [0.08, 0.08, 0.04, 0.04, 0.02]


def test_every_training_graph_is_in_one_batch_and_none_is_alone(task):
    batches = method("gin").batches(task, "train", {"batch_size": 17}, torch.Generator().manual_seed(0))
    assert [len(batch) for batch in batches] == [9, 9]
    assert sorted(index for batch in batches for index in batch) == sorted(task.parts.train)


def test_the_sequence_of_sorted_nodes_is_shorter_than_most_graphs(task):
    large = replace(task, graphs=replace(task.graphs, graphs=tuple(Graph(n, [[], []]) for n in range(11, 41))))
    sizes = sorted(large.graphs.graphs[index].n for index in large.parts.train)
    length = _net("dgcnn", large, batch_size=50).sort.k
    assert sum(size > length for size in sizes) / len(sizes) == pytest.approx(0.6, abs=0.06)
    assert _net("dgcnn", task).sort.k == 10, "not shorter than the convolutions need"


def test_sums_over_neighbours_are_those_of_messages_along_edges(task):
    from torch_geometric.nn import GINConv

    batch = graph_batch(task.graphs, [3, 8, 1])
    one_way = batch.edge_index[:, :-3]  # directed, as no graph of the data set is
    twice = torch.cat([one_way, one_way[:, :2]], dim=1)
    batch = replace(batch, x=torch.randn(batch.x.shape[0], 4, dtype=torch.float64), edge_index=twice)
    layer = GINConv(torch.nn.Linear(4, 3)).double()
    torch.testing.assert_close(layer(batch.x, batch.incoming), layer(batch.x, batch.edge_index))


def test_gin_forms_no_message_for_an_edge(task, monkeypatch):
    from torch_geometric.nn import GINConv

    net = _net("gin", task)
    monkeypatch.setattr(GINConv, "message", lambda *given: pytest.fail("a message"))
    assert net(graph_batch(task.graphs, [3, 8])).shape == (2, 2)


def test_penalties_are_a_part_of_the_loss_of_differentiable_pooling(task):
    net = _net("diffpool", task).eval()
    batch, labels = graph_batch(task.graphs, list(range(6))), task.graphs.labels[:6]
    logits, penalty = net.with_penalty(batch)
    assert penalty.item() > 0
    expected = torch.nn.functional.cross_entropy(logits, labels) + penalty
    torch.testing.assert_close(method("diffpool").loss(net, batch, labels), (expected, logits))


def test_products_have_edges_and_the_labels_of_nodes_on_the_diagonal(task):
    batch = graph_batch(task.graphs, [3, 8])
    values = pair_channels(batch).values
    for number, index in enumerate((3, 8)):
        graph, width = task.graphs.graphs[index], batch.x.shape[1]
        expected = torch.zeros(graph.n, graph.n, 1 + width)
        expected[graph.edge_index[0], graph.edge_index[1], 0] = 1
        expected[:, :, 1:] += torch.diag_embed(node_features(task.graphs)[index].T).permute(1, 2, 0)
        assert torch.equal(values[number, : graph.n, : graph.n], expected)


def test_bellnet_is_the_classifier_and_its_test_accuracy_is_recorded_after_every_epoch(task, run):
    found, epochs = run("bellnet", max_epochs=4)
    graphs, labels = task.graphs.graphs, task.graphs.labels.numpy()
    known = sorted(task.parts.train + task.parts.validation)
    model = GraphClassifier(max_epochs=4, batch_size=7, random_state=5, verbose=False)
    model.fit([graphs[index] for index in known], labels[known])
    test = [graphs[index] for index in task.parts.test]
    assert found["accuracy"] == model.score(test, labels[list(task.parts.test)])
    assert found["best_epoch"] == model.best_epoch_
    names = {"epoch": "epoch", "loss": "loss", "train": "accuracy", "validation": "validation_accuracy"}
    for epoch, logged in zip(epochs, model.history_, strict=True):
        assert {name: epoch[name] for name in names} == {name: logged[theirs] for name, theirs in names.items()}
    assert epochs[model.best_epoch_]["test"] == found["accuracy"]
