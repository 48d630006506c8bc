"""The history of a fit as a picture: loss and score after every epoch, and which epoch was kept."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from bellnet._utils.optional import require
from bellnet.draw import Panels

if TYPE_CHECKING:
    from matplotlib.figure import Figure

WORDS = {"accuracy": "accuracy", "r2": "coefficient of determination"}


def draw_history(call: str, history: Sequence[Mapping[str, Any]], kept: int, *, score: str) -> "Figure":
    """A panel for the loss and one for the score, with a curve for what is learned and one for what is held out.

    Args:
        call: How messages name what asked for it.
        history: A record for every epoch.
        kept: The number of the epoch that was kept.
        score: What the records call the score; a record has None where it is not defined.
    """
    require("matplotlib", extra="draw", call=call)
    names = {"loss": "loss"}
    if any(_is_number(record.get(score)) for record in history):
        names[score] = WORDS[score]
    panels = Panels(list(names.values()), across="epoch", up="", scales=("linear", "linear"))
    for name, title in names.items():
        for kind, key in (("learned", name), ("held out", f"validation_{name}")):
            known = {number: record[key] for number, record in enumerate(history) if _is_number(record.get(key))}
            if known:
                panels.curve(title, (list(known), list(known.values())), kind=kind)
        panels.place(title, kept, "the epoch that was kept")
    return panels.finish()


def _is_number(value: object) -> bool:
    return isinstance(value, int | float)
