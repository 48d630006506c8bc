"""Attributes of nodes and edges: those used by default and by name, and the warning about others."""

import warnings

import networkx as nx
import pytest
import torch
from torch_geometric.data import Data, HeteroData

from bellnet.data import (
    Encoding,
    Graph,
    Loader,
    as_graph,
    as_graphs,
    graphml,
    to_networkx,
    to_padded,
    to_pyg,
    to_sparse,
)
from bellnet.errors import DataError, OptionError

EDGES = torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])


def molecule(elements="CNO", bonds=("double", "single"), **more):
    graph = nx.path_graph(len(elements))
    for node, element in enumerate(elements):
        graph.nodes[node].update(element=element, charge=0.1 * node, **more)
    for edge, bond in zip(graph.edges, bonds, strict=True):
        graph.edges[edge].update(bond=bond, length=float(len(bond)))
    return graph


def said_by(call):
    """The one warning of a call, and what the call gave."""
    with pytest.warns(UserWarning, match="some attributes are not used") as caught:
        found = call()
    assert len(caught) == 1
    assert caught[0].filename == __file__
    return str(caught[0].message), found


def test_numbers_become_features_and_texts_labels_on_nodes_and_edges():
    graph = as_graph(molecule())
    assert repr(graph) == "Graph(n=3, edges=4, edge_features=1, node_features=1, node_labels, edge_labels)"
    assert graph.node_features.flatten().tolist() == [0.0, 0.1, 0.2]
    assert len(graph.node_labels.unique()) == 3
    assert len(graph.edge_labels.unique()) == 2


def test_channels_have_the_names_of_attributes_and_texts():
    encoding = Encoding.fit([molecule()])
    assert encoding.names == (
        "adjacency",
        "edge feature length",
        *sorted(["edge label double", "edge label single"], key=encoding.names.index),
        *sorted(["label C", "label N", "label O"], key=encoding.names.index),
        "node feature charge",
    )
    values = encoding.encode([molecule()]).values[0]
    double = values[..., encoding.names.index("edge label double")]
    assert double.tolist() == [[0, 1, 0], [1, 0, 0], [0, 0, 0]]
    assert values[..., encoding.names.index("label N")].tolist() == [[0, 0, 0], [0, 1, 0], [0, 0, 0]]
    assert torch.equal(encoding.encode([molecule()], layout="sparse").to_padded().values[0], values)
    assert Encoding.from_json(encoding.to_json()) == encoding


def test_several_texts_of_a_node_are_columns_of_labels():
    graphs = [molecule("CN", ["single"], ring="yes"), molecule("NC", ["single"], ring="C")]
    encoding = Encoding.fit(graphs)
    labels = [name for name in encoding.names if name.startswith("label")]
    assert sorted(labels) == ["label element=C", "label element=N", "label ring=C", "label ring=yes"]
    values = encoding.encode(graphs).values
    for name, expected in {"element=C": [[1, 0], [0, 1]], "ring=C": [[0, 0], [1, 1]]}.items():
        assert values[..., encoding.names.index(f"label {name}")].diagonal(dim1=1, dim2=2).tolist() == expected
    assert Encoding.from_json(encoding.to_json()) == encoding


def test_an_encoding_reads_the_attributes_of_its_fit_from_other_graphs():
    encoding = Encoding.fit([molecule()])
    other = molecule("ON", ["triple"], mass=3.0)
    assert encoding.encode([other]).values.shape[-1] == encoding.channels
    assert torch.equal(encoding.encode([as_graph(other)]).values, encoding.encode([other]).values)
    assert torch.equal(
        encoding.encode([as_graph(other)], layout="sparse").to_padded().values, encoding.encode([other]).values
    )
    del other.nodes[1]["charge"]
    with pytest.raises(DataError, match=r"graphs\[1\]: as_graph\(graph\): node 1 has no attribute 'charge'"):
        encoding.encode([molecule(), other])
    with pytest.raises(DataError, match=r"graphs\[0\] has no node attribute 'charge', which the fit used"):
        encoding.encode([as_graph(molecule(), node_attrs=[], node_labels="element")])


