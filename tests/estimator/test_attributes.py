"""Attributes of graphs of other libraries."""

import warnings

import networkx as nx
import numpy as np
import pytest
import torch
from torch_geometric.data import Data

from bellnet.data import as_graph, as_graphs
from bellnet.errors import DataError, OptionError
from bellnet.estimator import load
from tests.estimator.small import LEARNS, classifier, regressor

TARGETS = [number % 2 for number in range(12)]


def molecules(count=12):
    """networkx graphs with texts and numbers on nodes and edges, none of them under a usual name."""
    graphs = []
    for number in range(count):
        graph = nx.cycle_graph(4 + number % 3)
        for node in graph:
            graph.nodes[node].update(element="CNO"[(node + number) % 3], charge=0.1 * node - 0.2)
        for number, edge in enumerate(graph.edges):
            graph.edges[edge].update(bond=["single", "double"][number % 2], length=1.0 + 0.1 * number)
        if number % 2:
            graph.add_edge(0, 2, bond="single", length=1.5)
        graphs.append(graph)
    return graphs


def clouds(count=12):
    """`Data` with x, and with positions and numbers of elements besides."""
    found = []
    for graph in molecules(count):
        index = torch.tensor([*graph.edges]).T
        n = len(graph)
        found.append(
            Data(
                x=torch.arange(2.0 * n).reshape(n, 2) / n,
                pos=torch.arange(3.0 * n).reshape(n, 3),
                z=torch.arange(n),
                edge_index=torch.cat([index, index.flip(0)], 1),
            )
        )
    return found


def test_attributes_are_features_and_labels():
    graphs, targets = [], []
    for number in range(40):
        graph = nx.cycle_graph(5 + number % 3)
        nx.set_node_attributes(graph, "C", "element")
        nx.set_edge_attributes(graph, "single", "bond")
        if number % 2:
            graph.edges[0, 1]["bond"] = "double"
        graphs.append(graph)
        targets.append(number % 2)
    model = classifier(**LEARNS).fit(graphs, targets)
    assert model.score(graphs, targets) == 1
    assert {"edge label double", "edge label single", "label C"} <= {*model.encoding_.names}
    blind = classifier(**LEARNS, edge_labels=[], node_labels=[]).fit(graphs, targets)
    assert blind.score(graphs, targets) < 0.8


def test_data_without_x_uses_other_attributes():
    graphs = [Data(pos=data.pos, z=data.z, edge_index=data.edge_index) for data in clouds()]
    model = classifier().fit(graphs, TARGETS)
    assert [name for name in model.encoding_.names if name.startswith("node")] == [
        "node feature pos[0]",
        "node feature pos[1]",
        "node feature pos[2]",
        "node feature z",
    ]


@pytest.mark.parametrize("make", [classifier, regressor])
def test_unused_attributes_are_named_by_one_warning_in_fit(make):
    graphs = clouds()
    with pytest.warns(UserWarning, match="some attributes are not used") as caught:
        model = make().fit(graphs, TARGETS)
    assert len(caught) == 1
    assert str(caught[0].message).startswith(f"{type(model).__name__}.fit(graphs, y): some attributes are not used.\n")
    assert "'pos', since there is 'x'; node_attrs=['x', 'pos'] uses both." in str(caught[0].message)
    assert caught[0].filename == __file__
    model.predict(graphs)
    assert make(node_attrs=["x", "pos"]).fit(graphs, TARGETS).encoding_.node_features == 5


def test_predict_reads_the_attributes_of_the_fit(tmp_path):
    graphs = molecules()
    model = classifier(node_attrs="charge", edge_attrs=()).fit(graphs, TARGETS)
    predictions = model.predict_proba(graphs)
    model.save(tmp_path / "model")
    again = load(tmp_path / "model")
    assert again.get_params() == model.get_params()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for graph in graphs:
            nx.set_node_attributes(graph, 1.0, "mass")
        assert np.array_equal(again.predict_proba(graphs), predictions)
        assert np.array_equal(again.predict_proba(as_graphs(graphs)), predictions)
    del graphs[3].nodes[0]["charge"]
    with pytest.raises(DataError, match=r"graphs\[3\]: as_graph\(graph\): node 0 has no attribute 'charge'"):
        again.predict(graphs)


def test_missing_edge_labels_raise_an_error():
    model = classifier().fit(molecules(), TARGETS)
    bare = as_graph(torch.ones(3, 3))
    with pytest.raises(DataError, match=r"graphs\[0\] has 0 node_features, but the graphs of the fit had 1"):
        model.predict([bare])
    model = classifier(node_attrs=[], edge_attrs=[], node_labels=[]).fit(molecules(), TARGETS)
    with pytest.raises(DataError, match=r"graphs\[0\] has 0 columns of edge_labels, but the graphs of the fit had 1"):
        model.predict([bare])


def test_invalid_attribute_names_are_refused():
    with pytest.raises(OptionError, match=r"node_attrs must be the name or names of attributes or None, not 3\."):
        classifier(node_attrs=3).fit(molecules(), TARGETS)


def weighed(unit, count=24):
    """Paths of two classes, which the mass of their nodes distinguishes."""
    graphs = []
    for number in range(count):
        graph = nx.path_graph(4 + number % 3)
        for node in graph:
            graph.nodes[node]["mass"] = unit * (1 + number % 2 + node / 10)
        graphs.append(graph)
    return graphs, [number % 2 for number in range(count)]


@pytest.mark.parametrize("unit", [2.0**127, 2.0**1021, 2.0**-600])
def test_the_unit_of_a_feature_does_not_change_the_fit(unit):
    (plain, targets), (graphs, _) = weighed(1.0), weighed(unit)
    expected = classifier().fit(plain, targets)
    model = classifier().fit(graphs, targets)
    assert "node feature mass" in model.encoding_.names
    assert np.array_equal(model.predict_proba(graphs), expected.predict_proba(plain))


def test_a_large_constant_feature_becomes_zero():
    graphs, targets = weighed(1.0)
    for graph in graphs:
        nx.set_node_attributes(graph, 1e38 / 3, "mass")
    model = classifier().fit(graphs, targets)
    scaled = model.scaling_.apply("fit", as_graphs(graphs), model.encoding_)
    assert max(float(graph.node_features.abs().max()) for graph in scaled) < 1e-6


@pytest.mark.parametrize("make", [classifier, regressor])
def test_a_scaled_feature_must_fit_float32(make):
    graphs, targets = weighed(1.0)
    model = make().fit(graphs, targets)
    others, _ = weighed(1.0)
    others[3].nodes[2]["mass"] = 1e39
    name = type(model).__name__
    words = r"node feature 'mass' of node 2 of graphs\[3\] is 1e\+39, which is .* after scaling"
    with pytest.raises(DataError, match=rf"^{name}\.predict\(graphs\): {words} and does not fit float32\.\n"):
        model.predict(others)
    with pytest.raises(DataError, match=rf"^{name}\.fit\(validation_data=\(graphs, y\)\): {words}"):
        make().fit(graphs, targets, validation_data=(others, targets))
