"""Panels and texts of pictures do not overlap."""

import pytest

from bellnet.draw import draw_basis, draw_diagrams
from bellnet.draw.style import fit_grid
from tests.draw.layouts import outside, overlaps

SPECS = [
    "n n -> n n",
    "n n -> n",
    "n n n -> n",
    "n -> n n n",
    "u i -> u i",
    "u u i -> u i",
    "-> n n",
    "n n ->",
    "->",
    "a b c d e f g -> g",
    "a_rather_long_name -> another_long_name",
]


@pytest.mark.parametrize("draw", [lambda spec: draw_basis(spec, 2 if len(spec) > 15 else 5), draw_diagrams])
@pytest.mark.parametrize("spec", SPECS)
def test_panels_and_texts_do_not_overlap(spec, draw):
    figure = draw(spec)
    assert overlaps(figure) == []
    assert outside(figure) == []


def test_the_check_for_overlaps_can_fail():
    figure = draw_basis("n -> n", 2)
    first, second, _ = figure.axes
    second.set_position(first.get_position())
    assert ("panel 0", "panel 1") in overlaps(figure)
    figure.text(0.99, 0.5, "beyond the edge")
    assert outside(figure) == ["text 'beyond the edge'"]


@pytest.mark.parametrize("spec", SPECS)
def test_all_panels_of_diagrams_have_one_size(spec):
    sizes = {(round(axes.bbox.width, 6), round(axes.bbox.height, 6)) for axes in draw_diagrams(spec).axes}
    assert len(sizes) == 1


@pytest.mark.parametrize(("count", "columns"), [(15, 5), (10, 5), (4, 2), (1, 1)])
def test_squares_are_in_full_rows(count, columns):
    assert fit_grid(count, (1.0, 1.0)).columns == columns
