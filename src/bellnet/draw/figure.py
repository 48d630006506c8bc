"""A figure that shows itself in a notebook, without pyplot.

This file needs matplotlib; whoever draws imports it then.
"""

import io
from typing import Any

from matplotlib.figure import Figure

SHARPER = 2
"""So many dots are drawn for each dot of the screen."""


class Drawing(Figure):
    """A figure of matplotlib, registered nowhere: there is nothing to close, and a notebook shows it all the same."""

    def _repr_png_(self) -> tuple[bytes, dict[str, Any]]:
        """What a notebook shows, and how wide."""
        content = io.BytesIO()
        self.savefig(content, format="png", dpi=SHARPER * self.dpi, metadata={"Software": "bellnet"})
        return content.getvalue(), {"width": round(self.get_figwidth() * self.dpi)}
