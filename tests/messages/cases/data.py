"""Mistakes in objects and files that `bellnet.data` reads."""

import os
import zipfile
from contextlib import chdir
from pathlib import Path
from unittest.mock import patch

import networkx as nx
import numpy as np
import scipy.sparse as sp
import torch

from bellnet import Padded
from bellnet.data import (
    Encoding,
    Graph,
    GraphSet,
    Loader,
    as_graph,
    as_graphs,
    at_edges,
    from_tables,
    graphml,
    in_order,
    problems,
    sparse_inputs,
    to_scipy,
    tu,
    undirected,
)
from bellnet.data.graph import Columns
from tests.data.tu.small import claim, write_folder, write_zip

PATH = undirected(3, [(0, 1), (1, 2)])
EDGES = [[0, 1], [1, 0]]
NAN = float("nan")
BARE = {"edge_labels": None, "edge_attributes": None}


def _nx(*, kind=nx.Graph, edges=((0, 1, {}),), **nodes):
    graph = kind()
    graph.add_nodes_from((int(name[1:]), data) for name, data in nodes.items())
    graph.add_edges_from(edges)
    return graph


def _pyg(**attributes):
    from torch_geometric.data import Data

    return Data(**{"edge_index": torch.tensor(EDGES), "num_nodes": 2, **attributes})


def _temporal():
    from torch_geometric.data import TemporalData

    return TemporalData(src=torch.tensor([0]), dst=torch.tensor([1]), t=torch.tensor([0]))


def _batch():
    from torch_geometric.data import Batch

    return Batch.from_data_list([_pyg(), _pyg()])


