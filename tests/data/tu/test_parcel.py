"""Data sets packed for and received from another machine."""

import os
import shutil

import pytest
import torch

from bellnet.data import tu
from bellnet.errors import DataError
from tests.data.tu.small import write_folder, write_zip

SPLITS = '{"folds": [{"train": [0, 1], "test": [2]}]}'


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    """A cache of the machine that receives."""
    monkeypatch.setenv("BELLNET_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def _written(folder, *, zipped):
    """A data set with splits, as a zip or unpacked."""
    if zipped:
        write_zip(folder / "SMALL.zip")
    else:
        write_folder(folder / "SMALL")
    (folder / "splits").mkdir()
    (folder / "splits" / "SMALL.json").write_text(SPLITS)
    return folder


@pytest.mark.parametrize("zipped", [True, False])
def test_a_received_data_set_has_its_splits_and_does_not_need_its_folder(tmp_path, zipped):
    source = _written(tmp_path / "source", zipped=zipped)
    before = tu.load("SMALL", source, cache=False)
    parcel = tu.pack("SMALL", source)
    shutil.rmtree(source)
    after = tu.load("SMALL", tu.receive("SMALL", parcel.digest, lambda: parcel), cache=False)
    assert len(after) == len(before) == 3
    for mine, theirs in zip(after.graphs, before.graphs, strict=True):
        assert torch.equal(mine.edge_index, theirs.edge_index)
        assert torch.equal(mine.node_labels, theirs.node_labels)
        assert torch.equal(mine.edge_features, theirs.edge_features)
    assert torch.equal(after.labels, before.labels)
    assert [[part.tolist() for part in split] for split in after.splits] == [[[0, 1], [2]]]


def test_a_received_data_set_is_not_fetched_again(tmp_path):
    parcel = tu.pack("SMALL", _written(tmp_path / "source", zipped=True))
    folder = tu.receive("SMALL", parcel.digest, lambda: parcel)
    assert tu.receive("SMALL", parcel.digest, lambda: pytest.fail("it was fetched")) == folder


def test_a_data_set_without_splits_is_received_without_splits(tmp_path):
    parcel = tu.pack("SMALL", write_folder(tmp_path / "source"))
    assert parcel.splits is None
    folder = tu.receive("SMALL", parcel.digest, lambda: parcel)
    assert tu.load("SMALL", folder, cache=False).splits is None


def test_the_digest_depends_on_graphs_and_splits_and_not_on_dates(tmp_path):
    first, second = (_written(tmp_path / name, zipped=False) for name in ("first", "second"))
    for file in (second / "SMALL").iterdir():
        os.utime(file, (10**9, 10**9))
    assert tu.pack("SMALL", first).digest == tu.pack("SMALL", second).digest
    (second / "splits" / "SMALL.json").write_text(SPLITS.replace("[2]", "[]"))
    assert tu.pack("SMALL", first).digest != tu.pack("SMALL", second).digest


def test_a_parcel_with_another_digest_is_not_stored(tmp_path, cache):
    sent, other = (tu.pack("SMALL", _written(tmp_path / name, zipped=name == "sent")) for name in ("sent", "other"))
    with pytest.raises(DataError, match="another digest"):
        tu.receive("SMALL", sent.digest, lambda: other)
    assert not list(cache.rglob("*.zip"))
