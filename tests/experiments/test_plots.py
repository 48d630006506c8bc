"""Panels of curves of methods: a colour is a method, a line style a number of layers, and nothing covers a curve."""

import pytest

from experiments.plots import MethodPanels, colour_of
from tests.draw.layouts import boxes, outside

LINE = ([1, 2, 3], [1.0, 0.1, 0.01])


def filled(titles=("one", "two", "three")):
    panels = MethodPanels(titles, across="epoch", up="error")
    for title in titles:
        for layers in (1, 2, 3, 4):
            panels.method(title, LINE, "bellnet", layers=layers)
            panels.method(title, LINE, "Hartford et al.", layers=layers, kind="per node")
        panels.level(title, 0.5, "trivial")
        panels.crosses(title, ([3], [0.02]), "the paper")
        panels.vertical(title, 2, "best epoch")
    return panels.finish()


@pytest.mark.parametrize("count", [1, 3])
def test_the_legend_is_one_and_covers_no_panel(count):
    figure = filled(tuple("abcde"[:count]))
    found = boxes(figure)
    (legend,) = figure.legends
    box = legend.get_window_extent()
    assert [axes.get_legend() for axes in figure.axes] == [None] * count
    for name, panel in found.items():
        if name.startswith("panel"):
            assert not box.overlaps(panel)
    assert outside(figure) == []


def test_a_colour_is_a_method_and_a_line_style_is_a_depth_in_all_panels():
    looks = [
        [(line.get_color(), str(line._unscaled_dash_pattern)) for line in axes.lines[:8]] for axes in filled().axes
    ]
    assert looks[0] == looks[1] == looks[2]
    colours, strokes = ({look[part] for look in looks[0]} for part in (0, 1))
    assert (len(set(looks[0])), len(colours), len(strokes)) == (8, 2, 4)


def test_everything_that_is_drawn_is_explained_once_and_methods_come_first():
    (legend,) = filled().legends
    assert [text.get_text() for text in legend.get_texts()] == [
        *("bellnet", "Hartford et al.", "1 layer", "2 layers", "3 layers", "4 layers", "per node"),
        *("trivial", "the paper", "best epoch"),
    ]


IN_TABLE_3 = ("IGN (authors' set-up), dense", "IGN (authors' set-up), sparse", "GraphClassifier", "GIN", "DGCNN", "ECC")


def test_methods_of_one_picture_have_different_colours():
    for together in (("bellnet", "Hartford et al."), IN_TABLE_3):
        assert len({colour_of(method) for method in together}) == len(together)
    assert colour_of("bellnet") == colour_of(IN_TABLE_3[0])
