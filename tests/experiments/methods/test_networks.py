"""Message passing networks and the classifier: what they see, what they record, and which epoch counts."""

from dataclasses import replace

import pytest
import torch

from bellnet.data import Graph
from bellnet.estimator import GraphClassifier
from experiments.graph_data import load_graphs, parts_of
from experiments.method_cells import MethodCell
from experiments.methods import method, networks
from experiments.methods.base import Task
from experiments.methods.networks import examples_of
from tests.experiments.graphs import write_set

NETWORKS = ("gin", "dgcnn", "diffpool", "ecc", "ppgn")
SMALL = {"epochs": 3, "max_epochs": 3, "batch": 7, "width": 8, "edge_width": 4}


@pytest.fixture(scope="module")
def task(tmp_path_factory):
    graphs = load_graphs("MUTAG", write_set(tmp_path_factory.mktemp("data")))
    cell = MethodCell(method="wl", name="MUTAG", split=0, options={}, held_out=4)
    return Task(graphs, parts_of(cell, graphs), seed=5)


def _options(name, **changes):
    return {key: changes.get(key, SMALL.get(key, value)) for key, value in method(name).usual().items()}


def _run(name, task, **changes):
    epochs = []
    return method(name).run(task, _options(name, **changes), epochs.append), epochs


def _timeless(record):
    return {key: value for key, value in record.items() if key != "seconds"}


@pytest.mark.parametrize("name", NETWORKS)
def test_renumbering_the_nodes_changes_nothing(name, task):
    net = method(name).make(task, 2, _options(name)).eval().double()
    order = torch.tensor([3, 0, 4, 1, 2])
    graphs = [graph for graph in task.graphs.graphs if graph.n == 5]
    renumbered = [Graph(5, order[graph.edge_index], node_labels=graph.node_labels[order.argsort()]) for graph in graphs]
    said = []
    for some in (graphs, renumbered):
        examples = examples_of(replace(task.graphs, graphs=tuple(some), labels=task.graphs.labels[: len(some)]))
        together = examples.together(range(len(some)))
        said.append(net(replace(together, x=together.x.double())))
    torch.testing.assert_close(*said)
    assert said[0].shape == (10, 2)


@pytest.mark.parametrize("name", NETWORKS)
def test_graphs_in_a_batch_do_not_know_each_other(name, task):
    net = method(name).make(task, 2, _options(name)).eval().double()
    examples = examples_of(task.graphs)

    def said(places):
        together = examples.together(places)
        return net(replace(together, x=together.x.double()))

    torch.testing.assert_close(said([0, 4, 11]), torch.cat([said([place]) for place in (0, 4, 11)]))


@pytest.mark.parametrize("name", NETWORKS)
def test_the_epoch_that_classifies_most_of_what_was_kept_aside_counts(name, task):
    found, epochs = _run(name, task, epochs=6)
    assert [epoch["epoch"] for epoch in epochs] == list(range(6))
    best = max(epochs, key=lambda epoch: (epoch["validation"], -epoch["validation_loss"]))
    assert found["best_epoch"] == best["epoch"]
    assert (found["validation"], found["accuracy"]) == (best["validation"], best["test"])
    assert found["seconds"] > 0


@pytest.mark.parametrize("name", [*NETWORKS, "bellnet"])
def test_a_cell_gives_the_same_again_and_leaves_the_random_numbers_of_others_alone(name, task):
    torch.manual_seed(0)
    expected = torch.rand(3)
    torch.manual_seed(0)
    first, epochs = _run(name, task)
    assert torch.equal(torch.rand(3), expected)
    again, same = _run(name, task)
    assert _timeless(first) == _timeless(again)
    assert [*map(_timeless, epochs)] == [*map(_timeless, same)]


@pytest.mark.parametrize("name", [*NETWORKS, "bellnet"])
def test_labels_of_test_graphs_have_no_say_in_anything_but_the_accuracy(name, task):
    wrong = task.graphs.labels.clone()
    wrong[list(task.parts.test)] = 1 - wrong[list(task.parts.test)]
    lied = replace(task, graphs=replace(task.graphs, labels=wrong))
    (true, epochs), (false, others) = (_run(name, one) for one in (task, lied))
    assert true["best_epoch"] == false["best_epoch"]
    assert true["accuracy"] == pytest.approx(1 - false["accuracy"])
    for here, there in zip(epochs, others, strict=True):
        assert here["loss"] == there["loss"]
        assert here["validation_loss"] == there["validation_loss"]


@pytest.mark.parametrize("name", NETWORKS)
def test_cycles_are_told_from_paths(name, task):
    _, epochs = _run(name, task, epochs=40, rate=0.02, halve_every=100, dropout=0.0)
    assert epochs[-1]["loss"] < epochs[0]["loss"]
    assert max(epoch["validation"] for epoch in epochs) > 0.8


