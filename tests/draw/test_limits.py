"""Specs, sizes and options that a picture cannot show are refused, before any map is listed."""

import sys

import pytest

from bellnet.cli.main import main
from bellnet.draw import draw_basis, draw_diagrams
from bellnet.errors import OptionError, SizesError, SpecError

COUNTS = {9: "21,147", 10: "115,975", 2000: "at least 10^"}


@pytest.fixture
def no_listing(monkeypatch):
    def fail(*arguments, **options):
        raise AssertionError("maps were listed")

    monkeypatch.setattr(sys.modules["bellnet.plan.diagram"], "partitions", fail)


@pytest.mark.parametrize("slots", COUNTS)
@pytest.mark.parametrize(
    ("draw", "words"),
    [(draw_basis, "maps; a picture shows up to 60."), (draw_diagrams, "diagrams; a picture shows up to 210.")],
)
def test_too_many_maps_are_counted_and_not_listed(draw, words, slots, no_listing):
    with pytest.raises(OptionError) as caught:
        draw("n " * slots + "->")
    first = str(caught.value).split("\n")[0]
    assert first.startswith(f'{draw.__name__}("n n n n n n n n')
    assert f": there are {COUNTS[slots]}" in first
    assert words in first
    assert len(first) < 200


@pytest.mark.parametrize("slots", COUNTS)
def test_the_command_line_refuses_too_many_maps(capsys, tmp_path, slots, no_listing):
    assert main(["basis", "n " * slots + "->", "--out", str(tmp_path / "a.png")]) == 2
    assert capsys.readouterr().err.startswith('bellnet basis: draw_basis("n n n')
    assert list(tmp_path.iterdir()) == []


def test_all_203_diagrams_of_order_three_are_drawn():
    assert len(draw_diagrams("n n n -> n n n").axes) == 203


SMALLER = "\nPass a smaller n: with as many nodes as slots, every map is there to see."
INTEGER = "n must be an integer from 1 up, not "


@pytest.mark.parametrize(
    ("error", "draw", "arguments", "message"),
    [
        (
            OptionError,
            draw_basis,
            ("n n n -> n n n", 2),
            "there are 203 maps; a picture shows up to 60.\n"
            "Lower the order, or use draw_diagrams, which has room for more.",
        ),
        (
            OptionError,
            draw_diagrams,
            ("n n n n -> n n n",),
            "there are 877 diagrams; a picture shows up to 210.\n"
            'Lower the order, or list them as text: bellnet plan "n n n n -> n n n" --diagrams.',
        ),
        (
            OptionError,
            draw_basis,
            ("n n -> n", 13),
            f"the matrices would have 169 columns; a picture shows up to 150.{SMALLER}",
        ),
        (
            OptionError,
            draw_basis,
            ("u -> u i", {"u": 20, "i": 8}),
            f"the matrices would have 160 rows; a picture shows up to 150.{SMALLER}",
        ),
        (
            SizesError,
            draw_basis,
            ("u i -> u", {"u": 3}),
            "n has no entry for node set 'i'.\nPass one number for all, or a dict such as {'u': 10, 'i': 10}.",
        ),
        (
            SizesError,
            draw_basis,
            ("n -> n", {"n": 3, "m": 2}),
            "n has an entry for 'm', but the node sets are 'n'.",
        ),
        (SizesError, draw_basis, ("n -> n", 0), f"{INTEGER}0."),
        (SizesError, draw_basis, ("n -> n", 2.5), f"{INTEGER}2.5."),
        (SizesError, draw_basis, ("n -> n", True), f"{INTEGER}True."),
        (
            SpecError,
            draw_diagrams,
            ("n n, n -> n",),
            "a picture shows the maps from one tensor to one tensor.\n"
            'Draw the pairs one by one, for instance "n n -> n".',
        ),
    ],
)
def test_a_picture_that_cannot_be_drawn_is_refused(error, draw, arguments, message):
    with pytest.raises(error) as caught:
        draw(*arguments)
    assert str(caught.value) == f'{draw.__name__}("{arguments[0]}"): {message}'


def test_an_unknown_basis_and_an_invalid_spec_are_refused():
    with pytest.raises(OptionError, match="basis must be one of 'orbit', 'diagram', not 'fourier'"):
        draw_basis("n -> n", basis="fourier")
    with pytest.raises(SpecError, match="arrow"):
        draw_basis("n n")