def test_one_warning_has_all_unused_attributes_with_the_argument_that_uses_them():
    graphs = [molecule() for _ in range(5)]
    for graph in graphs:
        for node, data in graph.nodes(data=True):
            data.update({"features": [1.0, 2.0], "mixed": "a" if node else 1, "thing": object()})
        graph.edges[0, 1]["note"] = "first"
    words, found = said_by(lambda: as_graphs(graphs))
    assert found[0].node_features.shape == (3, 2)
    assert words == (
        "as_graphs(graphs): some attributes are not used.\n"
        "Of nodes: 'charge', since there is 'features'; node_attrs=['features', 'charge'] uses both.\n"
        "Of nodes: 'mixed', which is neither all numbers nor all text.\n"
        "Of nodes: 'thing', which is neither all numbers nor all text.\n"
        "Of edges: 'note', which 5 of 10 have; edge_labels='note' uses it where all have it.\n"
        "Choose with node_attrs=, edge_attrs=, node_labels= and edge_labels=; [] uses none, without a warning."
    )


def test_named_attributes_give_no_warning():
    graph = molecule()
    graph.nodes[0]["note"] = "first"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = as_graph(graph, node_attrs=["charge"], node_labels=[], edge_attrs=[], edge_labels="bond")
    assert (found.node_labels, found.edge_features) == (None, None)
    assert found.edge_labels is not None


def test_an_attribute_with_many_texts_is_no_label_by_default():
    graph = nx.path_graph(200)
    nx.set_node_attributes(graph, {node: f"node {node}" for node in graph}, "name")
    words, found = said_by(lambda: as_graph(graph))
    assert found.node_labels is None
    assert "Of nodes: 'name', which has more than 128 different texts; node_labels='name' uses it." in words
    assert as_graph(graph, node_labels="name").node_labels.unique().numel() == 200


def test_attributes_with_missing_values_or_nan_are_not_used_and_give_a_warning():
    graph = nx.path_graph(3)
    nx.set_node_attributes(graph, {0: 1.0, 1: float("nan"), 2: 2.0}, "a")
    nx.set_node_attributes(graph, {0: 1.0, 1: None, 2: 2.0}, "b")
    nx.set_node_attributes(graph, {0: [1.0], 1: [1.0, 2.0], 2: [2.0]}, "c")
    words, found = said_by(lambda: as_graph(graph))
    assert found.node_features is None
    assert "Of nodes: 'a', which 2 of 3 have; node_attrs='a' uses it where all have it." in words
    assert "Of nodes: 'b', which 2 of 3 have" in words
    assert "Of nodes: 'c', whose values have different lengths." in words


def test_data_without_x_uses_all_its_attributes():
    data = Data(pos=torch.ones(3, 2), z=torch.tensor([6, 7, 8]), edge_index=EDGES, y=torch.tensor([1]))
    graph = as_graph(data)
    assert graph.node_features.tolist() == [[1, 1, 6], [1, 1, 7], [1, 1, 8]]
    assert Encoding.fit([data]).names[1:] == ("node feature pos[0]", "node feature pos[1]", "node feature z")


def test_data_with_x_gives_a_warning_about_other_attributes():
    data = Data(x=torch.ones(3, 1), pos=torch.ones(3, 2), edge_index=EDGES, train_mask=torch.ones(3, dtype=torch.bool))
    words, found = said_by(lambda: to_padded([data, data]))
    assert found.values.shape[-1] == 2
    assert words == (
        "to_padded(graphs): some attributes are not used.\n"
        "Of nodes: 'pos', since there is 'x'; node_attrs=['x', 'pos'] uses both.\n"
        "Choose with node_attrs=, edge_attrs=, node_labels= and edge_labels=; [] uses none, without a warning."
    )


