"""Pictures of the maps, their basis as matrices and their diagrams as dots and lines; and panels of curves.

All of them are matplotlib figures that are not registered with pyplot, so there is nothing to close. matplotlib is
imported when a picture is drawn; `pip install 'bellnet[draw]'` installs it.
"""

from bellnet.draw.diagrams import draw_diagrams, pairs_of
from bellnet.draw.matrices import draw_basis
from bellnet.draw.panels import Panels, new_figure
from bellnet.draw.save import check_path, save_figures

__all__ = [
    "Panels",
    "check_path",
    "draw_basis",
    "draw_diagrams",
    "new_figure",
    "pairs_of",
    "save_figures",
]
