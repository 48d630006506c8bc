"""The picture of a diagram joins the slots of its blocks, and no others."""

from functools import cache

import pytest
from matplotlib.colors import to_hex
from matplotlib.patches import PathPatch

from bellnet import plan
from bellnet.combinatorics import canonical
from bellnet.draw import draw_diagrams, style

SPECS = ["n n -> n n", "n n n -> n", "n n n -> n n", "u i -> u i", "u u i -> u i", "-> n n", "n n ->", "->"]


def dots(axes):
    """The dots, upper row first, each row from left to right."""
    found = [line for line in axes.lines if line.get_marker() not in ("None", None)]
    return sorted(found, key=lambda dot: (-position(dot)[1], position(dot)[0]))


def position(dot):
    return round(float(dot.get_xdata()[0]), 6), round(float(dot.get_ydata()[0]), 6)


def strands(axes):
    """The ends of every curve, and its colour."""
    curves = [patch for patch in axes.patches if isinstance(patch, PathPatch)]
    return [
        (*(tuple(round(float(x), 6) for x in curve.get_path().vertices[end]) for end in (0, -1)), color_of(curve))
        for curve in curves
    ]


def color_of(curve):
    return to_hex(curve.get_edgecolor())


def joined(axes):
    """The partition of the dots that the curves make."""
    block = {position(dot): number for number, dot in enumerate(dots(axes))}
    for start, end, _ in strands(axes):
        one, other = block[start], block[end]
        block = {where: one if number == other else number for where, number in block.items()}
    return canonical(block.values())


@cache
def panels(spec):
    return {axes.get_title(loc="left"): axes for axes in draw_diagrams(spec).axes}


@pytest.mark.parametrize("spec", SPECS)
def test_there_is_one_panel_for_each_diagram_highest_rank_first(spec):
    the_plan = plan(spec)
    named = list(panels(spec))
    assert sorted(named) == sorted(diagram.name for diagram in the_plan.diagrams)
    rank = {diagram.name: diagram.contraction.rank for diagram in the_plan.diagrams}
    assert [rank[name] for name in named] == sorted(rank.values(), reverse=True)


@pytest.mark.parametrize("spec", SPECS)
def test_the_lines_of_a_panel_join_the_blocks_of_its_diagram_and_no_more(spec):
    drawn = panels(spec)
    for diagram in plan(spec).diagrams:
        axes = drawn[diagram.name]
        assert joined(axes) == diagram.partition
        assert len(strands(axes)) == len(diagram.partition) - len(set(diagram.partition))


@pytest.mark.parametrize("spec", SPECS)
def test_crossing_blocks_have_different_colours_and_others_are_grey(spec):
    drawn = panels(spec)
    for diagram in plan(spec).diagrams:
        colors = {
            block: to_hex(dot.get_markeredgecolor())
            for block, dot in zip(diagram.partition, dots(drawn[diagram.name]), strict=True)
        }
        crossing = [colors[block] for block in diagram.crossing]
        assert len(set(crossing)) == len(crossing)
        assert style.SOFT not in crossing
        assert {colors[block] for block in colors if block not in diagram.crossing} <= {style.SOFT}


def test_node_sets_have_different_shapes_which_the_picture_explains():
    figure = draw_diagrams("u u i -> u i")
    for axes in figure.axes:
        assert [dot.get_marker() for dot in dots(axes)] == ["o", "o", "s", "o", "s"]
    assert any("● u  ■ i" in text.get_text() for text in figure.texts)


@pytest.mark.parametrize(
    ("spec", "headings"),
    [
        ("n n -> n n", ["rank 2: 2 maps", "rank 1: 9 maps", "rank 0: 4 maps"]),
        ("u i -> u", ["rank 1 in u: 1 map", "rank 0 in u: 1 map"]),
        ("u -> i", ["rank 0: 1 map"]),
        ("->", ["rank 0: 1 map"]),
    ],
)
def test_groups_are_headed_by_their_rank_and_number_of_maps(spec, headings):
    texts = [text.get_text() for text in draw_diagrams(spec).texts]
    assert [text for text in texts if text.startswith("rank")] == headings
