"""Every diagram is one read, one swap and one write, and every read, swap and write is one diagram."""

import pytest

from bellnet import Diagram, plan
from bellnet.combinatorics import canonical

SPECS = [
    "n n -> n n",
    "n n n -> n n",
    "n n -> n n n",
    "n n n -> n n n",
    "n n n n ->",
    "-> n n n",
    "->",
    "u i -> i u",
    "u i u -> i u",
    "i u i -> u u i",
    "a b c -> c a b",
]


def _put_together(read, permutation, write):
    """The partition with these three parts: dropped blocks stay apart, kept blocks are joined as the swap says."""
    source = [("read", block) for block in read.blocks]
    joined = {write.kept[axis]: ("read", read.kept[permutation[axis]]) for axis in range(len(permutation))}
    target = [joined.get(block, ("write", block)) for block in write.blocks]
    return canonical(source + target)


@pytest.mark.parametrize("spec", SPECS)
def test_a_diagram_is_put_together_again_from_its_three_parts(spec):
    for diagram in plan(spec).diagrams:
        assert _put_together(diagram.contraction, diagram.permutation, diagram.broadcast) == diagram.partition


@pytest.mark.parametrize("spec", SPECS)
def test_no_two_diagrams_have_the_same_three_parts(spec):
    diagrams = plan(spec).diagrams
    assert len({(diagram.contraction, diagram.permutation, diagram.broadcast) for diagram in diagrams}) == len(diagrams)


@pytest.mark.parametrize("spec", SPECS)
def test_the_index_of_a_level_numbers_the_diagram_of_every_read_swap_and_write(spec):
    seen = []
    for level in plan(spec).levels:
        for permutation, plane in zip(level.permutations, level.index, strict=True):
            for read, row in zip(level.contractions, plane, strict=True):
                for write, number in zip(level.broadcasts, row, strict=True):
                    assert _put_together(read, permutation, write) == plan(spec).diagrams[number].partition
                    seen.append(number)
    assert sorted(seen) == list(range(plan(spec).n_maps))


@pytest.mark.parametrize("spec", ["n n -> n n", "n n n -> n n", "u u i i -> u i"])
@pytest.mark.parametrize("hollow", [False, True])
def test_with_a_declared_symmetry_the_index_still_numbers_every_diagram_once(spec, hollow):
    declared = plan(spec, symmetric=True, hollow=hollow)
    seen = [number for level in declared.levels for plane in level.index for row in plane for number in row]
    assert sorted(number for number in seen if number is not None) == list(range(declared.n_maps))


@pytest.mark.parametrize("spec", SPECS)
def test_swaps_keep_every_axis_in_its_node_set(spec):
    for diagram in plan(spec).diagrams:
        read_sets, write_sets = diagram.contraction.axis_sets, diagram.broadcast.axis_sets
        assert tuple(read_sets[axis] for axis in diagram.permutation) == write_sets
        assert list(read_sets) == sorted(read_sets)


@pytest.mark.parametrize("spec", SPECS)
def test_the_rank_is_the_number_of_blocks_with_slots_on_both_sides(spec):
    for diagram in plan(spec).diagrams:
        k = len(diagram.source_sets)
        source, target = diagram.partition[:k], diagram.partition[k:]
        both = sorted(block for block in set(diagram.partition) if block in source and block in target)
        assert list(diagram.crossing) == both
        assert diagram.contraction.rank == diagram.broadcast.rank == len(diagram.permutation) == len(both)


@pytest.mark.parametrize("spec", SPECS)
def test_a_name_is_the_diagram(spec):
    for diagram in plan(spec).diagrams:
        source, arrow, target = diagram.name.partition("->")
        assert arrow == "->"
        assert canonical(source + target) == diagram.partition
        assert len(source) == len(diagram.source_sets)
        assert str(diagram) == diagram.name


