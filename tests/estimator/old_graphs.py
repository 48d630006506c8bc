"""Graphs with attributes, of which files written by earlier versions used a part; what those files predicted."""

import networkx as nx
import torch
from torch_geometric.data import Data


def molecules(count=12):
    """networkx graphs with texts and numbers on nodes and edges, none of them under a usual name."""
    graphs = []
    for number in range(count):
        graph = nx.cycle_graph(4 + number % 3)
        for node in graph:
            graph.nodes[node].update(element="CNO"[(node + number) % 3], charge=0.1 * node - 0.2)
        for place, edge in enumerate(graph.edges):
            graph.edges[edge].update(bond=["single", "double"][place % 2], length=1.0 + 0.1 * place)
        if number % 2:
            graph.add_edge(0, 2, bond="single", length=1.5)
        graphs.append(graph)
    return graphs


def usual(count=12):
    """The same with a label and a weight besides."""
    graphs = molecules(count)
    for graph in graphs:
        for node, data in graph.nodes(data=True):
            data["label"] = "CNO"[node % 3]
        for place, edge in enumerate(graph.edges):
            graph.edges[edge]["weight"] = 0.5 * place
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


LISTS = {"molecules": molecules, "usual": usual, "clouds": clouds}
