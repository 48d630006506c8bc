"""Channels of graphs, compared with plain loops and with the channels of the paper's authors."""

import json
from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import bellnet as bn
from bellnet.data import Encoding, Graph, as_graphs, to_dense, to_networkx, to_padded, to_pyg, undirected
from bellnet.errors import DataError, OptionError, SizesError
from bellnet.tensors.padded import is_zero_padded
from tests.data.strategies import graphs, permuted

MOLECULE = Graph(
    3,
    [[0, 1, 1, 2], [1, 0, 2, 1]],
    edge_features=torch.tensor([[1.0, 5], [1, 5], [2, 6], [2, 6]]),
    node_features=torch.tensor([[0.1], [0.2], [0.3]]),
    node_labels=torch.tensor([8, 6, 8]),
)


def slowly(encoding, graph):
    """One graph, entry by entry."""
    a = np.zeros((graph.n, graph.n))
    for source, target in graph.edge_index.T.tolist():
        a[source, target] = 1
    out, into = a.sum(1), a.sum(0)
    normal = np.zeros_like(a)
    for i, j in graph.edge_index.T.tolist():
        normal[i, j] = 1 / np.sqrt(out[i] * into[j])
    first = {"plain": [a], "normalized": [normal], "both": [a, normal]}[encoding.adjacency]
    channels = list(first)
    for number in range(encoding.edge_features):
        channel = np.zeros_like(a)
        for edge, (source, target) in enumerate(graph.edge_index.T.tolist()):
            channel[source, target] = 1 if graph.edge_features is None else graph.edge_features[edge, number]
        channels.append(channel)
    for label in encoding.node_labels:
        channel = np.diag([float(own == label) for own in graph.node_labels.tolist()])
        channels.append(channel.reshape(a.shape) + (first[0] if encoding.adjacency_in_labels else 0))
    for number in range(encoding.node_features):
        channels.append(np.diag(graph.node_features[:, number].tolist()).reshape(a.shape))
    if encoding.degrees:
        mean, deviation = encoding.degrees
        channels.append(np.diag((np.log(1 + (out + into) / 2) - mean) / deviation).reshape(a.shape))
    for unit in np.eye(len(encoding.degree_bins)):
        shares = np.interp(np.log(1 + (out + into) / 2), np.log1p(encoding.degree_bins), unit)
        channels.append(np.diag(shares).reshape(a.shape))
    if encoding.size_feature:
        mean, deviation = encoding.size_feature
        channels.append((np.log(1 + graph.n) - mean) / deviation * np.eye(graph.n))
    return torch.tensor(np.stack(channels, -1).reshape(graph.n, graph.n, len(channels)))


@st.composite
def alike(draw):
    """Graphs with the same widths of features, and how to encode them."""
    first = draw(graphs())
    others = draw(st.lists(graphs(edge_features=0), max_size=3))
    width = 0 if first.edge_features is None else first.edge_features.shape[1]
    nodes = 0 if first.node_features is None else first.node_features.shape[1]
    members = [first] + [
        Graph(
            other.n,
            other.edge_index,
            torch.ones(other.n_edges, width) if width else None,
            torch.full((other.n, nodes), 2.0) if nodes else None,
            None if first.node_labels is None else torch.arange(other.n),
            other.directed,
        )
        for other in others
    ]
    options = draw(
        st.fixed_dictionaries(
            {
                "adjacency": st.sampled_from(["plain", "normalized", "both"]),
                "adjacency_in_labels": st.booleans(),
                "degrees": st.booleans(),
                "degree_bins": st.sampled_from([0, 2, 3, 16]),
                "size_feature": st.booleans(),
            }
        )
    )
    return members, options


@given(alike())
def test_both_layouts_have_the_same_values(case):
    members, options = case
    encoding = Encoding.fit(members, **options)
    padded = encoding.encode(members, dtype=torch.float64)
    sparse = encoding.encode(members, layout="sparse", dtype=torch.float64)
    assert torch.equal(sparse.to_padded().values, padded.values)
    assert sparse.sizes.tolist() == [graph.n for graph in members]
    for one, graph in zip(sparse.unpack(), members, strict=True):
        pairs = {*map(tuple, graph.edge_index.T.tolist()), *((node, node) for node in range(graph.n))}
        assert one.index.T.tolist() == sorted(map(list, pairs))