def test_types_of_edges_of_data_are_labels():
    data = Data(edge_index=EDGES, num_nodes=3, edge_type=torch.tensor([0, 0, 7, 7]))
    graph = as_graph(data)
    assert graph.edge_labels.tolist() == [0, 0, 7, 7]
    assert Encoding.fit([data]).names == ("adjacency", "edge label 0", "edge label 7")
    bonds = Data(edge_index=EDGES, num_nodes=3, edge_attr=torch.tensor([1, 1, 2, 2]))
    assert as_graph(bonds).edge_features.flatten().tolist() == [1, 1, 2, 2]
    found = as_graph(bonds, edge_labels="edge_attr")
    assert (found.edge_features, found.edge_labels.tolist()) == (None, [1, 1, 2, 2])
    texts = Data(edge_index=EDGES, num_nodes=3, bond=["single", "single", "double", "double"], atom=["C", "C", "O"])
    assert Encoding.fit([texts]).channels == 5


def test_kinds_of_nodes_and_edges_of_a_heterogeneous_graph_are_labels():
    data = HeteroData()
    data["author"].x = torch.ones(2, 3)
    data["paper"].x = torch.zeros(1, 3)
    data["paper"].year = torch.tensor([1990])
    data["author", "writes", "paper"].edge_index = torch.tensor([[0, 1], [0, 0]])
    data["author", "knows", "author"].edge_index = torch.tensor([[0], [1]])
    words, graph = said_by(lambda: as_graph(data))
    assert "Of nodes: 'year', which 1 of 3 have" in words
    assert (graph.n, graph.directed) == (3, True)
    assert graph.edge_index.tolist() == [[0, 1, 0], [2, 2, 1]]
    assert graph.node_features.tolist() == [[1, 1, 1], [1, 1, 1], [0, 0, 0]]
    names = Encoding.fit([graph]).names
    assert {"edge label author writes paper", "edge label author knows author", "label author", "label paper"} <= {
        *names
    }


def test_bonds_of_graphml_are_labels(tmp_path):
    for number, elements in enumerate(("CNO", "OOC")):
        nx.write_graphml(molecule(elements), tmp_path / f"{number}.graphml")
    found = graphml.load(tmp_path)
    assert "edge label double" in Encoding.fit(found.graphs).names
    names = Encoding.fit(graphml.load(tmp_path, edge_labels=[], edge_attrs="length").graphs).names
    assert not any(name.startswith("edge label") for name in names)


def test_files_of_a_folder_are_read_by_the_same_attributes_with_one_warning(tmp_path):
    for number in range(3):
        graph = molecule(**({"mass": 1.0} if number else {}))
        nx.write_graphml(graph, tmp_path / f"{number}.graphml")
    words, found = said_by(lambda: graphml.load(tmp_path))
    assert words.startswith("graphml.load(folder): some attributes are not used.\nOf nodes: 'mass', which 6 of 9 have")
    assert {graph.node_features.shape[1] for graph in found.graphs} == {1}


@pytest.mark.parametrize(
    "call", [to_padded, to_sparse, Encoding.fit, lambda graphs, **names: Loader(graphs, batch_size=1, **names)]
)
def test_each_function_takes_names_of_attributes(call):
    names = {"node_attrs": "charge", "edge_attrs": [], "node_labels": [], "edge_labels": "bond"}
    with_names, all_used = call([molecule()], **names), call([molecule()])
    channels = [
        found.values.shape[-1] if hasattr(found, "values") else getattr(found, "encoding", found).channels
        for found in (with_names, all_used)
    ]
    assert channels == [4, 8]