OBJECTS = {
    "half a node": lambda: Graph(2.5, EDGES),
    "less than no nodes": lambda: Graph(-1, EDGES),
    "a string for edges": lambda: Graph(2, "edges"),
    "edges in rows": lambda: Graph(4, torch.zeros(3, 2, dtype=torch.int64)),
    "edges along one axis": lambda: Graph(4, torch.zeros(3, dtype=torch.int64)),
    "edges with fractions": lambda: Graph(2, torch.zeros(2, 2)),
    "an edge out of range": lambda: Graph(2, [[0, 1, 2], [1, 0, 0]]),
    "an edge below zero": lambda: Graph(2, [[0, -1], [1, 0]]),
    "an edge without nodes": lambda: Graph(0, EDGES),
    "an edge twice": lambda: Graph(2, [[0, 0], [1, 1]], directed=True),
    "one direction only": lambda: Graph(3, [[0, 1, 1], [1, 0, 2]]),
    "directions that differ": lambda: Graph(2, EDGES, [[1.0], [2.0]]),
    "too few labels": lambda: Graph(2, EDGES, node_labels=[1]),
    "labels with fractions": lambda: Graph(2, EDGES, node_labels=torch.tensor([0.5, 1])),
    "features in one row": lambda: Graph(2, EDGES, node_features=torch.ones(2)),
    "too many features": lambda: Graph(2, EDGES, edge_features=torch.ones(3, 1)),
    "integer features": lambda: Graph(2, EDGES, node_features=torch.ones(2, 1, dtype=torch.int64)),
    "features that are NaN": lambda: Graph(2, EDGES, node_features=[[0.0, 1.0], [2.0, NAN]]),
    "infinite features": lambda: Graph(2, EDGES, edge_features=[[1.0], [float("inf")]]),
    "no graph at all": lambda: as_graph(None),
    "a nested list": lambda: as_graph([[0, 1], [1, 0]]),
    "names for an array": lambda: as_graph(np.zeros((2, 2)), node_attrs="x", node_labels="y"),
    "a number for a list": lambda: as_graphs(3),
    "one graph for a list": lambda: as_graphs(PATH),
    "one networkx graph for a list": lambda: as_graphs(_nx()),
    "one matrix for a list": lambda: as_graphs(torch.zeros(2, 2)),
    "a bad graph in a list": lambda: as_graphs([PATH, np.zeros((2, 3))]),
    "a matrix that is not square": lambda: as_graph(np.zeros((2, 3))),
    "many matrices": lambda: as_graph(np.zeros((2, 3, 3, 1))),
    "complex numbers": lambda: as_graph(np.zeros((2, 2), complex)),
    "text in an array": lambda: as_graph(np.array([["a", "b"], ["c", "d"]])),
    "a matrix with NaN": lambda: as_graph(np.array([[0, NAN], [1, 0]])),
    "a sparse matrix that is not square": lambda: as_graph(sp.csr_array((2, 3))),
    "a sparse matrix of complex numbers": lambda: as_graph(sp.csr_array(np.array([[0, 1j], [0, 0]]))),
    "two features for a sparse matrix": lambda: to_scipy(Graph(2, EDGES, torch.ones(2, 2))),
    "parallel edges": lambda: as_graph(nx.MultiGraph([(0, 1), (0, 1)])),
    "an edge without a weight": lambda: as_graph(_nx(edges=[(0, 1, {"weight": 2}), (1, 2, {"colour": 1})])),
    "a node without a feature": lambda: as_graph(_nx(_0={"x": 1}, _1={}), node_attrs="x"),
    "a feature that is misspelled": lambda: as_graph(_nx(_0={"weight": 1, "colour": 2}), node_attrs="wieght"),
    "a node without a label": lambda: as_graph(_nx(_0={"label": 1}, _1={})),
    "a label that is a fraction": lambda: as_graph(_nx(_0={"label": 1}, _1={"label": 1.5})),
    "a label beyond 64 bits": lambda: as_graph(_nx(_0={"label": 1}, _1={"label": 2**63})),
    "a feature that is text": lambda: as_graph(_nx(_0={"x": 1}, _1={"x": "red"}), node_attrs="x"),
    "a feature beyond float64": lambda: as_graph(_nx(_0={"x": 1}, _1={"x": [1, 10**5000]}), node_attrs="x"),
    "features of different width": lambda: as_graph(_nx(_0={"x": [1, 2]}, _1={"x": [1]}), node_attrs="x"),
    "a batch for a graph": lambda: as_graph(_batch()),
    "a graph in time": lambda: as_graph(_temporal()),
    "no edge_index": lambda: as_graph(_pyg(edge_index=None)),
    "a missing attribute": lambda: as_graph(_pyg(x=torch.ones(2, 1)), node_attrs="z"),
    "a missing attribute for labels": lambda: as_graph(_pyg(), node_labels="z"),
    "a string for an attribute": lambda: as_graph(_pyg(z="text"), edge_attrs="z"),
    "a string for labels": lambda: as_graph(_pyg(z="text"), node_labels="z"),
    "attributes of different length": lambda: as_graph(_pyg(x=torch.ones(2), z=torch.ones(3)), node_attrs=["x", "z"]),
    "labels of different length": lambda: as_graph(
        _pyg(a=torch.ones(2).long(), b=torch.ones(3).long()), node_labels=["a", "b"]
    ),
    "too few labels of edges": lambda: Graph(2, EDGES, edge_labels=[1]),
    "too many rows of labels": lambda: Graph(2, EDGES, node_labels=torch.zeros(3, 2).long()),
    "labels that differ by direction": lambda: Graph(2, EDGES, edge_labels=[1, 2]),
    "an edge without a label": lambda: as_graph(_nx(edges=[(0, 1, {"bond": "a"}), (1, 2, {})]), edge_labels="bond"),
    "an edge whose feature is text": lambda: as_graph(_nx(edges=[(0, 1, {"bond": "a"})]), edge_attrs="bond"),
    "an adjacency of another name": lambda: Encoding(adjacency="laplacian"),
    "another treatment of unknown labels": lambda: Encoding(unknown="ignore"),
    "less than no features": lambda: Encoding(edge_features=-1),
    "half a feature": lambda: Encoding(node_features=0.5),
    "labels of an encoding in a list": lambda: Encoding(node_labels=[1]),
    "labels of an encoding that are not sorted": lambda: Encoding(node_labels=(2, 1)),
    "edge labels of an encoding in a list": lambda: Encoding(edge_labels=[1]),
    "a column of an encoding without labels": lambda: Encoding(node_labels=((1,), ())),
    "a string for columns": lambda: Encoding(columns="charge"),
    "texts of integers": lambda: Encoding(columns=Columns(texts=((1, 2),))),
    "a name for two features": lambda: Encoding(node_features=2, columns=Columns(node_attrs=("charge",))),
    "a number for yes or no": lambda: Encoding(adjacency_in_labels=1),
    "degrees without deviation": lambda: Encoding(degrees=(1.0, 0)),
    "degrees of another kind": lambda: Encoding(degrees=True),
    "a single knot": lambda: Encoding(degree_bins=(3,)),
    "room for a single knot": lambda: Encoding.fit([PATH], degree_bins=1),
    "nothing to fit": lambda: Encoding.fit([]),
    "nothing to encode": lambda: Encoding().encode([]),
    "a feature beyond float32": lambda: Encoding(node_features=1).encode(
        [Graph(2, EDGES, node_features=torch.tensor([[1.0], [1e39]], dtype=torch.float64))]
    ),
    "an unknown layout": lambda: Encoding().encode([PATH], layout="flat"),
    "an unknown option of node channels": lambda: Encoding().encode([PATH], node_channels="tensor"),
    "separate node channels without any": lambda: Encoding().encode([PATH], node_channels="separate"),
    "an adjacency in labels with separate node channels": lambda: Encoding(
        node_labels=(1,), adjacency_in_labels=True, unknown="zero"
    ).encode([PATH], node_channels="separate"),
    "a fit to different widths": lambda: Encoding.fit(
        [Graph(2, EDGES, node_features=torch.ones(2, 3)), Graph(2, EDGES, node_features=torch.ones(2, 1))]
    ),
    "a fit to features here and there": lambda: Encoding.fit([Graph(2, EDGES, torch.ones(2, 2)), PATH]),
    "a fit to different columns of labels": lambda: Encoding.fit(
        [Graph(2, EDGES, node_labels=[1, 2]), Graph(2, EDGES, node_labels=[[1, 2], [1, 2]])]
    ),
    "one column of labels where the fit had two": lambda: Encoding(node_labels=((1,), (2,))).encode(
        [Graph(2, EDGES, node_labels=[1, 2])]
    ),
    "no labels of edges where the fit had some": lambda: Encoding(edge_labels=(1, 2)).encode([PATH]),
    "a label of an edge that the fit had not": lambda: Encoding.fit(
        [_nx(edges=[(0, 1, {"bond": "double"})])], unknown="error"
    ).encode([_nx(edges=[(0, 1, {"bond": "triple"})])]),
    "no attribute that the fit used": lambda: Encoding(node_features=1, columns=Columns(node_attrs=("charge",))).encode(
        [as_graph(_nx(_0={"mass": 1.0}, _1={"mass": 2.0}))]
    ),
    "other edge features than in the fit": lambda: Encoding(edge_features=2).encode([PATH]),
    "other node features than in the fit": lambda: Encoding(node_features=2).encode([PATH]),
    "no labels where the fit had some": lambda: Encoding(node_labels=(1, 2)).encode([PATH]),
    "a label that the fit had not": lambda: Encoding(node_labels=(1, 2), unknown="error").encode(
        [Graph(2, EDGES, node_labels=[1, 3])]
    ),
    "an encoding that is not JSON": lambda: Encoding.from_json("{"),
    "an encoding of brackets": lambda: Encoding.from_json("[" * 100_000),
    "an encoding of something else": lambda: Encoding.from_json('{"format": "recipe"}'),
    "an encoding of another version": lambda: Encoding.from_json('{"format": "bellnet encoding", "version": 9}'),
    "an encoding without a version": lambda: Encoding.from_json('{"format": "bellnet encoding"}'),
    "an encoding with other fields": lambda: Encoding.from_json('{"format": "bellnet encoding", "version": 1}'),
    "an encoding with other columns": lambda: Encoding.from_json(
        Encoding().to_json().replace('"texts": []', '"text": []')
    ),
    "names for a loader that has an encoding": lambda: Loader(
        [PATH], batch_size=1, encoding=Encoding(), node_attrs="x"
    ),
    "names for problems with an encoding": lambda: problems([PATH], encoding=Encoding(), node_labels="x"),
    "a graph that contradicts itself": lambda: as_graph(_pyg(edge_index=["a"])),
    "a loader without graphs": lambda: Loader([], batch_size=2),
    "too few labels for a loader": lambda: Loader([PATH, PATH], [1], batch_size=2),
    "half a batch": lambda: Loader([PATH], batch_size=0.5),
    "no entries": lambda: Loader([PATH], batch_size=1, max_entries=0),
    "a padding of more than all": lambda: Loader([PATH], batch_size=1, max_padding=2),
    "an unknown layout of a loader": lambda: Loader([PATH], batch_size=1, layout="flat"),
    "an unknown option of node channels of a loader": lambda: Loader([PATH], batch_size=1, node_channels=["separate"]),
    "edges of other graphs": lambda: at_edges(Padded(torch.zeros(1, 2, 2, 1), [2]), [PATH]),
    "results for other graphs": lambda: in_order([([1, 2], torch.tensor([0]))]),
    "a batch that is missing": lambda: in_order([([1], torch.tensor([1]))]),
    "a set with too few labels": lambda: GraphSet("MINE", [PATH, PATH], torch.tensor([0])),
    "edges in lists": lambda: sparse_inputs.from_edge_index(EDGES),
    "edges of three nodes": lambda: sparse_inputs.from_edge_index(torch.zeros(3, 4, dtype=torch.int64)),
    "the largest of equal edges": lambda: sparse_inputs.from_edge_index(torch.tensor(EDGES), duplicates="max"),
    "an edge between the graphs of a batch": lambda: sparse_inputs.from_edge_index(
        torch.tensor(EDGES), batch=torch.tensor([0, 1])
    ),
    "graphs that do not ascend": lambda: sparse_inputs.from_edge_index(torch.tensor(EDGES), batch=torch.tensor([1, 0])),
    "a dense tensor as a sparse one": lambda: sparse_inputs.from_torch(torch.zeros(2, 2)),
    "a sparse tensor of two lengths": lambda: sparse_inputs.from_torch(torch.zeros(2, 3).to_sparse_coo()),
    "hyperedges of several lengths": lambda: sparse_inputs.from_hyperedges([(0, 1), (0, 1, 2)], n_nodes=3),
    "a node twice in a hyperedge of any size": lambda: sparse_inputs.from_incidence([(0, 1), (2, 2)], n_nodes=3),
    "no hyperedges": lambda: sparse_inputs.from_hyperedges([], n_nodes=3),
    "a hyperedge with a node twice": lambda: sparse_inputs.from_hyperedges([(0, 1, 2), (0, 0, 2)], n_nodes=3),
    "a hyperedge in two orders": lambda: sparse_inputs.from_hyperedges([(0, 1, 2), (2, 0, 1)], n_nodes=3),
    "no graph of PyTorch Geometric": lambda: sparse_inputs.from_pyg(None),
    "graphs that are floats": lambda: sparse_inputs.from_edge_index(torch.tensor(EDGES), batch=torch.zeros(2)),
    "graphs of other nodes": lambda: sparse_inputs.from_edge_index(torch.tensor(EDGES), batch=torch.tensor([0])),
    "graphs of another number of nodes": lambda: sparse_inputs.from_edge_index(
        torch.tensor(EDGES), n_nodes=3, batch=torch.tensor([0, 0])
    ),
    "values of edges in a list": lambda: sparse_inputs.from_edge_index(torch.tensor(EDGES), [1.0, 2.0]),
    "a list as a sparse tensor": lambda: sparse_inputs.from_torch([[1.0]]),
    "hyperedges with values for others": lambda: sparse_inputs.from_hyperedges([(0, 1)], torch.ones(3), n_nodes=3),
    "hyperedges of fractions": lambda: sparse_inputs.from_hyperedges([(0.5, 1.0)], n_nodes=3),
    "more users than items": lambda: sparse_inputs.from_ratings([0, 1], [0], [5.0]),
    "node features of other nodes": lambda: sparse_inputs.from_pyg(_data_with_features_of_other_nodes()),
}


