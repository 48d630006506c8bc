"""The scripts of the page and the library give the same maps, plans and messages."""

import random
import sys
import unicodedata

import pytest

from bellnet import Diagram, plan
from bellnet.errors import SpecError
from bellnet.spec import parse_spec
from tests.explorer.scripts import call, library_result, scripts_result
from tests.spec.test_parser import MALFORMED

SPECS = [
    "n n -> n n",
    "n n -> n",
    "n n ->",
    "->",
    "-> n n",
    "n n n -> n n",
    "n n n n -> n n n",
    "u u i -> u i",
    "i u u -> u i i",
    "a b, b, b c, c -> a b, b, b c, c",
    "n n, n, -> n n, n",
    "{n n} -> {n n}",
    "{n n} n -> {n n} n",
    "{u u} i, u -> i {u u}",
    "{n n n n n} -> {n n n n}",
    "n n -> {n n n}",
]
DECLARED = [{}, {"symmetric": True}, {"hollow": True}, {"symmetric": True, "hollow": True}]


@pytest.mark.parametrize("declared", DECLARED, ids=lambda declared: " ".join(declared) or "nothing")
@pytest.mark.parametrize("spec", SPECS)
def test_maps_and_plan_are_those_of_the_library(spec, declared):
    here, there = scripts_result(spec, **declared), library_result(spec, **declared)
    assert here == there
    assert here["maps"]


STRANGE = ["n\u200b -> n", "n 😀 -> n", "😀 n! -> n", "²n -> n", "名 前 -> 名"]
UNUSUAL = ["n' -> n", 'n" -> n', "n'\" -> n", "n\\ -> n", "n\u00a0n -> n", "n \ufeff-> n", "n\x1fn -> n", "n\x7f -> n"]


@pytest.mark.parametrize("text", [*MALFORMED, *UNUSUAL, *STRANGE])
def test_messages_for_invalid_specs_are_those_of_the_library(text):
    assert scripts_result(text) == library_result(text)


def test_the_same_characters_are_allowed_in_names():
    of_kind = {}
    for character in map(chr, range(sys.maxunicode + 1)):
        of_kind.setdefault(unicodedata.category(character), []).append(character)
    some = [one for kind, all_of in of_kind.items() if kind not in ("Cn", "Cs") for one in all_of[:25] + all_of[-5:]]
    texts = [text for character in some for text in (f"{character} ->", f"x1{character} ->")]
    here = call(
        """(texts) => texts.map((text) => {
          try { return scripts.parseSpec(text).sources.join(", "); } catch ({ message }) { return message; }
        })""",
        texts,
    )
    assert dict(zip(texts, here, strict=True)) == {text: _read(text) for text in texts}


def _read(text):
    try:
        return ", ".join(",".join(shape) for shape in parse_spec(text).sources)
    except SpecError as mistake:
        return str(mistake)


DOUBTED = [
    "nn->nn",
    "ui -> u",
    "nn n -> n",
    "b n n c -> b n n c",
    "batch n -> batch",
    "n n d, n d -> n d",
    "B n Channels -> B n n dim",
    "n, n -> n",
    "n, , n -> n, n",
]


@pytest.mark.parametrize("text", DOUBTED)
def test_warnings_for_suspicious_specs_are_those_of_the_library(text):
    here = scripts_result(text)
    assert here == library_result(text)
    assert here["warning"]


def _many(slots, name="n"):
    return " ".join([name] * slots)


GIANTS = [
    f"{_many(10)} ->",
    f"{_many(12)} -> n",
    f"{_many(40, 'users')} -> {_many(40, 'items')}",
    f"-> {_many(501)}",
    f"{' '.join(f'a{number}' for number in range(501))} ->",
    f"{{{_many(30)}}} -> {{{_many(30)}}}",
]


@pytest.mark.parametrize("declared", DECLARED, ids=lambda declared: " ".join(declared) or "nothing")
@pytest.mark.parametrize("text", GIANTS, ids=lambda text: text[:20])
def test_messages_for_too_large_specs_are_those_of_the_library(text, declared):
    here, there = scripts_result(text, **declared), library_result(text, **declared)
    assert here == there


def test_results_for_random_texts_are_those_of_the_library():
    drawn = random.Random(0)
    pieces = ["n", "n ", "u", " ", "->", " -> ", "{", "}", ",", ", ", "{n n}", "3", "!", "i i", "c", "nn", "_"]
    for _ in range(500):
        text = "".join(drawn.choices(pieces, k=drawn.randint(1, 11)))
        declared = drawn.choice(DECLARED)
        assert scripts_result(text, **declared) == library_result(text, **declared), (text, declared)


def test_comparison_with_the_library_can_fail():
    assert scripts_result("n n -> n") != library_result("n n -> n", symmetric=True)
    assert scripts_result("n! -> n") != library_result("n ! -> n")


@pytest.mark.parametrize("spec", ["n n n -> n n", "{n n}, n -> n n, n"])
def test_first_maps_alone_are_the_first_of_all(spec):
    few = call(
        "(text) => scripts.makeDiagrams(scripts.parseSpec(text), {}, 17).map(({ name }) => name)",
        spec,
    )
    assert few == [diagram.name for diagram in plan(spec).diagrams[:17]]


@pytest.mark.parametrize("spec", ["-> n n", "-> n", "-> u i i"])
def test_biases_are_described_as_maps_from_a_vector(spec):
    words = call("(text) => scripts.makePlan(scripts.parseSpec(text), {}).biases.map(scripts.describeBias)", spec)
    the_plan = plan(spec)
    _, target = the_plan.spec.set_numbers
    assert words == [Diagram(pattern, (), target).words() for pattern in the_plan.biases]
