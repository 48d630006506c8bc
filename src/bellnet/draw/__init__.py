"""Pictures of the maps: their basis as matrices, their diagrams as dots and lines; and curves of all kinds.

All of them are matplotlib figures, each of which belongs to nobody else: it is not registered with pyplot, so there is
nothing to close. matplotlib is imported when a picture is drawn; `pip install 'bellnet[draw]'` brings it.
"""

from bellnet.draw.diagrams import draw_diagrams, pairs_of
from bellnet.draw.matrices import draw_basis
from bellnet.draw.panels import Panels, colour_of, new_figure
from bellnet.draw.save import check_path, save_figures

__all__ = [
    "Panels",
    "check_path",
    "colour_of",
    "draw_basis",
    "draw_diagrams",
    "new_figure",
    "pairs_of",
    "save_figures",
]