ROWS = {"graph": [1, 1], "source": ["a", "b"], "target": ["b", "c"], "kind": ["x", "y"]}
NODES = {"graph": [1, 1, 1], "node": ["a", "b", "c"], "mass": [1.0, 2.0, 3.0]}


OBJECTS |= {
    "a table without columns": lambda: from_tables([(0, 1)]),
    "columns of different length": lambda: from_tables({"graph": [1], "source": [1, 2]}),
    "a missing column": lambda: from_tables({"from": [1], "to": [2]}, graph=None),
    "NaN for a node": lambda: from_tables({**ROWS, "source": ["a", NAN]}),
    "a list for a node": lambda: from_tables({**ROWS, "source": ["a", ["b"]]}),
    "an edge in two rows": lambda: from_tables({**ROWS, "source": ["a", "a"], "target": ["b", "b"]}),
    "two directions that differ": lambda: from_tables({**ROWS, "source": ["a", "b"], "target": ["b", "a"]}),
    "a graph in two rows": lambda: from_tables(ROWS, NODES, {"graph": [1, 1]}),
    "an edge of an unknown graph": lambda: from_tables({**ROWS, "graph": [1, 2]}, NODES),
    "a node in two rows": lambda: from_tables(ROWS, {**NODES, "node": ["a", "b", "b"]}),
    "an edge of an unknown node": lambda: from_tables(ROWS, {**NODES, "node": ["a", "b", "d"]}),
    "a missing column of targets": lambda: from_tables(ROWS, y="class"),
    "a missing target": lambda: from_tables({**ROWS, "kind": ["x", None]}, y="kind"),
    "two targets for a graph": lambda: from_tables(ROWS, y="kind"),
    "no target for a graph": lambda: from_tables(
        {**ROWS, "kind": ["x", "x"]}, {"graph": [1, 1, 1, 2], "node": ["a", "b", "c", "a"]}, y="kind"
    ),
    "targets of several types": lambda: from_tables(ROWS, NODES, {"graph": [1, 2], "kind": ["x", 1]}, y="kind"),
    "a row without an attribute": lambda: from_tables(ROWS, {**NODES, "mass": [1.0, None, 2.0]}, node_attrs="mass"),
}


