"""Valid specs that were probably meant otherwise: a warning has their meaning and the probable one."""

import subprocess
import sys
import warnings
from pathlib import Path

import pytest

import bellnet as bn
from bellnet.errors import SpecWarning
from bellnet.spec import parse_shape, parse_spec, parser


@pytest.fixture(autouse=True)
def _no_earlier_warnings(monkeypatch):
    monkeypatch.setattr(parser, "_warned", set())


def _warnings(call, *arguments):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        call(*arguments)
    assert all(warning.category is SpecWarning for warning in caught)
    return [str(warning.message) for warning in caught]


def test_the_warning_for_letters_without_spaces():
    assert _warnings(parse_spec, "nn->nn") == [
        "The spec \"nn -> nn\" was read as 1 slot -> 1 slot, of the node set 'nn': names are separated by spaces.\n"
        'If each letter is an axis, as in einsum, write "n n -> n n"; if not, other names end this warning.'
    ]


def test_the_warning_for_axes_of_batch_and_channels():
    assert _warnings(parse_spec, "b n n c -> b n n c") == [
        "The spec \"b n n c -> b n n c\" was read as 4 slots -> 4 slots, of the node sets 'b', 'n' and 'c', each of "
        "which can be permuted.\nAxes of batches and channels are not written: if b and c are such axes, write "
        '"n n -> n n"; if not, other names end this warning.'
    ]


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("nn -> n", "n n -> n"),
        ("nn n -> n", "n n n -> n"),
        ("user nn -> user", "user n n -> user"),
        ("nnn ->", "n n n ->"),
        ("nn -> ab", "n n -> a b"),
        ("-> nn", "-> n n"),
        ("ui -> u", "u i -> u"),
        ("ui -> iu", "u i -> i u"),
        ("uui -> ui", "u u i -> u i"),
        ("ij->ji", "i j -> j i"),
        ("b n n -> b n n", "n n -> n n"),
        ("b n n -> b", "n n ->"),
        ("b n c -> b n c", "n -> n"),
        ("b n n c -> b c", "n n ->"),
        ("b n n c -> b n n d", "n n -> n n"),
        ("batch n n -> batch n", "n n -> n"),
        ("B N N C -> B N N C", "N N -> N N"),
        ("n n channels -> n n channels", "n n -> n n"),
        ("n n c -> n c", "n n -> n"),
        ("batch u i features -> batch u features", "u i -> u"),
        ("nn, n -> n", "n n, n -> n"),
        ("n -> n, n", "n -> n n"),
        ("n,n,n ->", "n n n ->"),
        ("b n n c, b n c -> b c", "n n, n ->"),
        ("n n d, n d -> n d", "n n, n -> n"),
    ],
)
def test_a_warning_has_the_probable_meaning(text, meant):
    (warning,) = _warnings(parse_spec, text)
    assert f'write "{meant}"' in warning
    assert _warnings(parse_spec, meant) == []


@pytest.mark.parametrize(("text", "meant"), [("nn", "n n"), ("b n n c", "n n"), ("batch n", "n")])
def test_a_warning_of_a_shape_has_the_probable_meaning(text, meant):
    (warning,) = _warnings(parse_shape, text)
    assert warning.startswith(f'The shape "{text}" was read as ')
    assert f'write "{meant}"' in warning


@pytest.mark.parametrize(
    "text",
    [
        "n n -> n n",
        "->",
        "users -> users",
        "users items -> users",
        "ui -> ui",
        "users -> items",
        "u users -> users",
        "b -> b",
        "b c -> b c",
        "c -> c c",
        "a b c -> c a b",
        "n c -> n c",
        "b n -> b n",
        "b n n -> n b",
        "d d -> d",
        "n1 n2 -> n1",
        "u u i -> u i",
        "n n, n, -> n n, n",
        "u i, u, i -> u i, u, i",
        "a b, b, b c, c -> a b, b, b c, c",
        "n f, n c -> n f, n c",
        "u, i -> u",
        "n n, n n -> n",
        ", n -> n, ,",
    ],
)
def test_a_likely_spec_has_no_warning(text):
    assert _warnings(parse_spec, text) == []


def test_the_warning_for_commas_between_equal_slots():
    assert _warnings(parse_spec, "n,n -> n") == [
        "The spec \"n, n -> n\" was read as tensors of 1 and 1 slots -> 1 slot, of the node set 'n': commas stand "
        'between tensors.\nIf they stand between the slots of one, write "n n -> n"; if not, pass '
        "Spec(source=(('n',), ('n',)), target=('n',))."
    ]


def test_every_spec_has_one_warning():
    assert len(_warnings(bn.plan, "nn->nn")) == 1
    assert _warnings(bn.plan, " nn  -> nn ") == []
    assert _warnings(bn.EquivariantLinear, "nn -> nn", 1, 1) == []
    assert len(_warnings(bn.plan, "mm -> mm")) == 1


def test_a_network_has_one_warning():
    assert len(_warnings(bn.InvariantNet, "nn", [2, 2], 1)) == 1
    assert len(_warnings(bn.EquivariantNet, "mm -> mm", [2, 2, 1])) == 1


def test_a_warning_that_is_an_error_is_raised_again():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for _ in range(2):
            with pytest.raises(SpecWarning):
                bn.plan("nn -> nn")


def test_a_spec_without_a_text_has_no_warning():
    assert _warnings(bn.plan, bn.Spec(("nn",), ("nn",))) == []


def test_the_warning_has_the_line_of_the_caller():
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        bn.EquivariantLinear("nn -> n", 1, 1)
    assert Path(caught[0].filename) == Path(__file__)


def test_the_command_line_prints_the_warning_to_standard_error():
    command = [sys.executable, "-m", "bellnet", "plan", "nn -> nn"]
    finished = subprocess.run(command, capture_output=True, text=True)
    assert finished.returncode == 0
    assert finished.stderr.startswith('bellnet plan: SpecWarning: The spec "nn -> nn" was read as 1 slot')
