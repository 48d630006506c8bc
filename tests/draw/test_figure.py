"""Figures show themselves in a notebook."""

import pickle
import struct

import pytest

from bellnet.draw import Panels, draw_basis, draw_diagrams, new_figure


def some_panels():
    panels = Panels(["one"], across="epoch", up="error")
    panels.curve("one", ([1, 2], [2.0, 1.0]), "error")
    return panels.finish()


@pytest.mark.parametrize(
    "draw",
    [
        lambda: draw_basis("n -> n", 3),
        lambda: draw_diagrams("n -> n"),
        lambda: new_figure(2, 1),
        some_panels,
    ],
    ids=["basis", "diagrams", "new", "panels"],
)
def test_a_notebook_shows_a_picture_twice_as_sharp_as_it_is_wide(draw):
    content, about = draw()._repr_png_()
    assert content.startswith(b"\x89PNG")
    (width,) = struct.unpack(">I", content[16:20])
    assert abs(width - 2 * about["width"]) <= 2


def test_a_figure_can_be_pickled():
    assert pickle.loads(pickle.dumps(new_figure(2, 1)))._repr_png_()
