"""Data sets of the TU layout in zips and folders."""

import json
import os
import zipfile
from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from bellnet.data import Graph, tu
from bellnet.errors import DataError
from tests.data.strategies import graphs
from tests.data.tu.small import FILES, write_folder, write_zip


def check_small(found):
    assert found.labels.tolist() == [1, 0, 1]
    assert found.classes == (-1, 7)
    assert found.targets.tolist() == [[1.5], [2.5], [3.5]]
    assert found.graphs[0] == Graph(
        3,
        [[0, 1, 1, 2], [1, 0, 2, 1]],
        edge_features=[[0.25, 1.0, 0.0], [0.25, 1, 0], [0.5, 0, 1], [0.5, 0, 1]],
        node_features=[[0.5, 1], [1.5, 2], [2.5, 3]],
        node_labels=[5, 6, 5],
    )
    assert found.graphs[1].edge_index.tolist() == [[0], [0]]  # a self-loop
    assert found.graphs[2].node_features.tolist() == [[4.5, 5], [5.5, 6]]
    assert [graph.n for graph in found.graphs] == [3, 1, 2]


SOURCES = {
    "a folder of its own": lambda folder: write_folder(folder / "x"),
    "a folder of folders": lambda folder: write_folder(folder / "SMALL").parent,
    "a folder as PyTorch Geometric keeps it": lambda folder: write_folder(folder / "SMALL" / "raw").parent.parent,
    "a folder of zips": lambda folder: write_zip(folder / "SMALL.zip").parent,
    "a zip": lambda folder: write_zip(folder / "SMALL.zip"),
    "a zip with LZMA": lambda folder: write_zip(folder / "SMALL.zip", compression=zipfile.ZIP_LZMA),
    "a zip by another name": lambda folder: write_zip(folder / "download.zip"),
}


@pytest.mark.parametrize("source", SOURCES)
def test_a_data_set_is_found_by_name(source, tmp_path):
    found = tu.load("SMALL", SOURCES[source](tmp_path))
    check_small(found)
    assert found.name == "SMALL"
    assert found.splits is None
    assert repr(found) == "GraphSet('SMALL', 3 graphs, 2 classes, 1 targets)"


@pytest.mark.parametrize("source", ["a folder of its own", "a zip", "a zip by another name"])
def test_the_only_data_set_of_a_folder_needs_no_name(source, tmp_path):
    check_small(tu.load(data=SOURCES[source](tmp_path)))


@pytest.mark.parametrize("kind", [str, Path])
@pytest.mark.parametrize("source", ["a folder of its own", "a zip", "a zip by another name"])
def test_a_path_may_be_the_first_argument(source, kind, tmp_path):
    check_small(tu.load(kind(SOURCES[source](tmp_path))))


PATHS = {
    "a folder": lambda folder: write_folder(folder / "SMALL"),
    "a folder of PyTorch Geometric": lambda folder: write_folder(folder / "SMALL" / "raw").parent,
    "a zip": lambda folder: write_zip(folder / "SMALL.zip"),
    "a zip without its ending": lambda folder: write_zip(folder / "SMALL.zip").with_suffix(""),
    "a folder with its zip": lambda folder: write_zip(folder / "SMALL" / "SMALL.zip").parent,
}


@pytest.mark.parametrize("source", PATHS)
def test_path_of_a_data_set_loads_it(source, tmp_path):
    write_folder(tmp_path, name="OTHER")
    path = PATHS[source](tmp_path)
    for found in (tu.load(path), tu.load(str(path))):
        check_small(found)
        assert found.name == "SMALL"


@pytest.mark.parametrize("path", [Path("SMALL"), "./SMALL", "SMALL.zip"])
def test_a_path_is_not_downloaded(path, monkeypatch):
    monkeypatch.setattr("bellnet.data.tu.loading.fetch", None)
    with pytest.raises(DataError, match="expected a zip or a folder, but there is no SMALL"):
        tu.load(path)


def test_a_name_that_is_also_a_folder_is_not_downloaded(tmp_path, monkeypatch):
    write_folder(tmp_path / "SMALL")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(DataError, match=r'Write a path with a separator: tu\.load\("\./SMALL"\)'):
        tu.load("SMALL", root=tmp_path / "root")
    check_small(tu.load("./SMALL"))


def test_the_environment_variable_names_a_folder(tmp_path, monkeypatch):
    monkeypatch.setenv("BELLNET_DATA", str(write_zip(tmp_path / "SMALL.zip").parent))
    check_small(tu.load("SMALL"))


def test_edges_may_be_in_any_order_and_occur_twice(tmp_path):
    lines = list(zip(*(FILES[ending].splitlines() for ending in ("A", "edge_labels", "edge_attributes")), strict=True))
    mixed = [*reversed(lines), lines[2]]
    columns = ["\n".join(column) + "\n" for column in zip(*mixed, strict=True)]
    changes = dict(zip(("A", "edge_labels", "edge_attributes"), columns, strict=True))
    check_small(tu.load(data=write_folder(tmp_path, **changes)))


@pytest.mark.parametrize("end", ["\r\n", "\n\n\n", " \n"])
def test_white_space_at_the_end_of_a_file_is_ignored(tmp_path, end):
    changes = {name: text.replace("\n", "\r\n" if "\r" in end else "\n").rstrip() + end for name, text in FILES.items()}
    check_small(tu.load(data=write_folder(tmp_path, **changes)))