@given(alike())
def test_each_channel_has_the_values_of_its_name(case):
    members, options = case
    encoding = Encoding.fit(members, **options)
    padded = encoding.encode(members, dtype=torch.float64)
    assert padded.values.shape[-1] == encoding.channels == len(encoding.names)
    for graph, values in zip(members, padded.unpack("n n"), strict=True):
        torch.testing.assert_close(values, slowly(encoding, graph))


@given(alike(), st.randoms(use_true_random=False))
def test_encoding_commutes_with_permutations_of_the_nodes(case, random):
    members, options = case
    graph = members[0]
    encoding = Encoding.fit(members, **options)
    order = random.sample(range(graph.n), graph.n)
    values = encoding.encode([graph], dtype=torch.float64).values
    back = torch.tensor(order, dtype=torch.int64).argsort()
    found = encoding.encode([permuted(graph, order)], dtype=torch.float64).values
    torch.testing.assert_close(found, values[:, back][:, :, back])


@given(alike())
def test_a_batch_equals_its_graphs_and_padding_is_zero(case):
    members, options = case
    encoding = Encoding.fit(members, **options)
    together = encoding.encode(members)
    assert is_zero_padded(together, ("n", "n"))
    assert together.values.count_nonzero() == sum(graph.count_nonzero() for graph in together.unpack("n n"))
    for graph, values in zip(members, together.unpack("n n"), strict=True):
        assert torch.equal(encoding.encode([graph]).values[0], values)


@given(alike())
def test_json_gives_the_same_encoding(case):
    members, options = case
    encoding = Encoding.fit(members, **options)
    again = Encoding.from_json(encoding.to_json())
    assert (again, hash(again)) == (encoding, hash(encoding))


def test_the_channels_have_names():
    assert Encoding.fit([MOLECULE], adjacency="both").names == (
        "adjacency",
        "normalized adjacency",
        "edge feature 0",
        "edge feature 1",
        "label 6",
        "label 8",
        "node feature 0",
    )
    assert Encoding.fit([MOLECULE], edge_features=False, node_labels=False, node_features=False).names == ("adjacency",)
    assert Encoding.fit([MOLECULE], degrees=True).names[-2:] == ("node feature 0", "degree")


def test_all_kinds_of_graphs_become_one_batch_in_one_call():
    graph = undirected(3, [(0, 1), (2, 2)])
    padded = to_padded([graph, to_networkx(graph), to_pyg(graph), to_dense(graph)], adjacency="both")
    assert isinstance(padded, bn.Padded)
    assert padded.values.shape == (4, 3, 3, 2)
    assert all(torch.equal(values, padded.values[0]) for values in padded.values)


def test_degrees_count_self_loops_and_directed_graphs_stay_directed():
    loop = undirected(2, [(0, 0), (0, 1)])
    values = to_padded([loop], adjacency="normalized").values[0, :, :, 0]
    torch.testing.assert_close(values, torch.tensor([[1 / 2, 2**-0.5], [2**-0.5, 0]]))
    arrow = Graph(2, [[0], [1]], directed=True)
    assert to_padded([arrow]).values[0, :, :, 0].tolist() == [[0, 1], [0, 0]]


def test_degrees_are_on_the_diagonal_as_logarithms():
    path = undirected(3, [(0, 1), (1, 2)])
    values = Encoding(degrees=(0, 1)).encode([path]).values[0, :, :, 1]
    torch.testing.assert_close(values, torch.tensor([2.0, 3, 2]).log().diag())
    arrow = Encoding(degrees=(0, 1)).encode([Graph(2, [[0], [1]], directed=True)]).values[0, :, :, 1]
    torch.testing.assert_close(arrow, torch.full((2,), 1.5).log().diag())


def test_degrees_have_mean_zero_and_variance_one_over_all_nodes_of_the_fit():
    known = [undirected(3, [(0, 1), (1, 2)]), undirected(5, [(0, 1), (0, 2), (0, 3)]), Graph(0, [[], []])]
    values = torch.cat([graph.diagonal()[1] for graph in to_padded(known, degrees=True).unpack("n n")])
    assert len(values) == 8
    torch.testing.assert_close(values.mean(), torch.tensor(0.0))
    torch.testing.assert_close(values.square().mean(), torch.tensor(1.0))


