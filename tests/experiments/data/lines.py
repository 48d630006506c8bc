"""Graphs as lines of graph6, as networkx writes them."""

import networkx as nx

from bellnet.data import to_networkx


def as_graph6(graph):
    """A graph as a line of graph6."""
    return nx.to_graph6_bytes(nx.Graph(to_networkx(graph)), header=False).strip().decode()
