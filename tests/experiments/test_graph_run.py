"""Running cells of Table 3: what the networks are, what is measured, and going on after being killed."""

import time
from dataclasses import replace

import pytest
import torch

import bellnet as bn
from bellnet.testing import permute_nodes
from experiments.graph_data import load_set
from experiments.graph_net import graph_net
from experiments.records import Records
from experiments.run import run_cells
from tests.experiments.graphs import tiny, write_set
from tests.experiments.processes import killed, run_one, started


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    return write_set(tmp_path_factory.mktemp("data"))


def _without_time(records):
    return [{name: value for name, value in record.items() if name != "seconds"} for record in records]


def _figures(record):
    return {name: record[name] for name in ("accuracy", "validation", "best_epoch", "parameters", "graphs")}


@pytest.mark.parametrize("layout", ["dense", "sparse"])
def test_renumbering_the_nodes_changes_nothing(data, layout):
    graphs = load_set("MUTAG", data)
    net = graph_net(tiny(layout=layout), graphs.n_channels, 2).double()
    places = [place for place, n in enumerate(graphs.sizes) if n == 5]
    dense = graphs.batch(places, "dense")[0].double()
    renumbered = permute_nodes(dense, "n n", [3, 0, 4, 1, 2])
    assert not torch.equal(dense, renumbered)
    if layout == "sparse":
        dense, renumbered = bn.Sparse.from_dense(dense), bn.Sparse.from_dense(renumbered)
    torch.testing.assert_close(net(dense), net(renumbered))


def test_sparse_is_dense_where_all_pairs_are_listed_and_another_function_where_not(data):
    graphs = load_set("MUTAG", data)
    dense_net, sparse_net = (graph_net(tiny(layout=layout), graphs.n_channels, 2) for layout in ("dense", "sparse"))
    sparse_net.load_state_dict(dense_net.state_dict())
    places = [place for place, n in enumerate(graphs.sizes) if n == 5]
    dense, sparse = (graphs.batch(places, layout)[0] for layout in ("dense", "sparse"))
    said = dense_net(dense)
    torch.testing.assert_close(sparse_net(bn.Sparse.from_dense(dense, keep_zeros=True)), said)
    assert not torch.allclose(sparse_net(sparse), said, atol=1e-3)


def test_the_network_is_the_papers():
    net = graph_net(tiny(channels=(16, 32, 256), hidden=(512, 256)), 8, 2)
    layers = [layer for layer in net.modules() if isinstance(layer, bn.EquivariantLinear)]
    assert [(layer.in_channels, layer.out_channels) for layer in layers] == [(8, 16), (16, 32), (32, 256)]
    assert (net.pool.reduce, net.pool.n_orbits) == ("max", 2)
    connected = [layer for layer in net.head if isinstance(layer, torch.nn.Linear)]
    assert [(layer.in_features, layer.out_features) for layer in connected] == [(512, 512), (512, 256), (256, 2)]


def test_weights_begin_with_variance_two_over_both_numbers_of_channels():
    net = graph_net(tiny(channels=(64, 96), hidden=(300,)), 32, 2)
    layers = [layer for layer in net.modules() if isinstance(layer, bn.EquivariantLinear | torch.nn.Linear)]
    widths = [(32, 64), (64, 96), (192, 300), (300, 2)]
    for layer, (before, after) in zip(layers, widths, strict=True):
        assert float(layer.weight.detach().var()) == pytest.approx(2 / (before + after), rel=0.1)
        assert not layer.bias.any()


@pytest.mark.parametrize("protocol", ["fixed", "nested"])
def test_it_learns_from_training_graphs_and_measures_what_the_protocol_says(data, protocol):
    learner = tiny(data=data, protocol=protocol, held_out=4).learner()
    learned, measured = (
        sorted(index for _, batch in loader.sampler for index in batch)
        for loader in (learner.train_dataloader(), learner.val_dataloader())
    )
    train, test = (set(places) for places in load_set("MUTAG", data).splits[0])
    assert len(learned) == len(set(learned))
    if protocol == "fixed":
        assert set(learned) == train
        assert set(measured) == test
    else:
        assert len(measured) == 6
        assert set(learned) | set(measured) == train
        assert not set(learned) & set(measured)