def test_degrees_that_are_all_the_same_become_zero():
    triangle = undirected(3, [(0, 1), (1, 2), (2, 0)])
    assert Encoding.fit([triangle], degrees=True).encode([triangle]).values[..., 1].count_nonzero() == 0
    assert Encoding.fit([Graph(0, [[], []])], degrees=True).degrees == (0, 1)


def test_every_degree_has_a_channel_if_there_are_few():
    known = [undirected(3, [(0, 1), (1, 2)]), undirected(5, [(0, 1), (0, 2), (0, 3)])]
    encoding = Encoding.fit(known, degree_bins=4)
    assert encoding.degree_bins == (0, 1, 2, 3)
    assert encoding.names == ("adjacency", "degree 0", "degree 1", "degree 2", "degree 3")
    star = encoding.encode(known).unpack("n n")[1][..., 1:].diagonal().T
    torch.testing.assert_close(star, torch.eye(4)[[3, 1, 1, 1, 0]])
    assert Encoding.from_json(encoding.to_json()) == encoding


def test_many_degrees_share_channels_with_their_neighbours():
    stars = [star(n) for n in range(1, 40)]
    encoding = Encoding.fit(stars, degree_bins=5)
    bins = encoding.degree_bins
    assert bins[0] == 1
    assert bins[-1] == 39
    assert len(bins) <= 5
    shares = encoding.encode(stars, dtype=torch.float64).values[:, 0, 0, 1:]
    torch.testing.assert_close(shares.sum(1), torch.ones(39, dtype=torch.float64))
    assert bool((shares >= 0).all())
    assert int((shares > 0).sum(1).max()) == 2
    far = encoding.encode([star(100), undirected(1, [])]).values
    assert far[:, 0, 0, 1:].tolist() == [[0.0] * (len(bins) - 1) + [1.0], [1.0] + [0.0] * (len(bins) - 1)]


def star(n):
    return undirected(n + 1, [(0, node) for node in range(1, n + 1)])


def test_degree_bins_are_quantiles_and_as_many_as_allowed():
    path = undirected(40, [(node, node + 1) for node in range(39)])
    known = [path, star(5), star(9), star(30)]
    assert Encoding.fit(known, degree_bins=2).degree_bins == (1, 30)
    assert Encoding.fit(known, degree_bins=3).degree_bins == (1, 2, 30)
    assert len(Encoding.fit(known, degree_bins=4).degree_bins) == 4
    assert Encoding.fit(known, degree_bins=np.int64(5)).degree_bins == (1, 2, 5, 9, 30)


def test_degree_bins_have_different_names():
    bins = (0, 1.5, 1234567, 1234568.0)
    names = ("degree 0", "degree 1.5", "degree 1234567", "degree 1234568")
    assert Encoding(degree_bins=bins).names[1:] == names


def test_a_single_degree_gives_no_bins():
    triangle = undirected(3, [(0, 1), (1, 2), (2, 0)])
    assert Encoding.fit([triangle], degree_bins=8).degree_bins == ()
    assert Encoding.fit([Graph(0, [[], []])], degree_bins=8).degree_bins == ()


def test_sizes_are_on_the_diagonal_after_degrees_as_logarithms_of_mean_zero_and_variance_one():
    known = [undirected(3, [(0, 1), (1, 2)]), undirected(7, [(0, 1)])]
    encoding = Encoding.fit(known, degrees=True, size_feature=True)
    assert encoding.names == ("adjacency", "degree", "size")
    small, large = (graph[..., 2] for graph in encoding.encode(known).unpack("n n"))
    torch.testing.assert_close(small, -torch.eye(3))
    torch.testing.assert_close(large, torch.eye(7))
    assert Encoding.from_json(encoding.to_json()) == encoding
    listed = encoding.encode(known, layout="sparse").to_padded()
    torch.testing.assert_close(listed.values, encoding.encode(known).values)


def test_an_unknown_label_is_no_label_or_an_error():
    strange = replace(MOLECULE, node_labels=torch.tensor([8, 99, 6]))
    values = Encoding.fit([MOLECULE]).encode([strange]).values[0]
    assert values[:, :, 3:5].sum((0, 1)).tolist() == [1, 1]
    assert values[1, 1, 3:5].tolist() == [0, 0]
    with pytest.raises(DataError, match="label 99"):
        Encoding.fit([MOLECULE], unknown="error").encode([strange])


