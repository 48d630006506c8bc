"""The graphs of Table 3: their channels, their splits, their batches."""

import os
from collections import Counter
from pathlib import Path
from statistics import fmean

import pytest
import torch

from bellnet.data import Graph
from bellnet.errors import DataError
from experiments.graph_cells import TRAINING
from experiments.graph_data import encoding_of, equal_batches, load_set, parts_of
from tests.experiments.graphs import COUNT, TINY, tiny, write_set

ROOT = Path(__file__).parents[2]


def real_data():
    """The folder of the real data sets: $BELLNET_DATA, or beside the repository."""
    given = Path(os.environ.get("BELLNET_DATA") or ROOT.parent / "shared" / "data" / "tu")
    return given if (given / "splits").is_dir() else None


@pytest.fixture(scope="module")
def graphs(tmp_path_factory):
    return load_set("MUTAG", write_set(tmp_path_factory.mktemp("data")))


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


def test_both_layouts_hold_the_same_numbers(graphs):
    places = [place for place in range(COUNT) if graphs.sizes[place] == 4]
    dense, labels = graphs.batch(places, "dense")
    sparse, same_labels = graphs.batch(places, "sparse")
    assert dense.shape == (len(places), 4, 4, 3)
    torch.testing.assert_close(sparse.to_dense(), dense)
    assert torch.equal(labels, same_labels)
    # Every cycle of 4 lists 8 edges and 4 nodes, every path 6 and 4.
    assert sparse.nnz == sum(12 if label == 0 else 10 for label in labels.tolist())


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
def test_the_real_sets_have_channels_and_steps_of_the_rate_as_the_authors(name, channels):
    found = load_set(name, real_data())
    assert found.n_channels == channels
    assert len(found.splits) == 10
    # Their rate falls after 4 N steps; an epoch has as many steps as there are batches of graphs of one size.
    epochs = [4 * len(train) / len(equal_batches(found.sizes, train, 5)) for train, _ in found.splits]
    usual = TRAINING[name]
    # Where the rate never falls, it does not matter when.
    assert min(usual.decay_every, usual.epochs) == min(round(fmean(epochs)), usual.epochs)


@pytest.mark.parametrize("seed", [None, 0, 1])
def test_batches_are_of_equal_size_and_hold_every_graph_once(graphs, seed):
    places = list(range(0, COUNT, 2))
    generator = None if seed is None else torch.Generator().manual_seed(seed)
    batches = equal_batches(graphs.sizes, places, 4, generator=generator)
    assert sorted(place for batch in batches for place in batch) == places
    assert all(len({graphs.sizes[place] for place in batch}) == 1 for batch in batches)
    assert Counter(map(len, batches)) == {4: 3, 1: 3}


def test_the_order_depends_on_seed_and_epoch_alone(tmp_path):
    data = write_set(tmp_path)

    def order(seed, epoch):
        learner = tiny(data=data, seed=seed).learner()
        learner.epochs = [{}] * epoch
        return list(learner.train_dataloader().sampler)

    assert order(7, 2) == order(7, 2)
    assert len({str(order(seed, epoch)) for seed, epoch in ((7, 0), (7, 1), (8, 0))}) == 3


def test_the_fixed_protocol_learns_from_the_whole_training_side(graphs):
    parts = parts_of(TINY, graphs)
    assert (parts.train, parts.test) == graphs.splits[0]
    assert parts.validation == ()


def test_the_nested_protocol_keeps_a_part_of_every_class_aside(graphs):
    cell = tiny(protocol="nested", held_out=4)
    parts = parts_of(cell, graphs)
    train, test = graphs.splits[0]
    assert parts.test == test
    assert sorted(parts.train + parts.validation) == sorted(train)
    assert not set(parts.train) & set(parts.validation)
    assert Counter(graphs.labels[list(parts.validation)].tolist()) == {0: 3, 1: 3}
    assert parts_of(cell, graphs) == parts
    assert parts_of(tiny(protocol="nested", held_out=4, seed=1), graphs) != parts


def test_what_a_cell_asks_of_its_data_is_said_where_it_is_missing(graphs, tmp_path):
    with pytest.raises(DataError) as caught:
        parts_of(tiny(split=5), graphs)
    assert str(caught.value) == ("MUTAG: there is no split 5.\nThe published splits are 0 to 4; choose with --split.")
    with pytest.raises(DataError) as caught:
        parts_of(tiny(protocol="nested", held_out=100), graphs)
    assert str(caught.value) == (
        "MUTAG: split 0 has 24 training graphs, too few to keep one of 100 aside.\nUse the protocol 'fixed'."
    )
    with pytest.raises(DataError) as caught:
        load_set("MUTAG", write_set(tmp_path, splits=False))
    assert str(caught.value) == (
        "MUTAG: there are no splits.\nTable 3 is about published splits: put splits/MUTAG.json beside MUTAG.zip, and "
        "name their folder with --data or the environment variable BELLNET_DATA.\n"
        "docs/experiments.md says where they come from, and what such a file holds."
    )
