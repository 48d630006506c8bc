"""Values of a batch at the edges of each graph."""

import torch
from hypothesis import given
from hypothesis import strategies as st

from bellnet import Padded, Sparse
from bellnet.data import at_edges
from tests.data.strategies import graphs


@given(st.lists(graphs(nodes=False), min_size=1, max_size=4))
def test_values_at_edges_are_those_of_the_pairs_in_the_order_of_the_edges(members):
    longest = max(graph.n for graph in members) + 1
    values = torch.arange(len(members) * longest**2 * 2.0).reshape(len(members), longest, longest, 2)
    padded = Padded(values, torch.tensor([graph.n for graph in members]))
    found = at_edges(padded, members)
    listed = at_edges(Sparse.from_dense(padded, keep_zeros=True), members)
    assert all(torch.equal(one, other) for one, other in zip(found, listed, strict=True))
    for index, graph in enumerate(members):
        expected = [values[index, a, b].tolist() for a, b in graph.edge_index.T.tolist()]
        assert found[index].tolist() == expected
        assert found[index].shape == (graph.n_edges, 2)