def test_the_rate_is_halved(task, monkeypatch):
    rates = []
    step = torch.optim.Adam.step
    monkeypatch.setattr(
        torch.optim.Adam, "step", lambda self, *given: (rates.append(self.param_groups[0]["lr"]), step(self, *given))[1]
    )
    _run("gin", task, epochs=5, halve_every=2, rate=0.08, batch=100)
    assert rates == [0.08, 0.08, 0.04, 0.04, 0.02]


def test_every_training_graph_is_dealt_once_and_none_is_alone(task):
    examples = examples_of(task.graphs)
    batches = list(examples.dealt(range(15), 7, torch.Generator().manual_seed(0)))
    assert [len(batch.y) for batch in batches] == [5, 5, 5]
    assert sum(len(batch.x) for batch in batches) == sum(graph.n for graph in task.graphs.graphs[:15])


def test_nodes_are_sorted_into_a_line_that_most_graphs_fill(task):
    large = replace(task, graphs=replace(task.graphs, graphs=tuple(Graph(n, [[], []]) for n in range(11, 41))))
    options = method("dgcnn").usual()
    sizes = sorted(large.graphs.graphs[place].n for place in large.parts.train)
    kept = method("dgcnn").make(large, 3, options).sort.k
    assert sum(size > kept for size in sizes) / len(sizes) == pytest.approx(0.6, abs=0.06)
    assert method("dgcnn").make(task, 3, options).sort.k == 10, "not fewer than the convolutions need"


def test_sums_over_neighbours_are_those_of_messages_along_edges(task):
    from torch_geometric.nn import GINConv

    together = examples_of(task.graphs).together([3, 8, 1])
    one_way = together.edge_index[:, :-3]  # directed, as no graph of the data set is
    twice = torch.cat([one_way, one_way[:, :2]], dim=1)
    together = replace(together, x=torch.randn(together.x.shape[0], 4, dtype=torch.float64), edge_index=twice)
    layer = GINConv(torch.nn.Linear(4, 3)).double()
    torch.testing.assert_close(layer(together.x, together.heard), layer(together.x, together.edge_index))


def test_gin_forms_no_message_for_an_edge(task, monkeypatch):
    from torch_geometric.nn import GINConv

    net = method("gin").make(task, 2, _options("gin"))
    monkeypatch.setattr(GINConv, "message", lambda *given: pytest.fail("a message"))
    assert net(examples_of(task.graphs).together([3, 8])).shape == (2, 2)


def test_penalties_are_a_part_of_the_loss_of_pooling(task):
    pooling = method("diffpool")
    net = pooling.make(task, 2, _options("diffpool")).eval()
    batch = examples_of(task.graphs).together(range(6))
    said, penalty = net.with_penalty(batch)
    assert penalty.item() > 0
    expected = torch.nn.functional.cross_entropy(said, batch.y) + penalty
    torch.testing.assert_close(pooling.loss(net, batch), expected)


def test_products_see_edges_and_the_labels_of_nodes_on_the_diagonal(task):
    together = examples_of(task.graphs).together([3, 8])
    values = networks._pairs(together).values
    for number, place in enumerate((3, 8)):
        graph, width = task.graphs.graphs[place], together.x.shape[1]
        expected = torch.zeros(graph.n, graph.n, 1 + width)
        expected[graph.edge_index[0], graph.edge_index[1], 0] = 1
        expected[:, :, 1:] += torch.diag_embed(examples_of(task.graphs).x[place].T).permute(1, 2, 0)
        assert torch.equal(values[number, : graph.n, : graph.n], expected)


def test_best_is_the_classifier_and_its_records_are_looks_at_every_epoch(task):
    found, epochs = _run("bellnet", task, max_epochs=4)
    graphs, labels = task.graphs.graphs, task.graphs.labels.numpy()
    known = sorted(task.parts.train + task.parts.validation)
    model = GraphClassifier(max_epochs=4, random_state=5, verbose=False).fit([graphs[p] for p in known], labels[known])
    asked = [graphs[place] for place in task.parts.test]
    assert found["accuracy"] == model.score(asked, labels[list(task.parts.test)])
    assert found["best_epoch"] == model.best_epoch_
    names = {"epoch": "epoch", "loss": "loss", "train": "accuracy", "validation": "validation_accuracy"}
    for epoch, told in zip(epochs, model.history_, strict=True):
        assert {name: epoch[name] for name in names} == {name: told[theirs] for name, theirs in names.items()}
    assert epochs[model.best_epoch_]["test"] == found["accuracy"]
