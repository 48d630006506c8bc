"""The picture of errors against depth: everything is in it, and nothing is cut off."""

import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg

from bellnet.draw import ErrorCurve, draw_errors

CURVES = [
    ErrorCurve("one", "about one", [2, 3, 4], [1e-2, 2e-3, 5e-4], [2e-2, 5e-3, 1.2e-3]),
    ErrorCurve("two", "about two", [2, 3, 4], [1e-1, 2e-2, 5e-3], [9.0, 2.2, 0.6]),
]


@pytest.fixture(scope="module")
def figure():
    made = draw_errors("heading", CURVES)
    made.draw_without_rendering()
    return made


def test_every_curve_has_a_panel_with_both_lines(figure):
    assert len(figure.axes) == 2
    for axes, curve in zip(figure.axes, CURVES, strict=True):
        drawn = [list(line.get_ydata()) for line in axes.get_lines()]
        assert drawn == [curve.bound, curve.measured]
        assert axes.get_yscale() == "log"
        assert [int(tick) for tick in axes.get_xticks()] == curve.depths


def test_nothing_is_cut_off(figure):
    renderer = FigureCanvasAgg(figure).get_renderer()
    for axes, curve in zip(figure.axes, CURVES, strict=True):
        low, high = axes.get_ylim()
        assert low < min(curve.measured)
        assert max(curve.bound) < high
        for text in [axes.title, *axes.texts, axes.xaxis.label]:
            box = text.get_window_extent(renderer)
            assert figure.bbox.x0 <= box.x0
            assert box.x1 <= figure.bbox.x1


def test_words_are_there_to_tell_the_lines_apart(figure):
    for axes, curve in zip(figure.axes, CURVES, strict=True):
        assert {text.get_text() for text in axes.texts} == {"proven bound", "measured", curve.about}
