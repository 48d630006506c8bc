"""Bounds of zips, and zips whose directory is wrong."""

import random
import struct
import tracemalloc
import zipfile

import pytest

from bellnet.data import tu
from bellnet.data.tu.unzip import FREE, MAX_RATIO, MAX_UNPACKED
from bellnet.errors import DataError
from tests.data.tu.small import FILES, claim, with_zip64, write_zip

METHODS = {
    "stored": zipfile.ZIP_STORED,
    "deflate": zipfile.ZIP_DEFLATED,
    "bzip2": zipfile.ZIP_BZIP2,
    "LZMA": zipfile.ZIP_LZMA,
}
MANY = 2**21


def bomb(file, *, compression=zipfile.ZIP_DEFLATED):
    """A zip whose node labels go on for 4 megabytes."""
    return write_zip(file, compression=compression, node_labels="5\n" * MANY)


def peak(call):
    """What a call says in refusing something, and the most memory it had at once."""
    tracemalloc.start()
    try:
        with pytest.raises(DataError) as caught:
            call()
        return str(caught.value), tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("method", METHODS)
def test_each_compression_method_is_read(tmp_path, method):
    found = tu.load(data=write_zip(tmp_path / "SMALL.zip", compression=METHODS[method]), cache=False)
    assert [graph.n for graph in found.graphs] == [3, 1, 2]
    assert found.graphs[0].node_labels.tolist() == [5, 6, 5]


@pytest.mark.parametrize("method", METHODS)
def test_a_member_that_claims_more_than_the_bound_raises_an_error_before_it_is_unpacked(tmp_path, method):
    path = bomb(tmp_path / "SMALL.zip", compression=METHODS[method])
    message, most = peak(lambda: tu.load(data=path, cache=False, max_unpacked=2**20))
    assert "SMALL_node_labels.txt unpacks to 4194304 bytes; at most 1048576 are read" in message
    assert most < 2**21


@pytest.mark.parametrize("method", METHODS)
def test_a_member_larger_than_its_claim_raises_an_error(tmp_path, method):
    path = claim(bomb(tmp_path / "SMALL.zip", compression=METHODS[method]), unpacked=12)
    message, most = peak(lambda: tu.load(data=path, cache=False))
    assert "SMALL_node_labels.txt goes on after the 12 bytes that the directory of the zip claims" in message
    assert most < 2**22


def test_the_ratio_uses_the_actual_size_of_the_zip(tmp_path):
    path = write_zip(tmp_path / "SMALL.zip", node_labels="5\n" * FREE)
    content = bytearray(path.read_bytes())
    struct.pack_into("<I", content, content.rindex(b"SMALL/SMALL_node_labels.txt") - 46 + 20, 2**31)
    path.write_bytes(content)
    with pytest.raises(DataError, match=f"at most {MAX_RATIO:g} times are read"):
        tu.load(data=path, cache=False)


def test_a_member_within_a_raised_bound_is_read(tmp_path):
    lines = FREE // 2 + 1
    files = {"A": "1, 1\n", "graph_labels": "1\n", "graph_indicator": "1\n" * lines}
    path = write_zip(tmp_path / "SMALL.zip", files=files)
    with pytest.raises(DataError, match="max_ratio=") as caught:
        tu.load(data=path, cache=False)
    message = str(caught.value)
    enough = float(message.partition("max_ratio=")[2].partition(")")[0])
    (graph,) = tu.load(data=path, cache=False, max_ratio=enough).graphs
    assert graph.n == lines
    with pytest.raises(DataError, match=r"max_unpacked=33554434\)"):
        tu.load(data=path, cache=False, max_ratio=enough, max_unpacked=FREE)


def test_a_short_member_may_have_any_ratio(tmp_path):
    files = {"A": "1, 1\n", "graph_labels": "1\n", "graph_indicator": "1\n" * 2**18}
    path = write_zip(tmp_path / "SMALL.zip", files=files, compression=zipfile.ZIP_LZMA)
    with zipfile.ZipFile(path) as zipped:
        packed = zipped.getinfo("SMALL/SMALL_graph_indicator.txt").compress_size
    assert MAX_RATIO * packed < 2**19
    assert tu.load(data=path, cache=False).graphs[0].n == 2**18


def test_the_published_data_sets_are_within_half_of_the_bounds(real):
    zips = sorted(real.glob("*.zip"))
    assert len(zips) == 8
    for file in zips:
        with zipfile.ZipFile(file) as zipped:
            for member in zipped.infolist():
                assert member.file_size < MAX_UNPACKED / 2
                assert member.file_size < max(FREE, MAX_RATIO * member.compress_size) / 2


def test_members_of_no_data_set_are_not_unpacked(tmp_path):
    path = write_zip(tmp_path / "SMALL.zip", extra=["README.txt"])
    with zipfile.ZipFile(path, "a", zipfile.ZIP_DEFLATED) as zipped:
        zipped.writestr("other/README.txt", "0" * 2**21)
    assert len(tu.load(data=path, cache=False, max_unpacked=2**20)) == 3


@pytest.mark.filterwarnings("ignore:Duplicate name")
@pytest.mark.parametrize("second", ["SMALL/SMALL_node_labels.txt", "other/SMALL_node_labels.txt", "./SMALL_A.txt"])
def test_a_file_that_occurs_twice_in_a_zip_raises_an_error(tmp_path, second):
    with pytest.raises(DataError, match="occurs twice"):
        tu.load(data=write_zip(tmp_path / "SMALL.zip", extra=[second]), cache=False)


