"""The graphs of Table 3: their splits and their batches."""

from collections import Counter

import pytest
import torch

from bellnet.errors import DataError
from experiments.graph_data import equal_size_batches, load_graphs, parts_of
from tests.experiments.graphs import COUNT, TINY, tiny, write_set


@pytest.fixture(scope="module")
def graphs(tmp_path_factory):
    return load_graphs("MUTAG", write_set(tmp_path_factory.mktemp("data")))


@pytest.mark.parametrize("seed", [None, 0, 1])
def test_batches_are_of_equal_size_and_hold_every_graph_once(graphs, seed):
    places = list(range(0, COUNT, 2))
    generator = None if seed is None else torch.Generator().manual_seed(seed)
    batches = equal_size_batches(graphs.sizes, places, 4, generator=generator)
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
    cell = tiny(protocol="nested", validation_part=4)
    parts = parts_of(cell, graphs)
    train, test = graphs.splits[0]
    assert parts.test == test
    assert sorted(parts.train + parts.validation) == sorted(train)
    assert not set(parts.train) & set(parts.validation)
    assert Counter(graphs.labels[list(parts.validation)].tolist()) == {0: 3, 1: 3}
    assert parts_of(cell, graphs) == parts
    assert parts_of(tiny(protocol="nested", validation_part=4, seed=1), graphs) != parts


def test_what_a_cell_asks_of_its_data_is_said_where_it_is_missing(graphs, tmp_path):
    with pytest.raises(DataError) as caught:
        parts_of(tiny(split=5), graphs)
    assert str(caught.value) == ("MUTAG: there is no split 5.\nThe published splits are 0 to 4; choose with --split.")
    with pytest.raises(DataError) as caught:
        parts_of(tiny(protocol="nested", validation_part=100), graphs)
    assert str(caught.value) == (
        "MUTAG: split 0 has 24 training graphs, too few for a validation set of one in 100.\nUse the protocol 'fixed'."
    )
    with pytest.raises(DataError) as caught:
        load_graphs("MUTAG", write_set(tmp_path, splits=False))
    assert str(caught.value) == (
        "MUTAG: there are no splits.\nTable 3 is about published splits: put splits/MUTAG.json beside MUTAG.zip, and "
        "name their folder with --data or the environment variable BELLNET_DATA.\n"
        "docs/experiments.md explains where they come from, and the format of such a file."
    )
