"""A diagram is a contraction, a permutation and a broadcast, and every such triple of a level is a diagram."""

from collections import Counter

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


def _partition(contraction, permutation, broadcast):
    """The partition with these three parts: dropped blocks are separate, others are joined by the permutation."""
    source = [("source", block) for block in contraction.blocks]
    joined = {broadcast.kept[axis]: ("source", contraction.kept[other]) for axis, other in enumerate(permutation)}
    target = [joined.get(block, ("target", block)) for block in broadcast.blocks]
    return canonical(source + target)


@pytest.mark.parametrize("spec", SPECS)
def test_a_diagram_is_determined_by_its_three_parts(spec):
    for diagram in plan(spec).diagrams:
        assert _partition(diagram.contraction, diagram.permutation, diagram.broadcast) == diagram.partition


@pytest.mark.parametrize("spec", SPECS)
def test_the_index_of_a_level_has_the_diagram_of_every_triple(spec):
    for level in plan(spec).levels:
        for permutation, plane in zip(level.permutations, level.index, strict=True):
            for contraction, row in zip(level.contractions, plane, strict=True):
                for broadcast, number in zip(level.broadcasts, row, strict=True):
                    expected = plan(spec).diagrams[number].partition
                    assert _partition(contraction, permutation, broadcast) == expected


@pytest.mark.parametrize("spec", [*SPECS, "u u i i -> u i"])
@pytest.mark.parametrize("declared", [{}, {"symmetric": True}, {"symmetric": True, "hollow": True}])
def test_the_index_of_the_levels_has_every_diagram_once(spec, declared):
    the_plan = plan(spec, **declared)
    numbers = [number for level in the_plan.levels for plane in level.index for row in plane for number in row]
    assert sorted(number for number in numbers if number is not None) == list(range(the_plan.n_maps))


@pytest.mark.parametrize("spec", SPECS)
def test_permutations_are_of_axes_of_one_node_set(spec):
    for diagram in plan(spec).diagrams:
        sets = diagram.contraction.axis_sets
        assert tuple(sets[axis] for axis in diagram.permutation) == diagram.broadcast.axis_sets
        assert list(sets) == sorted(sets)


@pytest.mark.parametrize("spec", SPECS)
def test_the_rank_is_the_number_of_blocks_with_slots_on_both_sides(spec):
    for diagram in plan(spec).diagrams:
        k = len(diagram.source_sets)
        source, target = diagram.partition[:k], diagram.partition[k:]
        both = sorted(block for block in set(diagram.partition) if block in source and block in target)
        assert list(diagram.crossing) == both
        assert diagram.contraction.rank == diagram.broadcast.rank == len(diagram.permutation) == len(both)


@pytest.mark.parametrize("spec", SPECS)
def test_the_letters_of_a_name_are_the_blocks(spec):
    for diagram in plan(spec).diagrams:
        source, arrow, target = diagram.name.partition("->")
        assert arrow == "->"
        assert canonical(source + target) == diagram.partition
        assert len(source) == len(diagram.source_sets)
        assert str(diagram) == diagram.name


FIFTEEN = {
    "aa->aa": ("take the diagonal a, place on the diagonal a", "the diagonal, on the diagonal"),
    "aa->ab": ("take the diagonal a, repeat along b as ab", "the diagonal, along the rows"),
    "aa->ba": ("take the diagonal a, repeat along b as ba", "the diagonal, along the columns"),
    "aa->bb": (
        "take the diagonal a, sum over a, repeat along b, place on the diagonal b",
        "the mean of the diagonal, on the diagonal",
    ),
    "aa->bc": ("take the diagonal a, sum over a, repeat along bc", "the mean of the diagonal, everywhere"),
    "ab->aa": ("sum over b, place on the diagonal a", "row means, on the diagonal"),
    "ab->ab": ("copy", "the input, unchanged"),
    "ab->ac": ("sum over b, repeat along c as ac", "row means, along the rows"),
    "ab->ba": ("permute the axes", "the transpose"),
    "ab->bb": ("sum over a, place on the diagonal b", "column means, on the diagonal"),
    "ab->bc": ("sum over a, repeat along c as bc", "column means, along the rows"),
    "ab->ca": ("sum over b, repeat along c as ca", "row means, along the columns"),
    "ab->cb": ("sum over a, repeat along c as cb", "column means, along the columns"),
    "ab->cc": ("sum over ab, repeat along c, place on the diagonal c", "the mean of all entries, on the diagonal"),
    "ab->cd": ("sum over ab, repeat along cd", "the mean of all entries, everywhere"),
}


def test_the_fifteen_maps_between_matrices_are_described():
    assert {one.name: (one.describe(), one.words()) for one in plan("n n -> n n").diagrams} == FIFTEEN


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
def test_results_of_other_maps_are_described(spec, name, words):
    (diagram,) = [diagram for diagram in plan(spec).diagrams if diagram.name == name]
    assert diagram.words(means=False) == words


SIDES = ["", "u", "i", "u u", "u i", "i u", "i i"]
SMALL = [f"{source} -> {target}" for source in SIDES for target in SIDES]


@pytest.mark.parametrize("spec", [*SMALL, *SPECS, "n n n n -> n n n", "u u i i -> u i u i", "n n n -> n n n n"])
def test_descriptions_of_maps_of_a_spec_differ(spec):
    diagrams = plan(spec).diagrams
    for in_words in (Diagram.describe, Diagram.words):
        alike = Counter(map(in_words, diagrams))
        assert {words: count for words, count in alike.items() if count > 1} == {}


@pytest.mark.parametrize(
    ("partition", "words"),
    [
        ((0, 1, 2, 2, 0, 1), "permute the axes as cab"),
        ((0, 1, 2, 1, 0, 3), "sum over c, permute the axes, repeat along d as bad"),
        ((0, 0, 1, 1, 2, 2), "take the diagonal a of aab, sum over a, repeat along c, place on the diagonal c of bcc"),
        ((0, 1, 0, 1, 1, 1), "take the diagonal a of aba, sum over a, place on the diagonal b of bbb"),
    ],
)
def test_steps_of_maps_of_order_three_are_described(partition, words):
    assert Diagram(partition, (0, 0, 0), (0, 0, 0)).describe() == words


def test_only_the_identity_is_called_a_copy():
    for spec in SPECS:
        for diagram in plan(spec).diagrams:
            k = len(diagram.source_sets)
            unchanged = diagram.partition[:k] == diagram.partition[k:] == tuple(range(k))
            assert (diagram.describe() == "copy") == unchanged, f"{diagram} in {spec}"