def test_a_file_may_end_without_a_newline(tmp_path):
    check_small(tu.load(data=write_folder(tmp_path, **{name: text.rstrip() for name, text in FILES.items()})))


def test_several_labels_of_a_node_become_features(tmp_path):
    changes = {"node_labels": "1, 1\n2, 1\n1, 3\n1, 1\n1, 1\n1, 1\n", "node_attributes": None}
    found = tu.load(data=write_folder(tmp_path, **changes)).graphs[0]
    assert found.node_labels is None
    assert found.node_features.tolist() == [[1, 0, 1, 0], [0, 1, 1, 0], [1, 0, 0, 1]]


def test_edges_that_are_not_symmetric_are_directed(tmp_path):
    bare = {"edge_labels": None, "edge_attributes": None}
    found = tu.load(data=write_folder(tmp_path / "a", A="1, 2\n4, 4\n5, 6\n", **bare))
    assert all(graph.directed for graph in found.graphs)
    assert found.graphs[0].edge_index.tolist() == [[0], [1]]
    differing = tu.load(data=write_folder(tmp_path / "b", edge_labels="1\n2\n2\n2\n1\n2\n2\n"))
    assert all(graph.directed for graph in differing.graphs)
    assert not any(graph.directed for graph in tu.load(data=write_folder(tmp_path / "c")).graphs)


def test_a_data_set_may_have_targets_only(tmp_path):
    found = tu.load(data=write_folder(tmp_path, graph_labels=None))
    assert found.labels is None
    assert found.targets.tolist() == [[1.5], [2.5], [3.5]]


def test_a_data_set_may_have_no_edges(tmp_path):
    found = tu.load(data=write_folder(tmp_path, A="", edge_labels=None, edge_attributes=None))
    assert [graph.n_edges for graph in found.graphs] == [0, 0, 0]


@given(st.lists(graphs(edge_features=0, directed=False).filter(lambda graph: graph.n > 0), min_size=1, max_size=4))
def test_a_written_data_set_is_read_as_the_same_graphs(tmp_path_factory, members):
    starts = [sum(graph.n for graph in members[:index]) for index in range(len(members))]
    labelled = all(graph.node_labels is not None for graph in members)
    numbered = [graph.edge_index.T + start + 1 for graph, start in zip(members, starts, strict=True)]
    pairs = [edge for edges in numbered for edge in edges.tolist()]
    files = {
        "A": "".join(f"{a}, {b}\n" for a, b in pairs),
        "graph_indicator": "".join(f"{number}\n" * graph.n for number, graph in enumerate(members, 1)),
        "graph_labels": "".join(f"{number}\n" for number in range(len(members))),
    }
    if labelled:
        files["node_labels"] = "".join(f"{label}\n" for graph in members for label in graph.node_labels.tolist())
    found = tu.load(data=write_folder(tmp_path_factory.mktemp("set"), files=files), cache=False)
    assert found.graphs == [
        Graph(graph.n, graph.edge_index, node_labels=graph.node_labels if labelled else None) for graph in members
    ]


def test_splits_beside_a_zip_are_read(tmp_path):
    write_zip(tmp_path / "SMALL.zip")
    (tmp_path / "splits").mkdir()
    stored = {"source": "here", "folds": [{"train": [0, 2], "test": [1]}, {"train": [1, 0], "test": [2]}]}
    (tmp_path / "splits" / "SMALL.json").write_text(json.dumps(stored))
    found = tu.load("SMALL", tmp_path)
    assert [(train.tolist(), test.tolist()) for train, test in found.splits] == [([0, 2], [1]), ([1, 0], [2])]
    graphs, labels = found.part(found.splits[0][0])
    assert graphs == [found.graphs[0], found.graphs[2]]
    assert labels.tolist() == [1, 1]
    assert len(found) == 3


def test_splits_beside_an_unpacked_folder_are_read(tmp_path):
    write_folder(tmp_path / "SMALL")
    (tmp_path / "splits").mkdir()
    (tmp_path / "splits" / "SMALL.json").write_text('{"folds": [{"train": [0, 2], "test": [1]}]}')
    assert len(tu.load("SMALL", tmp_path).splits) == 1


@pytest.mark.skipif(os.name != "posix", reason="names of files are bytes there")
def test_the_name_of_a_data_set_may_not_be_utf_8(tmp_path):
    source = write_folder(tmp_path / "folder", name=os.fsdecode(b"caf\xe9"))
    assert [len(tu.load(data=source)) for _ in range(2)] == [3, 3]


def test_labels_are_numbered_in_the_order_of_their_values():
    from bellnet.data.graph import number_classes

    labels, classes = number_classes([3, -2, 10, 3])
    assert (labels.tolist(), classes) == ([1, 0, 2, 1], (-2, 3, 10))
    assert labels.dtype == torch.int64


def test_attributes_beyond_float32_are_read_as_float64(tmp_path):
    attributes = "0.5, 1\n1.5, -1e300\n2.5, 3\n3.5, 4\n4.5, 5\n5.5, 6\n"
    changes = {"node_attributes": attributes, "edge_attributes": "1e39\n1e39\n0.5\n0.5\n1\n2\n2\n"}
    found = tu.load(data=write_folder(tmp_path / "SMALL", **changes))
    assert found.graphs[0].node_features.tolist() == [[0.5, 1], [1.5, -1e300], [2.5, 3]]
    assert found.graphs[0].edge_features[:, 0].tolist() == [1e39, 1e39, 0.5, 0.5]
    assert found.graphs[2].node_features.dtype == torch.float32