def _data_with_features_of_other_nodes():
    from torch_geometric.data import Data

    return Data(edge_index=torch.tensor(EDGES), x=torch.zeros(3, 1), num_nodes=2)


def _load(folder: Path, **changes):
    return tu.load(data=write_folder(folder, **changes), cache=False)


def _with_environment(name: str, folder: Path):
    with patch.dict(os.environ, BELLNET_DATA=str(folder)):
        return tu.load(name)


def _by_bare_name(folder: Path):
    write_folder(folder / "SMALL")
    with chdir(folder):
        tu.load("SMALL", root=folder / "root")


def _receive(folder: Path, digest: str | None = None):
    parcel = tu.pack("SMALL", write_folder(folder / "SMALL").parent)
    (folder / "cache").write_text("")
    with patch.dict(os.environ, BELLNET_CACHE=str(folder / "cache")):
        tu.receive("SMALL", digest or parcel.digest, lambda: parcel)


def _pack_removed(folder: Path):
    with patch.object(Path, "read_bytes", side_effect=FileNotFoundError(2, "No such file or directory")):
        tu.pack("SMALL", write_zip(folder / "SMALL.zip"))


def _with_splits(folder: Path, text: str):
    write_folder(folder)
    (folder / "splits").mkdir()
    (folder / "splits" / "SMALL.json").write_text(text)
    return tu.load(data=folder, cache=False)


