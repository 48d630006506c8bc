"""The positions of panels and texts on a figure, in pixels."""

from itertools import combinations

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.text import Text
from matplotlib.transforms import Bbox


def boxes(figure: Figure) -> dict[str, Bbox]:
    """The box of every panel, of every title of a panel, and of every other text."""
    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    renderer = canvas.get_renderer()
    found = {f"text {text.get_text()!r}": text.get_window_extent(renderer) for text in figure.texts}
    for number, axes in enumerate(figure.axes):
        found[f"panel {number}"] = axes.get_window_extent(renderer)
        for text in axes.findobj(Text):
            if text.get_text():
                found[f"title {number} {text.get_text()!r}"] = text.get_window_extent(renderer)
    return found


def overlaps(figure: Figure) -> list[tuple[str, str]]:
    """The pairs that overlap."""
    return [
        (one, other)
        for (one, box), (other, other_box) in combinations(boxes(figure).items(), 2)
        if Bbox.intersection(_shrunk(box), _shrunk(other_box)) is not None
    ]


def outside(figure: Figure) -> list[str]:
    """The panels and texts that are not within the figure."""
    whole = figure.bbox
    return [
        name
        for name, box in boxes(figure).items()
        if box.x0 < 0 or box.y0 < 0 or box.x1 > whole.x1 or box.y1 > whole.y1
    ]


def _shrunk(box: Bbox) -> Bbox:
    # Boxes of type reach a pixel beyond the ink.
    return Bbox.from_extents(box.x0 + 1, box.y0 + 1, box.x1 - 1, box.y1 - 1)
