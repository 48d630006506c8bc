"""Scales of panels of curves, and their legend."""

from bellnet.draw import Panels


def test_zeros_alone_are_drawn_on_a_linear_scale():
    panels = Panels(["none", "some"], across="epoch", up="error")
    panels.curve("none", ([1, 2], [0.0, 0.0]), "error")
    panels.curve("some", ([1, 2], [0.0, 1.0]), "error")
    assert [axes.get_yscale() for axes in panels.finish().axes] == ["linear", "log"]


def test_the_axis_of_a_single_epoch_shows_an_integer():
    panels = Panels(["one"], across="epoch", up="error")
    panels.curve("one", ([1], [2.0]), "error")
    (axes,) = panels.finish().axes
    left, right = axes.get_xlim()
    assert [tick for tick in axes.get_xticks() if left <= tick <= right] == [1]


def test_the_legend_has_curves_once_and_vertical_lines_last():
    panels = Panels(["one", "two"], across="epoch", up="error")
    for title in ("one", "two"):
        panels.vertical(title, 1, "best epoch")
        for label in ("training", "validation set"):
            panels.curve(title, ([1, 2], [2.0, 1.0]), label)
    (legend,) = panels.finish().legends
    assert [text.get_text() for text in legend.get_texts()] == ["training", "validation set", "best epoch"]
