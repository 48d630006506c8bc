"""Saves the figures of the gallery: every figure that an example assigns to a name, in the style of `bellnet.draw`."""

from weakref import WeakSet

import matplotlib
from matplotlib.figure import Figure
from sphinx_gallery.scrapers import figure_rst

from bellnet.draw import style

DOTS_PER_INCH = 160
STYLE = {
    "axes.edgecolor": style.RULE,
    "axes.labelcolor": style.SOFT,
    "axes.labelsize": style.TEXT,
    "axes.prop_cycle": matplotlib.cycler(color=style.PALETTE),
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.titlecolor": style.INK,
    "axes.titlelocation": "left",
    "axes.titlesize": style.TEXT,
    "figure.facecolor": style.PAPER,
    "figure.figsize": (7.0, 3.2),
    "figure.constrained_layout.use": True,
    "font.family": style.SANS,
    "font.size": style.TEXT,
    "legend.frameon": False,
    "text.color": style.INK,
    "xtick.color": style.SOFT,
    "xtick.labelsize": style.SMALL,
    "ytick.color": style.SOFT,
    "ytick.labelsize": style.SMALL,
}

_shown: WeakSet[Figure] = WeakSet()


def scraper(block, block_vars, gallery_conf):
    """Saves the figures that are new since the last block; the gallery shows them below it."""
    paths = []
    for value in list(block_vars["example_globals"].values()):
        if isinstance(value, Figure) and value not in _shown:
            _shown.add(value)
            path = next(block_vars["image_path_iterator"])
            value.savefig(path, dpi=DOTS_PER_INCH)
            paths.append(path)
    return figure_rst(paths, gallery_conf["src_dir"])


def reset(gallery_conf, name):
    """Resets style, figures and random state before each example."""
    import matplotlib.pyplot as plt
    import torch

    plt.close("all")
    matplotlib.rcParams.update({**matplotlib.rcParamsDefault, **STYLE, "backend": "agg"})
    torch.manual_seed(0)
