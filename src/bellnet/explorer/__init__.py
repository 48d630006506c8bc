"""The explorer: one page, without server or network, on which the maps of a spec can be seen and tried."""

from bellnet.explorer.join import EXAMPLE, library, page

__all__ = ["EXAMPLE", "library", "page"]
