"""BREC is read from one file or from several, as its authors write them."""

import numpy as np
import pytest

from bellnet.data import undirected
from bellnet.errors import DataError
from experiments.data import families
from tests.experiments.data.lines import as_graph6

PATH, STAR = undirected(4, [(0, 1), (1, 2), (2, 3)]), undirected(4, [(0, 1), (0, 2), (0, 3)])


def save(path, records, shape=(-1,)):
    path.parent.mkdir(exist_ok=True, parents=True)
    np.save(path, np.array(records).reshape(shape))


def whole(pairs):
    """32 copies of both graphs by turns for each pair, then as many of the first for the test of reliability."""
    turns = [text for first, second in pairs for text in [first, second] * 32]
    return [*turns, *(first for first, _ in pairs for _ in range(64))]


def test_the_whole_file_has_400_pairs_in_six_categories(tmp_path):
    """Each pair is a path and a star but for one of the extensions, number 160 of all."""
    path, star = (as_graph6(graph).encode() for graph in (PATH, STAR))
    pairs = [(path, star)] * 160 + [(star, path)] + [(path, star)] * 239
    save(tmp_path / "Data" / "raw" / "brec_v3.npy", whole(pairs))
    found = families.load_brec(tmp_path)
    assert {name: len(some) for name, some in found.items()} == {
        name: count for name, (count, _) in families.BREC.items()
    }
    assert found["basic"][0].graphs == (PATH, STAR)
    swapped = [pair.name for some in found.values() for pair in some if pair.graphs[0] == STAR]
    assert swapped == ["extension 160"]


def test_separate_files_are_flat_or_pairs_of_text_or_bytes(tmp_path):
    path, star = map(as_graph6, (PATH, STAR))
    save(tmp_path / "basic.npy", [path, star, star, path])
    save(tmp_path / "regular.npy", [path.encode(), star.encode()], (1, 2))
    save(tmp_path / "str.npy", [star, path])
    found = families.load_brec(tmp_path)
    assert {name: [pair.name for pair in some] for name, some in found.items()} == {
        "basic": ["basic 0", "basic 1"],
        "regular": ["regular 0", "str 0"],
    }
    assert tuple(pair.graphs[0] for pair in found["regular"]) == (PATH, STAR)


@pytest.mark.parametrize(
    ("name", "records", "words"),
    [
        (
            "brec_v3.npy",
            ["A_", "A?"],
            "must hold 51,200 graphs, or 25,600 without the test of reliability, but it holds 2.",
        ),
        ("cfi.npy", ["A_"], "must hold pairs of graphs, but it holds 1 graphs."),
        ("dr.npy", [1.0, 2.0], "must be an array of graph6, which are bytes or text."),
        ("dr.npy", ["A_", "A"], "is not graph6: Expected 1 bits but got 0 in graph6."),
    ],
)
def test_a_file_that_is_something_else_is_named(tmp_path, name, records, words):
    save(tmp_path / name, records)
    with pytest.raises(DataError) as caught:
        families.load_brec(tmp_path)
    assert str(caught.value).startswith("load_brec: ")
    assert str(tmp_path / name) in str(caught.value)
    assert str(caught.value).endswith(words)


def test_objects_are_not_unpickled_and_an_empty_folder_is_refused(tmp_path):
    with pytest.raises(
        DataError, match=r"has none of BREC's files\.\nIt must hold brec_v3\.npy, or some of basic\.npy"
    ):
        families.load_brec(tmp_path)
    np.save(tmp_path / "dr.npy", np.array(["A_", None], dtype=object), allow_pickle=True)
    with pytest.raises(DataError, match=r"dr\.npy cannot be read as an array of numpy: "):
        families.load_brec(tmp_path)
