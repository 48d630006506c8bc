"""Graphs are read from files in the format graph6, as networkx reads it."""

import pytest

from bellnet.data import undirected
from bellnet.errors import DataError
from experiments.data import graph6


def test_a_file_has_a_graph_on_every_line_and_perhaps_a_header(tmp_path):
    path = tmp_path / "graphs.g6"
    path.write_text(">>graph6<<A_\n\nBw\n")
    assert graph6.load(path) == [undirected(2, [(0, 1)]), undirected(3, [(0, 1), (0, 2), (1, 2)])]


@pytest.mark.parametrize("line", ["B", "A\x7f", ":An", "&AG", "Bww", "~"])
def test_a_line_that_is_not_graph6_is_named_by_its_place(tmp_path, line):
    path = tmp_path / "bad.g6"
    path.write_text(f"A_\n{line}\n")
    with pytest.raises(DataError, match=rf"^graph6.load: line 2 of {path} is not graph6: "):
        graph6.load(path)


def test_a_file_that_is_missing_is_named(tmp_path):
    with pytest.raises(DataError, match=r"^graph6.load: .*none.g6 cannot be read: No such file or directory\.$"):
        graph6.load(tmp_path / "none.g6")
