import pytest
from hypothesis import given
from hypothesis import strategies as st

from bellnet import Spec
from bellnet.errors import SpecError
from bellnet.spec import parse_shape, parse_spec

MALFORMED = {
    # the position and number of the carets, and the reason
    "n n": (3, 2, "the arrow '->' between source and target is missing"),
    "": (0, 2, "the arrow '->' between source and target is missing"),
    "n n > n": (7, 2, "the arrow '->' between source and target is missing"),
    "n - > n": (7, 2, "the arrow '->' between source and target is missing"),
    "n -> n -> n": (7, 2, "there is a second arrow"),
    "->->": (2, 2, "there is a second arrow"),
    "n --> n": (2, 1, "'-' is not part of a node set name"),
    "n ->> n": (4, 1, "'>' is not part of a node set name"),
    "u i, u! -> u": (6, 1, "'!' is not part of a node set name"),
    "u i, u -> 3, u": (10, 1, "a node set name does not begin with a digit"),
    "u i,*,i -> u": (4, 1, "'*' is not part of a node set name"),
    "n, n": (4, 2, "the arrow '->' between source and target is missing"),
    "3 n -> n": (0, 1, "a node set name does not begin with a digit"),
    "n -> n 3n": (7, 1, "a node set name does not begin with a digit"),
    "n n -> n!": (8, 1, "'!' is not part of a node set name"),
    "n (n) -> n": (2, 1, "'(' is not part of a node set name"),
    "... n n -> n": (0, 1, "'.' is not part of a node set name"),
    "*b n -> n": (0, 1, "'*' is not part of a node set name"),
    "{n n -> n": (0, 1, "this brace is not closed"),
    "n -> {n, n}": (7, 1, "a comma, which stands between tensors, is inside of braces"),
    "n n} -> n": (3, 1, "this brace was not opened"),
    "{n {n n}} -> n": (3, 1, "there is a brace inside of braces"),
    "n {n} -> n": (2, 3, "fewer than two slots are in braces"),
    "{u i} -> u": (3, 1, "slots of different node sets are in braces"),
    "n -> a-b": (6, 1, "'-' is not part of a node set name"),
}


def _caret(error):
    """The line above the carets, their position in it, and their number."""
    lines = str(error).split("\n")
    under = next(number for number, line in enumerate(lines) if line.strip() and not line.strip("^ "))
    assert lines[under - 1].startswith("    ")
    caret = lines[under]
    return lines[under - 1][4:], len(caret) - len(caret.lstrip()) - 4, caret.count("^")


@pytest.mark.parametrize("text", MALFORMED)
def test_carets_point_at_the_mistake(text):
    at, width, reason = MALFORMED[text]
    with pytest.raises(SpecError) as caught:
        parse_spec(text)
    assert str(caught.value).startswith(f"This spec cannot be read: {reason}.\n\n")
    assert _caret(caught.value) == (text, at, width)


@given(
    names=st.lists(st.sampled_from(["n", "u", "items"]), min_size=1, max_size=5),
    arrow=st.integers(0, 5),
    wrong=st.sampled_from("!@#$%&()[]{}|/?;:'\"+=`~^.*"),
    data=st.data(),
)
def test_carets_point_at_a_wrong_character_at_any_position(names, arrow, wrong, data):
    words = [*names[:arrow], "->", *names[arrow:]]
    text = " ".join(words)
    inside_arrow = text.index("->") + 1
    at = data.draw(st.integers(0, len(text)).filter(lambda at: at != inside_arrow))
    with pytest.raises(SpecError) as caught:
        parse_spec(text[:at] + wrong + text[at:])
    assert _caret(caught.value) == (text[:at] + wrong + text[at:], at, 1)


@pytest.mark.parametrize(
    ("text", "at", "reason", "advice"),
    [
        ("n,n", 1, "slots are separated by spaces, not commas", 'Write "n n".'),
        ("n , n", 2, "slots are separated by spaces, not commas", 'Write "n n".'),
        ("n n,", 3, "slots are separated by spaces, not commas", 'Write "n n".'),
        ("n n, n", 3, "commas part tensors, but this is the shape of one", "Name the slots of one tensor"),
        ("nn,n", 2, "commas part tensors, but this is the shape of one", "Name the slots of one tensor"),
    ],
)
def test_the_shape_of_one_tensor_has_no_commas(text, at, reason, advice):
    with pytest.raises(SpecError) as caught:
        parse_shape(text)
    assert str(caught.value).startswith(f"This spec cannot be read: {reason}.\n\n")
    assert _caret(caught.value) == (text, at, 1)
    assert advice in str(caught.value)


def test_a_spec_without_a_text_has_the_same_rules():
    several = [(("n",), "n"), ()], [(("n",),), ()], [(("n",), ("n", "n m")), ()], [(), (("n",), (("n",),))]
    for source, target in [("n n",), ()], [("",), ()], [("n",), ("a-b",)], [("n", 3), ()], *several:
        with pytest.raises(SpecError):
            Spec(source, target)


def test_a_shape_has_no_arrow():
    with pytest.raises(SpecError) as caught:
        parse_shape("n n -> n")
    assert _caret(caught.value) == ("n n -> n", 4, 2)


@pytest.mark.parametrize("thing", [None, 3, ("n", "n"), ["n -> n"], b"n -> n"])
def test_other_objects_than_strings_are_not_parsed(thing):
    with pytest.raises(SpecError, match=r"^A spec is a string, but this is a "):
        parse_spec(thing)
