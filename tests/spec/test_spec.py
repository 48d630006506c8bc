from dataclasses import FrozenInstanceError

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bellnet import Spec
from bellnet.errors import SpecError
from bellnet.spec import parse_shape, parse_shapes, parse_spec

NAMES = st.from_regex(r"[a-zA-Z_][a-zA-Z_0-9]{0,5}", fullmatch=True)
SLOTS = st.lists(NAMES, max_size=4).map(tuple)
SPECS = st.builds(Spec, SLOTS, SLOTS)
SIDES = SLOTS | st.lists(SLOTS, min_size=2, max_size=4).map(tuple)
COLLECTIONS = st.builds(Spec, SIDES, SIDES)

pytestmark = pytest.mark.filterwarnings("ignore::bellnet.errors.SpecWarning")  # names are drawn at random


@given(SPECS | COLLECTIONS)
def test_the_text_and_the_repr_of_a_spec_are_parsed_as_the_spec(spec):
    assert parse_spec(str(spec)) == spec
    assert eval(repr(spec)) == spec


@given(SPECS, st.data())
def test_additional_space_around_names_is_ignored(spec, data):
    def around():
        return data.draw(st.text(" \t\n", max_size=2))

    source = "".join(around() + " " + name for name in spec.source)
    target = "".join(name + " " + around() for name in spec.target)
    assert parse_spec(around() + source + around() + "->" + around() + target) == spec


@given(SLOTS)
def test_a_shape_is_one_side_of_a_spec(names):
    assert parse_shape(" ".join(names)) == names == parse_spec(" ".join([*names, "->"])).source


def test_a_spec_is_parsed_as_itself():
    spec = Spec(("n", "n"), ("n",))
    assert parse_spec(spec) is spec


@pytest.mark.parametrize(
    ("text", "source", "target"),
    [
        ("n n -> n n", ("n", "n"), ("n", "n")),
        ("n n ->", ("n", "n"), ()),
        ("-> n n", (), ("n", "n")),
        ("->", (), ()),
        ("u u i->i", ("u", "u", "i"), ("i",)),
        ("users items_2 -> users", ("users", "items_2"), ("users",)),
        ("é λ -> λ", ("é", "λ"), ("λ",)),
    ],
)
def test_names_around_the_arrow_are_source_and_target(text, source, target):
    assert parse_spec(text) == Spec(source, target)


@pytest.mark.parametrize(
    ("text", "sources", "targets"),
    [
        ("n n, n, -> n n, n", (("n", "n"), ("n",), ()), (("n", "n"), ("n",))),
        ("n n -> ", (("n", "n"),), ((),)),
        ("n n -> ,", (("n", "n"),), ((), ())),
        ("u i, u, i -> u i", (("u", "i"), ("u",), ("i",)), (("u", "i"),)),
        (", n -> n, , n", ((), ("n",)), (("n",), (), ("n",))),
        ("a b,b , b c,c->c", (("a", "b"), ("b",), ("b", "c"), ("c",)), (("c",),)),
    ],
)
def test_commas_separate_tensors_which_may_have_no_slots(text, sources, targets):
    spec = parse_spec(text)
    assert (spec.sources, spec.targets) == (sources, targets)
    assert parse_shapes(text.split("->")[0]) == sources


@given(COLLECTIONS)
def test_numbered_slots_are_indices_of_node_sets_for_several_tensors(spec):
    for shapes, numbers in zip((spec.sources, spec.targets), spec.numbered, strict=True):
        assert tuple(tuple(spec.node_sets[number] for number in shape) for shape in numbers) == shapes
    assert spec.pair(0, 0) == Spec(spec.sources[0], spec.targets[0])


def test_several_tensors_have_no_single_source_or_target():
    spec = parse_spec("n n, n -> n, n n, n")
    for side, words in ("source", "has 2 sources: see spec.sources"), ("target", "has 3 targets: see spec.targets"):
        with pytest.raises(SpecError, match=words):
            getattr(spec, side)
    assert parse_spec("u, i -> u i k").target_only == ("k",)


@pytest.mark.parametrize(
    ("text", "node_sets", "numbers", "target_only"),
    [
        ("u i -> u", ("u", "i"), ((0, 1), (0,)), ()),
        ("i u -> u i i", ("i", "u"), ((0, 1), (1, 0, 0)), ()),
        ("b -> a b c a", ("b", "a", "c"), ((0,), (1, 0, 2, 1)), ("a", "c")),
        ("-> z y z", ("z", "y"), ((), (0, 1, 0)), ("z", "y")),
        ("n n ->", ("n",), ((0, 0), ()), ()),
        ("->", (), ((), ()), ()),
    ],
)
def test_node_sets_are_numbered_by_first_appearance(text, node_sets, numbers, target_only):
    spec = parse_spec(text)
    assert spec.node_sets == node_sets
    assert spec.set_numbers == numbers
    assert spec.target_only == target_only


@given(SPECS)
def test_numbered_slots_are_indices_of_node_sets(spec):
    source, target = spec.set_numbers
    assert tuple(spec.node_sets[number] for number in source) == spec.source
    assert tuple(spec.node_sets[number] for number in target) == spec.target
    assert set(spec.target_only) == set(spec.target) - set(spec.source)


def test_a_spec_is_frozen_and_hashable():
    spec = parse_spec("n -> n")
    with pytest.raises(FrozenInstanceError):
        spec.source = ("m",)
    assert hash(spec) == hash(parse_spec("n -> n"))
