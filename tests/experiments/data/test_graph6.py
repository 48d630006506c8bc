"""Graphs are read from files in the format graph6, as networkx reads it."""

import pytest

from bellnet.data import undirected
from bellnet.errors import DataError
from experiments.data import families


def test_a_file_has_a_graph_on_every_line_and_perhaps_a_header(tmp_path):
    path = tmp_path / "graphs.g6"
    path.write_text(">>graph6<<A_\n\nBw\n")
    assert families.read_graph6(path) == [undirected(2, [(0, 1)]), undirected(3, [(0, 1), (0, 2), (1, 2)])]


@pytest.mark.parametrize("line", ["B", "A\x7f", ":An", "&AG", "Bww", "~"])
def test_a_line_that_is_not_graph6_is_named_by_its_place(tmp_path, line):
    path = tmp_path / "bad.g6"
    path.write_text(f"A_\n{line}\n")
    with pytest.raises(DataError, match=rf"^read_graph6: line 2 of {path} is not graph6: "):
        families.read_graph6(path)


def test_a_file_that_is_missing_is_named(tmp_path):
    with pytest.raises(DataError, match=r"^read_graph6: .*none.g6 cannot be read: No such file or directory\.$"):
        families.read_graph6(tmp_path / "none.g6")
