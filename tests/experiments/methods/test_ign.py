"""The paper's network for graphs: its channels, its layers, and what is trained and measured."""

import os
from pathlib import Path
from statistics import fmean

import pytest
import torch

import bellnet as bn
from bellnet.data import Graph
from bellnet.testing import permute_nodes
from experiments.graph_data import equal_size_batches, load_graphs
from experiments.methods.ign import TRAINING, encode, encoding_of, ign_net
from experiments.records import Records
from experiments.run import run_cells
from tests.experiments.graphs import COUNT, OPTIONS, tiny, write_set

ROOT = Path(__file__).parents[3]


def real_data():
    """The folder of the real data sets: $BELLNET_DATA, or beside the repository."""
    given = Path(os.environ.get("BELLNET_DATA") or ROOT.parent / "shared" / "data" / "tu")
    return given if (given / "splits").is_dir() else None


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    return write_set(tmp_path_factory.mktemp("data"))


@pytest.fixture(scope="module")
def graphs(data):
    return load_graphs("MUTAG", data)


def net(in_channels=3, n_classes=2, **changes):
    """A tiny network."""
    torch.manual_seed(0)
    return ign_net(OPTIONS | changes, in_channels, n_classes)


def test_a_path_of_three_nodes_is_encoded_as_by_hand():
    path = Graph(3, [[0, 1, 1, 2], [1, 0, 2, 1]], node_labels=torch.tensor([5, 8, 5]))
    found = encoding_of([path]).encode([path]).values[0]
    half = 2**-0.5  # one over the root of the degrees, 1 and 2
    adjacency = [[0, half, 0], [half, 0, half], [0, half, 0]]
    fives = [[1, half, 0], [half, 0, half], [0, half, 1]]
    eights = [[0, half, 0], [half, 1, half], [0, half, 0]]
    torch.testing.assert_close(found, torch.tensor([adjacency, fives, eights]).permute(1, 2, 0))


def test_graphs_without_labels_have_the_adjacency_alone():
    edge = Graph(2, [[0, 1], [1, 0]])
    assert encoding_of([edge]).names == ("normalized adjacency",)


def _of_size(graphs, size):
    return [index for index, n in enumerate(graphs.sizes) if n == size]


def test_both_layouts_hold_the_same_numbers(graphs):
    indices = [index for index in range(COUNT) if graphs.sizes[index] == 4]
    dense, sparse = (encode(graphs).batch(indices, layout) for layout in ("dense", "sparse"))
    assert dense.shape == (len(indices), 4, 4, 3)
    torch.testing.assert_close(sparse.to_dense(), dense)
    # Every cycle of 4 stores 8 edges and 4 nodes, every path 6 and 4.
    assert sparse.nnz == sum(12 if label == 0 else 10 for label in graphs.labels[indices].tolist())


@pytest.mark.skipif(real_data() is None, reason="the data sets are neither in $BELLNET_DATA nor beside the repository")
@pytest.mark.parametrize(
    ("name", "channels"),
    [
        ("MUTAG", 8),
        ("PTC_MR", 20),  # the 19 labels that occur; the authors' code has 22 columns for them, 3 always zero
        ("PROTEINS", 4),
        ("IMDB-BINARY", 1),
        ("IMDB-MULTI", 1),
        pytest.param("NCI1", 38, marks=pytest.mark.slow),
        pytest.param("NCI109", 39, marks=pytest.mark.slow),
    ],
)
def test_the_real_sets_have_channels_and_decay_steps_as_the_authors(name, channels):
    found = load_graphs(name, real_data())
    assert encode(found).n_channels == channels
    assert len(found.splits) == 10
    # Their rate decays after 4 N steps; an epoch has as many steps as there are batches of graphs of one size.
    epochs = [4 * len(train) / len(equal_size_batches(found.sizes, train, 5)) for train, _ in found.splits]
    usual = TRAINING[name]
    # Where the rate never decays, the step is irrelevant.
    assert min(usual["decay_every"], usual["epochs"]) == min(round(fmean(epochs)), usual["epochs"])


@pytest.mark.parametrize("layout", ["dense", "sparse"])
def test_the_network_is_invariant_under_permutations(graphs, layout):
    found = net(layout=layout).double()
    dense = encode(graphs).batch(_of_size(graphs, 5), "dense").double()
    permuted = permute_nodes(dense, "n n", [3, 0, 4, 1, 2])
    assert not torch.equal(dense, permuted)
    if layout == "sparse":
        dense, permuted = bn.Sparse.from_dense(dense), bn.Sparse.from_dense(permuted)
    torch.testing.assert_close(found(dense), found(permuted))


