"""Pictures of the maps: their basis as matrices, their diagrams as dots and lines.

Both functions return a matplotlib figure that belongs to nobody else: it is not registered with pyplot, so there is
nothing to close. matplotlib is imported when a picture is drawn; `pip install 'bellnet[draw]'` brings it.
"""

from bellnet.draw.basis import draw_basis
from bellnet.draw.diagrams import draw_diagrams
from bellnet.draw.save import check_path, save_figures

__all__ = ["check_path", "draw_basis", "draw_diagrams", "save_figures"]