def _cut(file: Path, keep: float) -> Path:
    content = file.read_bytes()
    file.write_bytes(content[: int(len(content) * keep)])
    return file


def _damaged(file: Path) -> Path:
    """A zip in which some bytes of a member were changed."""
    content = bytearray(file.read_bytes())
    with zipfile.ZipFile(file) as zipped:
        start = zipped.infolist()[0].header_offset
    content[start + 50 : start + 60] = bytes(10)
    file.write_bytes(content)
    return file


def _document(inside: str) -> str:
    return f'<graphml><graph edgedefault="directed">{inside}</graph></graphml>'


def _one_less(file: Path) -> Path:
    """A zip whose end says that there is one member more than the directory has."""
    content = bytearray(file.read_bytes())
    content[-12] += 1
    file.write_bytes(content)
    return file


def _deep_drawing() -> str:
    key = '<key id="d" for="all" yfiles.type="nodegraphics"><default>C</default></key>'
    drawing = "<y>" * 10_000 + "</y>" * 10_000
    graph = f'<graph edgedefault="directed"><node id="a"><data key="d">{drawing}</data></node></graph>'
    return f"<graphml>{key}{graph}</graphml>"


def _graphml(folder: Path, labels: str | bytes | None = None, graph: str | None = None):
    nx.write_graphml(nx.path_graph(2), folder / "a.graphml")
    nx.write_graphml(nx.path_graph(3), folder / "b.graphml")
    if graph is not None:
        (folder / "b.graphml").write_text(graph, encoding="utf-8")
    if labels is not None:
        (folder / "labels.csv").write_bytes(labels if isinstance(labels, bytes) else labels.encode())
    return graphml.load(folder)