def test_a_folder_in_a_zip_is_not_read_as_a_file(tmp_path):
    path = write_zip(tmp_path / "SMALL.zip", node_labels=None)
    with zipfile.ZipFile(path, "a") as zipped:
        zipped.writestr("SMALL/", "")
        zipped.writestr("SMALL/SMALL_node_labels.txt/", "")
        zipped.writestr("SMALL/SMALL_node_labels.txt/x", "")
    assert tu.load(data=path, cache=False).graphs[0].node_labels is None


def test_a_zip_may_count_its_members_in_a_zip64_record_alone(tmp_path):
    path = with_zip64(write_zip(tmp_path / "SMALL.zip"))
    assert [graph.n for graph in tu.load(data=path, cache=False).graphs] == [3, 1, 2]
    with zipfile.ZipFile(path, "a") as zipped:
        zipped.comment = b"with a comment"
    path = with_zip64(path)
    assert [graph.n for graph in tu.load(data=path, cache=False).graphs] == [3, 1, 2]


@pytest.mark.parametrize("count", [7, 9, 2**16 - 1, 2**16 + 7])
def test_a_zip64_record_with_another_count_raises_an_error(tmp_path, count):
    path = with_zip64(write_zip(tmp_path / "SMALL.zip"), count=count)
    with pytest.raises(DataError, match=f"SMALL.zip cannot be read: of {count} members its directory has 8"):
        tu.load(data=path, cache=False)


@pytest.mark.parametrize("n_members", [2**16 - 1, 2**16 + 1])
def test_a_zip_may_have_more_members_than_its_old_end_can_count(tmp_path, n_members):
    extra = [f"{number}" for number in range(n_members - len(FILES))]
    path = write_zip(tmp_path / "SMALL.zip", compression=zipfile.ZIP_STORED, extra=extra)
    assert len(tu.load("SMALL", path, cache=False)) == 3


@pytest.mark.parametrize("method", METHODS)
def test_a_zip_with_a_flipped_bit_gives_the_same_graphs_or_an_error(tmp_path, method):
    path = write_zip(tmp_path / "SMALL.zip", compression=METHODS[method])
    whole = path.read_bytes()
    right = tu.load("SMALL", path, cache=False)
    bits = random.Random(method).sample(range(8 * len(whole)), 150)
    directory = 8 * whole.index(b"PK\1\2")
    bits += random.Random(method).sample(range(directory, 8 * len(whole)), 150)
    refused = 0
    for bit in bits:
        content = bytearray(whole)
        content[bit // 8] ^= 1 << bit % 8
        path.write_bytes(content)
        try:
            found = tu.load("SMALL", path, cache=False)
        except DataError:
            refused += 1
            continue
        assert found.graphs == right.graphs, bit
        assert (found.classes, found.name) == (right.classes, right.name), bit
        assert found.labels.equal(right.labels), bit
        assert found.targets.equal(right.targets), bit
    assert 0 < refused < len(bits)


EXTREME = {"least": -(2**63), "most": 2**63 - 1}


@pytest.mark.parametrize("ending", ["graph_labels", "node_labels"])
@pytest.mark.parametrize("label", EXTREME.values(), ids=EXTREME)
def test_the_least_and_largest_int64_labels_are_read_exactly(tmp_path, ending, label):
    lines = FILES[ending].splitlines()[1:]
    path = write_zip(tmp_path / "SMALL.zip", **{ending: "\n".join([f"{label}", *lines])})
    found = tu.load(data=path, cache=False)
    assert label in (found.classes if ending == "graph_labels" else found.graphs[0].node_labels.tolist())


@pytest.mark.parametrize("ending", ["graph_labels", "node_labels", "edge_labels", "graph_indicator", "A"])
@pytest.mark.parametrize("label", [2**63, -(2**63) - 1, 10**30, 10**5000], ids=["most", "least", "long", "very long"])
def test_a_label_beyond_int64_raises_an_error(tmp_path, ending, label):
    import sys

    before = sys.get_int_max_str_digits()
    sys.set_int_max_str_digits(0)
    try:
        text = str(label)
    finally:
        sys.set_int_max_str_digits(before)
    lines = FILES[ending].splitlines()
    changed = "\n".join([lines[0], f"{text}, 1" if ending == "A" else text, *lines[2:]]) + "\n"
    with pytest.raises(DataError, match=f"SMALL_{ending}.txt, line 2: expected .* within int64, got '-?[19]"):
        tu.load(data=write_zip(tmp_path / "SMALL.zip", **{ending: changed}), cache=False)


def test_labels_that_would_be_too_many_features_raise_an_error(tmp_path):
    lines = 20_000
    files = {
        "A": "1, 1\n" * lines,
        "edge_labels": "".join(f"{line}\n" for line in range(lines)),
        "graph_indicator": "1\n",
        "graph_labels": "1\n",
    }
    path = write_zip(tmp_path / "SMALL.zip", files=files)
    message, most = peak(lambda: tu.load(data=path, cache=False))
    assert "SMALL_edge_labels.txt: 20000 lines with 20000 different labels" in message
    assert most < 2**24


@pytest.mark.parametrize("value", ["1e999", "-1e999"])
def test_an_attribute_beyond_float64_raises_an_error(tmp_path, value):
    path = write_zip(tmp_path / "SMALL.zip", graph_attributes=f"1\n{value}\n2\n")
    with pytest.raises(DataError, match=f"line 2: expected 1 number within float64, got '{value}'"):
        tu.load(data=path, cache=False)