def test_edges_without_features_have_the_feature_one():
    plain, weighted = undirected(2, [(0, 1)]), Graph(2, [[0, 1], [1, 0]], torch.full((2, 1), 3.0))
    encoding = Encoding.fit([plain, weighted])
    assert encoding.edge_features == 1
    assert encoding.encode([plain]).values[0, 0, 1].tolist() == [1, 1]
    assert encoding.encode([weighted]).values[0, 0, 1].tolist() == [1, 3]


def test_a_graph_without_edges_needs_no_edge_features():
    lonely = Graph(2, [[], []])
    assert Encoding.fit([lonely, replace(MOLECULE, node_features=None)], node_labels=False).edge_features == 2
    assert Encoding(edge_features=2).encode([lonely]).values.abs().sum() == 0
    both = Encoding(edge_features=2).encode([lonely, MOLECULE]).values
    assert torch.equal(both[1], Encoding(edge_features=2).encode([MOLECULE]).values[0])


def test_a_graph_without_nodes_needs_no_features():
    nothing = Graph(0, [[], []])
    encoding = Encoding.fit([nothing, MOLECULE])
    assert encoding == Encoding.fit([MOLECULE])
    assert encoding.encode([nothing]).values.shape == (1, 0, 0, 6)
    assert torch.equal(encoding.encode([nothing, MOLECULE]).values[1], encoding.encode([MOLECULE]).values[0])


def test_dtype_and_device_can_be_chosen():
    assert to_padded([MOLECULE], dtype=torch.float16).values.dtype == torch.float16
    assert to_padded([MOLECULE], device="meta").values.is_meta


def test_unusual_labels_and_sizes_are_encoded():
    far = Graph(2, [[], []], node_labels=[2**55, -(2**55)])
    encoding = Encoding.fit([far])
    assert encoding.encode([far, Graph(0, [[], []], node_labels=[])]).values[0, :, :, 1:].sum((0, 1)).tolist() == [1, 1]
    assert Encoding.fit([Graph(0, [[], []])]).encode([Graph(0, [[], []])]).values.shape == (1, 0, 0, 1)


def test_a_stored_encoding_with_an_invalid_value_raises_an_error():
    stored = json.loads(Encoding.fit([MOLECULE]).to_json())
    changes = {"adjacency": ["x"], "node_labels": [[1.5], None], "edge_features": ["2"], "degrees": [[1], [0, "1"]]}
    changes |= {"degree_bins": [[1], [2, 1], [1, 1], [-1, 1], [0, "1"], [1e17, 1e17 + 64], None]}
    for change in ({name: value} for name, values in changes.items() for value in values):
        with pytest.raises(OptionError):
            Encoding.from_json(json.dumps({**stored, **change}))
    for number in (1e400, 10**400):
        with pytest.raises(DataError, match=r"^Encoding\.from_json\(text\): degree_bins\[1\] must be "):
            Encoding.from_json(json.dumps({**stored, "degree_bins": [0, number]}))


def test_as_graphs_of_an_encoded_batch_gives_the_edges_back():
    graph = undirected(3, [(0, 1), (1, 1)])
    assert as_graphs(to_padded([graph]).values.squeeze(-1)) == [graph]


@pytest.mark.parametrize(
    ("call", "make"),
    [("Encoding.encode(graphs)", lambda graph, **bound: to_padded([graph], **bound)), ("to_dense(graph)", to_dense)],
)
def test_a_padded_batch_beyond_the_memory_bound_raises_an_error(call, make):
    with pytest.raises(SizesError) as found:
        make(undirected(3_000_000, [(0, 1)]))
    words = str(found.value)
    assert words.startswith(f"{call}: a tensor of ")
    assert "3000000 x 3000000 x 1 numbers would take 36,000,000,000,000 bytes; this machine has " in words
    assert 'layout="sparse"' in words
    with pytest.raises(SizesError, match="would take 360,000 bytes; max_gigabytes allows 359,000"):
        make(undirected(300, [(0, 1)]), max_gigabytes=359e-6)
    make(undirected(300, [(0, 1)]), max_gigabytes=361e-6)


@pytest.mark.parametrize("field", ["degrees", "size_feature", "degree_bins"])
@pytest.mark.parametrize("number", [float("inf"), 10**400, 10**5000], ids=["inf", "large", "too large for repr"])
def test_a_number_beyond_float64_is_no_scale_and_no_degree_bin(field, number):
    with pytest.raises(OptionError, match=f"Encoding: {field} must be"):
        Encoding(**{field: (1, number)})
