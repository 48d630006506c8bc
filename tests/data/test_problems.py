"""Invalid graphs in a list: errors with their index, and `problems` with all of them."""

import networkx as nx
import numpy as np
import pytest
import scipy.sparse as sp
import torch
from torch_geometric.data import Data, HeteroData

from bellnet.data import Encoding, Graph, Loader, as_graphs, problems, to_padded, undirected
from bellnet.errors import DataError

PATH = undirected(3, [(0, 1), (1, 2)])


def _multi():
    return nx.MultiGraph([(0, 1), (0, 1)])


def _strange():
    data = HeteroData()
    data["a"].x = torch.ones(2, 1)
    data["a", "to", "b"].edge_index = torch.tensor([[0], [0]])
    return data


class Fails(nx.Graph):
    """A graph of networkx that cannot be read at all."""

    @property
    def nodes(self):
        raise KeyError("nodes")


BROKEN = {
    "nothing": lambda: None,
    "text": lambda: "graph",
    "an array that is not square": lambda: np.zeros((2, 3)),
    "an array of text": lambda: np.array([["a"]]),
    "a matrix that is not square": lambda: sp.csr_array((2, 3)),
    "parallel edges": _multi,
    "no edges named": lambda: Data(x=torch.ones(2, 1)),
    "edges out of range": lambda: Data(edge_index=torch.tensor([[0], [5]]), num_nodes=2),
    "edges along one axis": lambda: Data(edge_index=torch.tensor([0, 1]), num_nodes=2),
    "edges of text": lambda: Data(edge_index=["a"], num_nodes=2),
    "features of other nodes": lambda: Data(edge_index=torch.tensor([[0], [1]]), x=torch.ones(3, 1), num_nodes=2),
    "a kind of node that is not there": _strange,
    "a graph that fails": Fails,
}


@pytest.mark.parametrize("name", BROKEN)
@pytest.mark.parametrize("call", [as_graphs, to_padded, lambda graphs: Loader(graphs, batch_size=9), Encoding().encode])
def test_the_error_of_an_invalid_graph_has_its_index(name, call):
    graphs = [PATH] * 700 + [BROKEN[name]()] + [PATH] * 299
    with pytest.raises(DataError, match=r"graphs\[700\]"):
        call(graphs)


def test_problems_has_the_indices_of_all_invalid_graphs():
    graphs = [PATH, None, PATH, _multi(), Graph(0, [[], []]), PATH]
    found = problems(graphs)
    assert list(found) == [1, 3, 4]
    assert found[1].startswith("as_graph(graph): expected a bellnet.data.Graph")
    assert found[4] == "it has no nodes."
    good = [graph for index, graph in enumerate(graphs) if index not in found]
    assert problems(good) == {}


def test_problems_with_an_encoding_has_graphs_that_differ_from_its_fit():
    graphs = [nx.path_graph(3) for _ in range(4)]
    for graph in graphs[:3]:
        nx.set_node_attributes(graph, 1.0, "charge")
    encoding = Encoding.fit(graphs[:2])
    assert problems(graphs) == {}
    found = problems(graphs, encoding=encoding)
    assert list(found) == [3]
    assert found[3].startswith("as_graph(graph): node 0 has no attribute 'charge'")
    found = problems([Graph(2, [[0, 1], [1, 0]], node_features=torch.ones(2, 3))], encoding=encoding)
    assert found == {0: "it has 3 node_features, but the graphs of the fit had 1."}
    two = Encoding(node_labels=((1,), (2,)))
    found = problems([Graph(1, [[], []], node_labels=[1]), PATH], encoding=two)
    assert found == {
        0: "it has 1 columns of node_labels, but the graphs of the fit had 2.",
        1: "it has 0 columns of node_labels, but the graphs of the fit had 2.",
    }