PARTLY = nx.MultiGraph([(0, 1), (0, 1)])

TABLES = {
    "an environment variable of no folder": lambda folder: _with_environment("MUTAG", folder / "nowhere"),
    "no name and no folder": lambda folder: tu.load(),
    "a missing folder": lambda folder: tu.load("SMALL", folder / "nowhere"),
    "a folder without the set": lambda folder: tu.load("OTHER", write_zip(folder / "SMALL.zip").parent),
    "a folder by its bare name": _by_bare_name,
    "a parcel with another digest": lambda folder: _receive(folder, "0" * 64),
    "a parcel for a cache that is a file": lambda folder: _receive(folder),
    "a zip that is removed before it is packed": _pack_removed,
    "an empty folder": lambda folder: tu.load("SMALL", folder),
    "a folder of no set, without a name": lambda folder: tu.load(data=folder),
    "a folder of two sets, without a name": lambda folder: tu.load(data=write_folder(write_folder(folder), "OTHER")),
    "no edges file": lambda folder: tu.load("SMALL", write_zip(folder / "SMALL.zip", A=None)),
    "no graph indicator": lambda folder: _load(folder, graph_indicator=None),
    "no labels and no targets": lambda folder: _load(folder, graph_labels=None, graph_attributes=None),
    "an empty graph indicator": lambda folder: _load(folder, graph_indicator=""),
    "a graph indicator that is not sorted": lambda folder: _load(folder, graph_indicator="1\n1\n2\n1\n3\n3\n"),
    "a graph indicator with a gap": lambda folder: _load(folder, graph_indicator="1\n1\n1\n2\n4\n4\n"),
    "a graph indicator from zero": lambda folder: _load(folder, graph_indicator="0\n0\n0\n1\n2\n2\n"),
    "an indicator that is too short": lambda folder: _load(folder, graph_indicator="1\n1\n1\n2\n3\n"),
    "too many graph labels": lambda folder: _load(folder, graph_labels="7\n-1\n7\n7\n"),
    "too few graph labels": lambda folder: _load(folder, graph_labels="7\n-1\n"),
    "too few node labels": lambda folder: _load(folder, node_labels="5\n6\n"),
    "too few edge labels": lambda folder: _load(folder, edge_labels="5\n6\n"),
    "a node that is out of range": lambda folder: _load(folder, A="1, 2\n2, 1\n2, 7\n7, 2\n4, 4\n5, 6\n6, 5\n"),
    "a node with number zero": lambda folder: _load(folder, A="0, 1\n1, 0\n", **BARE),
    "an integer beyond 64 bits": lambda folder: _load(folder, A="1, 99999999999999999999\n", **BARE),
    "an edge between graphs": lambda folder: _load(folder, A="1, 2\n2, 1\n3, 4\n4, 3\n4, 4\n5, 6\n6, 5\n"),
    "an edge file that was cut at a line": lambda folder: _load(
        folder, A="1, 2\n2, 1\n2, 3\n3, 2\n4, 4\n5, 6\n", **BARE
    ),
    "an edge file that was cut in a line": lambda folder: _load(folder, A="1, 2\n2, 1\n2,", **BARE),
    "text for a number": lambda folder: _load(folder, graph_labels="7\nactive\n7\n"),
    "a fraction for a label": lambda folder: _load(folder, node_labels="5\n6\n5.5\n9\n6\n6\n"),
    "two labels for a graph": lambda folder: _load(folder, graph_labels="7, 1\n-1, 1\n7, 1\n"),
    "a line of another width": lambda folder: _load(folder, node_attributes="1, 2\n1, 2\n1\n1, 2\n1, 2\n1, 2\n"),
    "a line with a hole": lambda folder: _load(folder, A="1, 2\n2,, 1\n", **BARE),
    "an underscore in a number": lambda folder: _load(folder, graph_labels="7\n1_0\n7\n"),
    "a very long line": lambda folder: _load(folder, graph_labels="7\n" + "8, " * 99 + "\n7\n"),
    "an empty line": lambda folder: _load(folder, graph_labels="7\n\n7\n"),
    "a number of signs": lambda folder: _load(folder, graph_labels="7\n--1\n7\n"),
    "bytes that are not UTF-8": lambda folder: _load(folder, graph_labels=b"7\n\xff\xfe\n7\n"),
    "attributes that are NaN": lambda folder: _load(folder, node_attributes="1\n2\nnan\n4\n5\n6\n"),
    "a zip that is cut off": lambda folder: tu.load(data=_cut(write_zip(folder / "SMALL.zip"), 0.6)),
    "a text file for a zip": lambda folder: tu.load(data=write_folder(folder) / "SMALL_A.txt"),
    "a zip with a damaged member": lambda folder: tu.load(data=_damaged(write_zip(folder / "SMALL.zip"))),
    "a zip with a path outside of its folder": lambda folder: tu.load(
        data=write_zip(folder / "SMALL.zip", extra=["../../evil.txt"])
    ),
    "a zip with a path of Windows outside of its folder": lambda folder: tu.load(
        data=write_zip(folder / "SMALL.zip", extra=["x\\..\\..\\evil.txt"])
    ),
    "a zip with an absolute path": lambda folder: tu.load(
        data=write_zip(folder / "SMALL.zip", extra=["/etc/evil.txt"])
    ),
    "a zip with a drive": lambda folder: tu.load(data=write_zip(folder / "SMALL.zip", extra=["C:/evil.txt"])),
    "a zip that unpacks to too much": lambda folder: tu.load(data=write_zip(folder / "SMALL.zip"), max_unpacked=20),
    "a zip that unpacks to too much for its size": lambda folder: tu.load(
        data=write_zip(folder / "SMALL.zip", graph_indicator="1\n" * 2**25), max_ratio=1
    ),
    "a zip that unpacks to more than it claims": lambda folder: tu.load(
        data=claim(write_zip(folder / "SMALL.zip"), unpacked=5)
    ),
    "a zip with a member less": lambda folder: tu.load(data=_one_less(write_zip(folder / "SMALL.zip"))),
    "a zip with a file twice": lambda folder: tu.load(
        data=write_zip(folder / "SMALL.zip", extra=["more/SMALL_A.txt"]), name="SMALL"
    ),
    "a zip with a path twice": lambda folder: tu.load(
        data=write_zip(folder / "SMALL.zip", extra=["more/x.txt", "more//x.txt"]), name="SMALL"
    ),
    "a bound of zero": lambda folder: tu.load(data=folder, max_unpacked=0),
    "a string for a ratio": lambda folder: tu.load(data=folder, max_ratio="much"),
    "a line without end": lambda folder: _load(folder, graph_labels="7" * 2**24),
    "an attribute beyond float64": lambda folder: _load(folder, node_attributes="1\n2\n1e999\n4\n5\n6\n"),
    "a label for every edge": lambda folder: _load(
        folder, A="1, 1\n" * 20_000, edge_labels="".join(f"{line}\n" for line in range(20_000)), edge_attributes=None
    ),
    "splits that are not JSON": lambda folder: _with_splits(folder, "[1, 2"),
    "splits of brackets": lambda folder: _with_splits(folder, "[" * 200_000),
    "splits of another form": lambda folder: _with_splits(folder, '{"splits": []}'),
    "splits with text": lambda folder: _with_splits(folder, '{"folds": [{"train": ["a"], "test": [1]}]}'),
    "splits of more graphs": lambda folder: _with_splits(folder, '{"folds": [{"train": [0, 1], "test": [3]}]}'),
    "splits that overlap": lambda folder: _with_splits(folder, '{"folds": [{"train": [0, 1], "test": [1]}]}'),
    "GraphML nested beyond measure": lambda folder: _graphml(folder, graph=_deep_drawing()),
    "no GraphML": lambda folder: graphml.load(folder),
    "a missing folder of GraphML": lambda folder: graphml.load(folder / "nowhere"),
    "GraphML that is cut": lambda folder: _graphml(folder, graph="<graphml><graph>"),
    "XML that is not GraphML": lambda folder: _graphml(folder, graph="<html></html>"),
    "GraphML with parallel edges": lambda folder: _graphml(folder, graph="\n".join(nx.generate_graphml(PARTLY))),
    "GraphML in an unknown encoding": lambda folder: _graphml(
        folder, graph='<?xml version="1.0" encoding="klingon"?><g/>'
    ),
    "GraphML in another encoding than it says": lambda folder: _graphml(
        folder, graph='<?xml version="1.0" encoding="ascii"?><!-- é --><g/>'
    ),
    "GraphML with a document type": lambda folder: _graphml(folder, graph="<!DOCTYPE graphml><graphml/>"),
    "two graphs in a GraphML file": lambda folder: _graphml(folder, graph="<graphml><graph/><graph/></graphml>"),
    "GraphML without a direction": lambda folder: _graphml(folder, graph="<graphml><graph/></graphml>"),
    "GraphML with a node without name": lambda folder: _graphml(folder, graph=_document("<node/>")),
    "GraphML with a node twice": lambda folder: _graphml(folder, graph=_document('<node id="a"/><node id="a"/>')),
    "GraphML with an edge to nowhere": lambda folder: _graphml(
        folder, graph=_document('<node id="a"/><edge source="a" target="b"/>')
    ),
    "GraphML with an edge to a port": lambda folder: _graphml(
        folder, graph=_document('<node id="a"/><edge source="a" target="a" targetport="p"/>')
    ),
    "GraphML with a hyperedge": lambda folder: _graphml(folder, graph=_document("<hyperedge/>")),
    "GraphML with nested graphs": lambda folder: _graphml(folder, graph=_document('<node id="a"><graph/></node>')),
    "GraphML with text between nodes": lambda folder: _graphml(folder, graph=_document('<node id="a"/>and')),
    "GraphML with two defaults": lambda folder: _graphml(
        folder, graph='<graphml><key id="k" attr.name="w"><default>1</default><default>2</default></key></graphml>'
    ),
    "GraphML with two keys of one name": lambda folder: _graphml(
        folder, graph='<graphml><key id="k" attr.name="w"/><key id="l" for="edge" attr.name="w"/></graphml>'
    ),
    "a missing table": lambda folder: [_graphml(folder), graphml.load(folder, folder / "x.csv")],
    "a binary table": lambda folder: _graphml(folder, b"\xff\xfe\x00file"),
    "a table without headings": lambda folder: _graphml(folder, "a.graphml,1\nb.graphml,2\n"),
    "a table with a heading twice": lambda folder: _graphml(folder, "file,label,label\na.graphml,1,2\nb.graphml,2,1\n"),
    "a table with a label beyond 64 bits": lambda folder: _graphml(
        folder, f"file,label\na.graphml,1\nb.graphml,{'9' * 99}\n"
    ),
    "a table with a label that is NaN": lambda folder: _graphml(folder, "file,label\na.graphml,1\nb.graphml,nan\n"),
    "a table with a label beyond 32 bits": lambda folder: _graphml(
        folder, "file,label\na.graphml,1\nb.graphml,1e300\n"
    ),
    "a table with a missing label": lambda folder: _graphml(folder, "file,label\na.graphml,1\nb.graphml,\n"),
    "a table with a file twice": lambda folder: _graphml(folder, "file,label\na.graphml,1\na.graphml,2\n"),
    "a table without a file": lambda folder: _graphml(folder, "file,label\na.graphml,1\n"),
    "a table with another file": lambda folder: _graphml(folder, "file,label\na.graphml,1\nb.graphml,1\nc.graphml,2\n"),
}

CASES = OBJECTS | TABLES