def test_a_loader_reads_the_attributes_of_its_encoding():
    encoding = Encoding.fit([molecule()], node_attrs=[], node_labels="element")
    loader = Loader([molecule("CN", ["single"])], batch_size=1, encoding=encoding)
    assert next(iter(loader))[0].values.shape[-1] == encoding.channels
    with pytest.raises(OptionError, match="an encoding reads the attributes of its fit; leave out node_attrs"):
        Loader([molecule()], batch_size=1, encoding=encoding, node_attrs="charge")


def test_edge_labels_survive_networkx_and_pyg():
    graph = Graph(3, EDGES, edge_labels=[4, 4, 5, 5])
    assert as_graph(to_networkx(graph)) == graph
    assert as_graph(to_pyg(graph)) == graph
    assert graph != Graph(3, EDGES, edge_labels=[4, 4, 6, 6])


def test_text_labels_survive_networkx_under_their_names():
    again = as_graph(to_networkx(as_graph(molecule(ring="no"), node_attrs=[], edge_attrs=[])))
    assert again == as_graph(molecule(ring="no"), node_attrs=[], edge_attrs=[])
    assert [data["element"] for _, data in to_networkx(again).nodes(data=True)] == ["C", "N", "O"]


def test_the_id_of_an_edge_in_graphml_is_no_label(tmp_path):
    text = (
        '<graphml xmlns="http://graphml.graphdrawing.org/xmlns"><graph edgedefault="undirected"><node id="a"/>'
        '<node id="b"/><edge id="e0" source="a" target="b"/></graph></graphml>'
    )
    (tmp_path / "one.graphml").write_text(text)
    assert graphml.load(tmp_path).graphs[0].edge_labels is None


def test_an_attribute_of_a_graph_with_as_many_edges_as_nodes_belongs_as_in_other_graphs():
    ring = Data(edge_index=torch.tensor([[0, 1, 2], [1, 2, 0]]), num_nodes=3, bond=torch.tensor([1.0, 2.0, 3.0]))
    path = Data(edge_index=torch.tensor([[0, 1], [1, 2]]), num_nodes=3, bond=torch.tensor([4.0, 5.0]))
    found = as_graphs([ring, path])
    assert found[0].edge_features.flatten().tolist() == [1, 2, 3]
    assert found[0].node_features is None


@pytest.mark.parametrize("value", [1e38, -1e300, 2**63, -(10**30), 1.7e308])
def test_each_finite_float64_number_is_a_feature_without_a_warning(value):
    graph = molecule(mass=value)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        read = as_graph(graph)
    assert read.columns.node_attrs == ("charge", "mass")
    assert read.node_features[:, 1].tolist() == [float(value)] * 3


@pytest.mark.parametrize("layout", ["padded", "sparse"])
def test_a_feature_that_overflows_in_the_dtype_raises_an_error_with_its_name_and_value(layout):
    graphs = [molecule(mass=1.0), molecule(mass=2.0)]
    graphs[1].nodes[2]["mass"] = 1e39
    encoding = Encoding.fit(graphs)
    with pytest.raises(DataError) as caught:
        encoding.encode(graphs, layout=layout)
    assert str(caught.value).startswith(
        "Encoding.encode(graphs): node feature 'mass' of node 2 of graphs[1] is 1e+39, which does not fit torch.float32"
    )
    assert encoding.encode(graphs, layout=layout, dtype=torch.float64).values.max() == 1e39
    graphs[1].nodes[2]["mass"] = 1.0
    graphs[1].edges[1, 2]["length"] = -1e39
    with pytest.raises(
        DataError, match=r"edge feature 'length' of edge .* of graphs\[1\] is -1e\+39, which does not fit"
    ):
        encoding.encode(graphs, layout=layout)


def test_a_feature_without_a_name_that_overflows_is_named_by_its_column():
    graph = Graph(2, [[], []], node_features=torch.tensor([[0.0, 1.0], [0.0, 1e39]], dtype=torch.float64))
    with pytest.raises(DataError, match=r"node feature 1 of node 1 of graphs\[0\] is 1e\+39, which does not fit"):
        to_padded([graph])
