"""A folder of GraphML files with a table of labels."""

import os

import networkx as nx
import pytest

from bellnet.data import as_graph, graphml
from bellnet.errors import DataError


@pytest.fixture
def folder(tmp_path):
    place = tmp_path / "molecules"
    place.mkdir()
    for name, n in (("b", 4), ("a", 3), ("c", 5)):
        graph = nx.path_graph(n) if name != "c" else nx.path_graph(n, create_using=nx.DiGraph)
        nx.set_node_attributes(graph, {node: "CNO"[node % 3] for node in graph}, "element")
        nx.set_node_attributes(graph, {node: 0.5 * node for node in graph}, "charge")
        nx.set_edge_attributes(graph, 2, "weight")
        nx.write_graphml(graph, place / f"{name}.graphml")
    return place


def test_files_come_sorted_by_name_and_with_their_labels(folder):
    (folder / "labels.csv").write_text("label,note,file\ngood,x,c.graphml\nbad,y,a.graphml\n good ,z,b.graphml\n")
    found = graphml.load(folder)
    assert found.name == "molecules"
    assert found.files == ("a.graphml", "b.graphml", "c.graphml")
    assert [graph.n for graph in found.graphs] == [3, 4, 5]
    assert found.classes == ("bad", "good")
    assert found.labels.tolist() == [0, 1, 1]
    assert found.targets is None
    assert [graph.directed for graph in found.graphs] == [False, False, True]
    assert repr(found) == "GraphMLSet('molecules', 3 graphs, 2 classes)"


def test_labels_that_are_numbers_are_targets_too(folder):
    (folder / "labels.csv").write_text("file,label\na.graphml,10\nb.graphml,2\nc.graphml,10\n", encoding="utf-8-sig")
    found = graphml.load(folder)
    assert found.classes == (2, 10)
    assert found.labels.tolist() == [1, 0, 1]
    assert found.targets.tolist() == [[10.0], [2.0], [10.0]]
    (folder / "other.csv").write_text("file,label\na.graphml,1.5\nb.graphml,2\nc.graphml,3\n")
    assert graphml.load(folder, folder / "other.csv").targets.tolist() == [[1.5], [2.0], [3.0]]


def test_without_a_table_there_are_graphs_without_labels(folder):
    found = graphml.load(folder)
    assert found.labels is None
    assert len(found) == 3


def test_attributes_are_taken_by_name(folder):
    found = graphml.load(folder, node="charge", label="element").graphs
    assert found[1].node_features.tolist() == [[0.0], [0.5], [1.0], [1.5]]
    assert found[1].edge_features.tolist() == [[2.0]] * 6
    assert found[0].node_labels.tolist() == found[1].node_labels[:3].tolist()
    assert len(set(found[1].node_labels.tolist())) == 3
    assert found[1] == as_graph(nx.read_graphml(folder / "b.graphml"), node="charge", label="element")


@pytest.mark.skipif(os.name != "posix", reason="names of files are bytes there")
def test_a_name_of_a_file_may_be_no_utf_8_but_a_label_may_not(tmp_path):
    name = b"caf\xe9.graphml"
    nx.write_graphml(nx.path_graph(2), tmp_path / os.fsdecode(name))
    (tmp_path / "labels.csv").write_bytes(b"file,label\n" + name + b",1\n")
    found = graphml.load(tmp_path)
    assert [os.fsencode(file) for file in found.files] == [name]
    assert found.classes == (1,)
    (tmp_path / "labels.csv").write_bytes(b"file,label\n" + name + b",gr\xfcn\n")
    with pytest.raises(DataError, match=r"labels.csv cannot be read: 'utf-8' codec can't decode byte"):
        graphml.load(tmp_path)