def test_the_loss_is_summed_and_weights_do_not_decay(data):
    learner = tiny(data=data).learner()
    batch = next(iter(learner.train_dataloader()))
    _, graphs, labels = batch
    learner.begin_epoch()
    chance = torch.log_softmax(learner.net(graphs), 1)
    expected = -sum(chance[number, label] for number, label in enumerate(labels))
    torch.testing.assert_close(learner.training_step(batch, 0), expected)
    optimizer = learner.configure_optimizers()
    assert type(optimizer) is torch.optim.Adam
    assert all(group["weight_decay"] == 0 for group in optimizer.param_groups)


def test_a_fixed_run_counts_the_last_epoch_and_records_the_test_accuracy_of_all(data, tmp_path):
    cell = tiny(data=data, epochs=4)
    (final,) = run_cells([cell], tmp_path, show=False)
    epochs = Records(tmp_path).epochs()[cell.key]
    assert [epoch["learning_rate"] for epoch in epochs] == [0.003, 0.003, 0.0015, 0.0015]
    assert final["accuracy"] == pytest.approx(epochs[-1]["test"], abs=1e-5)
    assert (final["validation"], final["best_epoch"]) == (None, None)
    assert final["graphs"] == {"train": 24, "validation": 0, "test": 6}
    assert (final["nodes"], final["in_channels"]) == (120, 3)
    assert str(data) not in Records(tmp_path).path.read_text()


def test_the_loss_falls_and_cycles_are_told_from_paths(data, tmp_path):
    cells = [tiny(data=data, layout=layout, epochs=15, decay=1.0) for layout in ("dense", "sparse")]
    for final, epochs in zip(run_cells(cells, tmp_path, show=False), Records(tmp_path).epochs().values(), strict=True):
        assert epochs[-1]["loss"] < epochs[0]["loss"] / 2
        assert final["accuracy"] == 1.0


def test_a_nested_run_never_tests_before_the_end_and_counts_the_first_best_epoch(data, tmp_path):
    cell = tiny(data=data, protocol="nested", epochs=6, held_out=4)
    (final,) = run_cells([cell], tmp_path, show=False)
    epochs = Records(tmp_path).epochs()[cell.key]
    assert all("test" not in epoch for epoch in epochs)
    validated = [epoch["validation"] for epoch in epochs]
    assert final["validation"] == max(validated)
    assert final["best_epoch"] == validated.index(max(validated))
    assert final["graphs"] == {"train": 18, "validation": 6, "test": 6}


def test_a_finished_cell_is_not_run_again_wherever_the_data_are(data, tmp_path):
    cell = tiny(data=data, epochs=1)
    first = run_cells([cell], tmp_path, show=False)
    before = Records(tmp_path).path.read_bytes()
    assert run_cells([tiny(epochs=1, data=tmp_path / "nowhere")], tmp_path, show=False) == first
    assert Records(tmp_path).path.read_bytes() == before


@pytest.mark.slow
@pytest.mark.parametrize(("layout", "protocol"), [("dense", "fixed"), ("sparse", "nested")])
def test_a_cell_that_was_killed_goes_on_and_ends_with_the_same_figures(data, tmp_path, layout, protocol):
    cell = tiny(layout=layout, protocol=protocol, epochs=12, held_out=4)
    (whole,) = run_cells([replace(cell, data=data)], tmp_path / "whole", show=False)
    directory = tmp_path / "killed"
    records = Records(directory)
    process, _ = started(run_one, cell, directory, data)
    while len(records.epochs().get(cell.key, ())) < 3:
        assert process.is_alive()
        time.sleep(0.01)
    killed(process)
    assert not records.finished()
    (resumed,) = run_cells([replace(cell, data=data)], directory, show=False)
    numbers = [record["epoch"] for record in records.read() if record["kind"] == "epoch"]
    assert len(numbers) <= 13, "it began from an earlier epoch than the last"
    assert _figures(resumed) == _figures(whole)
    curves = [Records(place).epochs()[cell.key] for place in (tmp_path / "whole", directory)]
    assert _without_time(curves[0]) == _without_time(curves[1])