def test_the_fifteen_maps_between_matrices_have_names_and_say_what_they_do():
    assert {diagram.name: diagram.describe() for diagram in plan("n n -> n n").diagrams} == {
        "aa->aa": "take the diagonal a, place on the diagonal a",
        "aa->ab": "take the diagonal a, repeat along b as ab",
        "aa->ba": "take the diagonal a, repeat along b as ba",
        "aa->bb": "take the diagonal a, sum over a, repeat along b, place on the diagonal b",
        "aa->bc": "take the diagonal a, sum over a, repeat along bc",
        "ab->aa": "sum over b, place on the diagonal a",
        "ab->ab": "copy",
        "ab->ac": "sum over b, repeat along c as ac",
        "ab->ba": "permute the axes",
        "ab->bb": "sum over a, place on the diagonal b",
        "ab->bc": "sum over a, repeat along c as bc",
        "ab->ca": "sum over b, repeat along c as ca",
        "ab->cb": "sum over a, repeat along c as cb",
        "ab->cc": "sum over ab, repeat along c, place on the diagonal c",
        "ab->cd": "sum over ab, repeat along cd",
    }


def test_the_fifteen_maps_between_matrices_say_what_comes_out():
    assert {diagram.name: diagram.words() for diagram in plan("n n -> n n").diagrams} == {
        "aa->aa": "the diagonal, on the diagonal",
        "aa->ab": "the diagonal, along the rows",
        "aa->ba": "the diagonal, along the columns",
        "aa->bb": "the mean of the diagonal, on the diagonal",
        "aa->bc": "the mean of the diagonal, everywhere",
        "ab->aa": "row means, on the diagonal",
        "ab->ab": "the input, unchanged",
        "ab->ac": "row means, along the rows",
        "ab->ba": "the transpose",
        "ab->bb": "column means, on the diagonal",
        "ab->bc": "column means, along the rows",
        "ab->ca": "row means, along the columns",
        "ab->cb": "column means, along the columns",
        "ab->cc": "the mean of all entries, on the diagonal",
        "ab->cd": "the mean of all entries, everywhere",
    }


@pytest.mark.parametrize(
    ("spec", "name", "words"),
    [
        ("n -> n", "a->b", "the sum, at every node"),
        ("n -> n n", "a->ba", "the values, along the columns"),
        ("-> n n", "->aa", "one value, on the diagonal"),
        ("u i -> i u", "ab->ba", "the transpose"),
        ("n n n -> n n", "abc->ca", "sums over b, transposed"),
        ("n n n -> n n", "aba->cb", "sums over a of the diagonal aba, along the columns"),
        ("n n -> n n n", "ab->bca", "the entries, repeated as bca"),
        ("n n n -> n n n", "abc->bca", "the entries, as bca"),
        ("n n n -> n n n", "aab->bba", "the diagonal aab, on the diagonal bba"),
    ],
)
def test_other_maps_say_what_comes_out(spec, name, words):
    (diagram,) = [diagram for diagram in plan(spec).diagrams if diagram.name == name]
    assert diagram.words(means=False) == words


SIDES = ["", "u", "i", "u u", "u i", "i u", "i i"]
SMALL = [f"{source} -> {target}" for source in SIDES for target in SIDES]


@pytest.mark.parametrize("spec", [*SMALL, *SPECS, "n n n n -> n n n", "u u i i -> u i u i", "n n n -> n n n n"])
def test_no_two_maps_of_a_spec_have_the_same_words(spec):
    diagrams = plan(spec).diagrams
    for in_words in (Diagram.describe, Diagram.words):
        alike = {}
        for diagram in diagrams:
            alike.setdefault(in_words(diagram), []).append(diagram.name)
        assert {words: names for words, names in alike.items() if len(names) > 1} == {}


@pytest.mark.parametrize(
    ("partition", "words"),
    [
        ((0, 1, 2, 2, 0, 1), "permute the axes as cab"),
        ((0, 1, 2, 1, 0, 3), "sum over c, permute the axes, repeat along d as bad"),
        ((0, 0, 1, 1, 2, 2), "take the diagonal a of aab, sum over a, repeat along c, place on the diagonal c of bcc"),
        ((0, 1, 0, 1, 1, 1), "take the diagonal a of aba, sum over a, place on the diagonal b of bbb"),
    ],
)
def test_maps_of_order_three_say_what_they_do(partition, words):
    assert Diagram(partition, (0, 0, 0), (0, 0, 0)).describe() == words


def test_only_a_map_that_changes_nothing_is_called_a_copy():
    for spec in SPECS:
        for diagram in plan(spec).diagrams:
            k = len(diagram.source_sets)
            unchanged = diagram.partition[:k] == diagram.partition[k:] == tuple(range(k))
            assert (diagram.describe() == "copy") == unchanged, f"{diagram} in {spec}"
