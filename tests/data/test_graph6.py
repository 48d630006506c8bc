"""graph6 is what networkx reads and writes."""

import networkx as nx
import pytest

from bellnet.data import Graph, as_graph, graph6, to_networkx, undirected
from bellnet.errors import DataError

GRAPHS = [
    nx.empty_graph(0),
    nx.empty_graph(1),
    nx.path_graph(2),
    nx.petersen_graph(),
    *map(nx.cycle_graph, (62, 63, 70)),
]


@pytest.mark.parametrize("network", GRAPHS, ids=len)
def test_what_networkx_writes_is_read_and_the_other_way_round(network):
    written = nx.to_graph6_bytes(network, header=False).strip()
    assert graph6.read(written) == as_graph(network)
    assert graph6.write(as_graph(network)) == written.decode()
    assert nx.is_isomorphic(to_networkx(graph6.read(written.decode())), network)


def test_a_graph_of_many_nodes_says_so_in_eight_characters():
    size = graph6._characters_of_size(1 << 18)
    assert graph6._size(bytes([*size, 63])) == (1 << 18, b"?")


def test_a_file_has_a_graph_on_every_line_and_perhaps_a_header(tmp_path):
    path = tmp_path / "graphs.g6"
    path.write_text(">>graph6<<A_\n\nBw\n")
    assert graph6.load(path) == [undirected(2, [(0, 1)]), undirected(3, [(0, 1), (0, 2), (1, 2)])]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "line is not graph6: expected characters from ? to ~, but it is ''."),
        ("A\x1b", r"line is not graph6: expected characters from ? to ~, but it is 'A\x1b'."),
        (":An", "line is sparse6, not graph6.\nConvert it, for instance with networkx."),
        ("&AG", "line is digraph6, not graph6.\nConvert it, for instance with networkx."),
        ("Bww", "line is not graph6: 3 nodes take 1 characters after their number, but there are 2."),
    ],
)
def test_what_is_not_graph6_is_named(text, words):
    with pytest.raises(DataError) as caught:
        graph6.read(text, where="line")
    assert str(caught.value) == words


def test_a_bad_line_and_a_missing_file_are_named_by_their_place(tmp_path):
    path = tmp_path / "bad.g6"
    path.write_text("A_\nB\n")
    with pytest.raises(DataError, match=rf"^graph6.load: line 2 of {path} is not graph6: 3 nodes take 1 characters"):
        graph6.load(path)
    with pytest.raises(DataError, match=r"^graph6.load: .*none.g6 cannot be read: No such file or directory\.$"):
        graph6.load(tmp_path / "none.g6")


@pytest.mark.parametrize("graph", [Graph(2, [[0], [1]], directed=True), undirected(1, [(0, 0)])])
def test_what_graph6_has_no_place_for_is_refused(graph):
    with pytest.raises(DataError, match=r"^graph6.write: the graph must be undirected and without self-loops\.$"):
        graph6.write(graph)
