"""Graphs for property tests: any mixture of direction, self-loops, features and labels, down to no node at all."""

import torch
from hypothesis import strategies as st

from bellnet.data import Graph


@st.composite
def graphs(draw, *, max_nodes=6, directed=None, edge_features=None, nodes=True, zeros=True):
    """Draw a `Graph`.

    Args:
        draw: Filled in by hypothesis.
        max_nodes: The largest number of nodes.
        directed: Whether it is directed; drawn if None.
        edge_features: The number of edge features, 0 for none; drawn if None.
        nodes: Whether nodes may have features and labels.
        zeros: Whether the features of an edge may all be zero.
    """
    n = draw(st.integers(0, max_nodes))
    is_directed = draw(st.booleans()) if directed is None else directed
    pairs = [(a, b) for a in range(n) for b in range(n) if is_directed or a <= b]
    chosen = draw(st.lists(st.sampled_from(pairs), unique=True)) if pairs else []
    width = draw(st.integers(0, 3)) if edge_features is None else edge_features
    number = st.floats(-8, 8, width=32)
    row = st.lists(number, min_size=width, max_size=width)
    row = row if zeros else row.map(lambda values: [values[0] or 1.0, *values[1:]] if values else values)
    rows = [draw(row) for _ in chosen]
    both = [] if is_directed else [(row, (b, a)) for row, (a, b) in enumerate(chosen) if a != b]
    edges = chosen + [edge for _, edge in both]
    rows += [rows[row] for row, _ in both]
    n_features = draw(st.integers(0, 2)) if nodes else 0
    features = [draw(st.lists(number, min_size=n_features, max_size=n_features)) for _ in range(n)]
    labels = draw(st.none() | st.lists(st.integers(-3, 3), min_size=n, max_size=n)) if nodes else None
    return Graph(
        n,
        torch.tensor(edges, dtype=torch.int64).reshape(-1, 2).T,
        edge_features=torch.tensor(rows).reshape(len(edges), width) if width else None,
        node_features=torch.tensor(features).reshape(n, n_features) if n_features else None,
        node_labels=None if labels is None else torch.tensor(labels, dtype=torch.int64),
        directed=is_directed,
    )


def permuted(graph, order):
    """The graph with node `i` permuted to `order[i]`."""
    order = torch.as_tensor(order, dtype=torch.int64)
    back = order.argsort()
    return Graph(
        graph.n,
        order[graph.edge_index],
        graph.edge_features,
        None if graph.node_features is None else graph.node_features[back],
        None if graph.node_labels is None else graph.node_labels[back],
        graph.directed,
    )