def test_sparse_is_dense_where_all_pairs_are_stored_and_another_function_otherwise(graphs):
    dense_net, sparse_net = net(layout="dense"), net(layout="sparse")
    sparse_net.load_state_dict(dense_net.state_dict())
    dense, sparse = (encode(graphs).batch(_of_size(graphs, 5), layout) for layout in ("dense", "sparse"))
    expected = dense_net(dense)
    torch.testing.assert_close(sparse_net(bn.Sparse.from_dense(dense, keep_zeros=True)), expected)
    assert not torch.allclose(sparse_net(sparse), expected, atol=1e-3)


def test_the_network_is_the_papers():
    found = net(8, channels=(16, 32, 256), hidden=(512, 256))
    layers = [layer for layer in found.modules() if isinstance(layer, bn.EquivariantLinear)]
    assert [(layer.in_channels, layer.out_channels) for layer in layers] == [(8, 16), (16, 32), (32, 256)]
    assert (found.pool.reduce, found.pool.n_orbits) == ("max", 2)
    connected = [layer for layer in found.head if isinstance(layer, torch.nn.Linear)]
    assert [(layer.in_features, layer.out_features) for layer in connected] == [(512, 512), (512, 256), (256, 2)]


def test_initial_weights_have_variance_two_over_the_sum_of_the_channels():
    found = net(32, channels=(64, 96), hidden=(300,))
    layers = [layer for layer in found.modules() if isinstance(layer, bn.EquivariantLinear | torch.nn.Linear)]
    widths = [(32, 64), (64, 96), (192, 300), (300, 2)]
    for layer, (before, after) in zip(layers, widths, strict=True):
        assert float(layer.weight.detach().var()) == pytest.approx(2 / (before + after), rel=0.1)
        assert not layer.bias.any()


@pytest.mark.parametrize("protocol", ["fixed", "nested"])
def test_the_protocol_determines_what_is_trained_on_and_measured(data, graphs, protocol):
    learner = tiny(data=data, protocol=protocol, validation_part=4).learner()
    parts = {}
    for loader in (learner.train_dataloader(), learner.val_dataloader()):
        for part, indices in loader.sampler:
            parts.setdefault(part, []).extend(indices)
    train, test = (set(indices) for indices in graphs.splits[0])
    assert all(len(indices) == len(set(indices)) for indices in parts.values())
    assert set(parts.pop("test")) == test
    assert set().union(*parts.values()) == train
    assert list(map(len, parts.values())) == ([24] if protocol == "fixed" else [18, 6])


def test_the_loss_is_summed_and_weights_do_not_decay(data):
    learner = tiny(data=data).learner()
    batch = next(iter(learner.train_dataloader()))
    _, inputs, labels = batch
    learner.begin_epoch()
    chance = torch.log_softmax(learner.net(inputs), 1)
    expected = -sum(chance[number, label] for number, label in enumerate(labels))
    torch.testing.assert_close(learner.training_step(batch, 0), expected)
    optimizer = learner.configure_optimizers()
    assert type(optimizer) is torch.optim.Adam
    assert all(group["weight_decay"] == 0 for group in optimizer.param_groups)


def test_a_fixed_run_counts_the_last_epoch(data, tmp_path):
    cell = tiny(data=data, epochs=4)
    (final,) = run_cells([cell], tmp_path, show=False)
    curves = final["curves"]
    assert curves["learning_rate"] == [0.003, 0.003, 0.0015, 0.0015]
    assert final["accuracy"] == pytest.approx(curves["test"][-1], abs=1e-5)
    assert (final["validation"], final["best_epoch"]) == (None, None)
    assert final["graphs"] == {"train": 24, "validation": 0, "test": 6}
    assert str(data) not in Records(tmp_path).path.read_text()


def test_a_nested_run_counts_the_first_epoch_of_the_highest_validation_accuracy(data, tmp_path):
    cell = tiny(data=data, protocol="nested", epochs=8, validation_part=4, learning_rate=0.01)
    (final,) = run_cells([cell], tmp_path, show=False)
    accuracies, best = final["curves"]["validation"], final["best_epoch"]
    assert final["validation"] == max(accuracies)
    assert best == accuracies.index(max(accuracies)) < 7
    assert final["accuracy"] == pytest.approx(final["curves"]["test"][best], abs=1e-5)
    assert final["graphs"] == {"train": 18, "validation": 6, "test": 6}


def test_the_loss_falls_and_cycles_are_distinguished_from_paths(data, tmp_path):
    cells = [tiny(data=data, layout=layout, epochs=15, decay=1.0) for layout in ("dense", "sparse")]
    for final in run_cells(cells, tmp_path, show=False):
        assert final["curves"]["loss"][-1] < final["curves"]["loss"][0] / 2
        assert final["accuracy"] == 1.0


def test_a_finished_cell_is_not_run_again_wherever_the_data_are(data, tmp_path):
    cell = tiny(data=data, epochs=1)
    first = run_cells([cell], tmp_path, show=False)
    before = Records(tmp_path).path.read_bytes()
    assert run_cells([tiny(epochs=1, data=tmp_path / "nowhere")], tmp_path, show=False) == first
    assert Records(tmp_path).path.read_bytes() == before
