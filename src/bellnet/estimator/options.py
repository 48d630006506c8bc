"""The options of an estimator, checked all at once when it is fitted; scikit-learn wants them stored as given."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from numbers import Integral, Rational, Real
from typing import Any

import numpy as np
import torch

from bellnet.errors import OptionError, as_written
from bellnet.estimator.labels import TARGETS

ROLES = ("node_attrs", "edge_attrs", "node_labels", "edge_labels")
"""The options that name attributes of graphs, see `bellnet.data.as_graph`."""
MOST = 2**63 - 1
"""The largest number that any option can be: what is computed from it is a number too."""
WIDEST = 2**31
"""Layers are narrower."""
BYTE = 1e-9  # in gigabytes
POOLS = ("max", "mean", "sum")
NORMS = ("auto", "batch", "graph", "channels")
AUTO_NORM = {2: "batch", 3: "graph"}
"""What norm="auto" stands for, by the order. Over triples running statistics lag behind what is learned: on a split of
MUTAG 82 percent were right with those of batches, and 95 with those of each graph."""


def check_options(call: str, options: Mapping[str, Any]) -> None:
    """Refuse options that cannot be, and say of each what is wrong."""
    mistakes = [words for name, value in options.items() if (words := _mistake(name, value))]
    if not mistakes and options.get("order") == 3 and options.get("layout") == "sparse":
        mistakes = [
            "order=3 holds all triples of nodes, and layout='sparse' only edges and nodes; leave out one of them."
        ]
    if mistakes:
        raise OptionError("\n".join(f"{call}: {words}" for words in mistakes))


def _mistake(name: str, value: Any) -> str | None:
    """What is wrong with an option, or None."""
    if name in NUMBERS and _is_real(value) and value > MOST:
        return f"{name} must be at most 2**63 - 1; it is larger."  # too large to be shown, perhaps
    if name in OF_THEIR_OWN:
        return OF_THEIR_OWN[name](value)
    kind = KINDS.get(name)
    return None if kind is None or kind.has(value) else f"{name} must be {kind.words}, not {as_written(value)}."


@dataclass(frozen=True)
class Kind:
    """What an option must be: whether a value is such, and how that is said."""

    has: Callable[[Any], bool]
    words: str


def _one_of(*choices: str) -> Kind:
    return Kind(lambda value: isinstance(value, str) and value in choices, f"one of {', '.join(map(repr, choices))}")


def _is_count(value: Any) -> bool:
    return _is_whole(value) and int(value) >= 1


def _is_whole(value: Any) -> bool:
    return _is_real(value) and isinstance(value, Integral)


def _is_real(value: Any) -> bool:
    if type(value) is bool or not isinstance(value, Real):
        return False
    return isinstance(value, Rational) or math.isfinite(value)


_YES_OR_NO = Kind(lambda value: isinstance(value, bool), "True or False")
_COUNT = Kind(_is_count, "a whole number from 1 up")
_AUTO_OR_COUNT = Kind(
    lambda value: (isinstance(value, str) and value == "auto") or _is_count(value), f"'auto' or {_COUNT.words}"
)
_SHARE = Kind(lambda value: _is_real(value) and 0 <= value < 1, "from 0 up and below 1")


def _is_naming(value: Any) -> bool:
    return value is None or (isinstance(value, Sequence) and all(isinstance(one, str) for one in value))


_NAMES = Kind(_is_naming, "the name or names of attributes, or None")

KINDS = {
    "target": _one_of(*TARGETS),
    "order": Kind(lambda value: _is_count(value) and value in (2, 3), "2 or 3"),
    "adjacency": _one_of("plain", "normalized", "both"),
    "layout": _one_of("auto", "padded", "sparse"),
    "node_channels": _one_of("diagonal", "separate"),
    "norm": Kind(lambda value: value is None or value in NORMS, f"None or one of {', '.join(map(repr, NORMS))}"),
    **dict.fromkeys(("degrees", "size_feature", "residual", "jumping_knowledge"), _YES_OR_NO),
    "degree_bins": Kind(
        lambda value: _is_whole(value) and (int(value) == 0 or int(value) >= 2), "0 or a whole number from 2 up"
    ),
    **dict.fromkeys(("n_estimators", "max_epochs"), _AUTO_OR_COUNT),
    "verbose": Kind(lambda value: isinstance(value, bool | np.bool_ | Integral), "True or False"),
    "batch_size": _COUNT,
    "patience": Kind(lambda value: value is None or _is_count(value), "a whole number from 1 up or None"),
    "dropout": _SHARE,
    "label_smoothing": _SHARE,
    "validation_fraction": _SHARE,
    "learning_rate": Kind(lambda value: _is_real(value) and value > 0, "a positive number"),
    "weight_decay": Kind(lambda value: _is_real(value) and value >= 0, "a number from 0 up"),
    **dict.fromkeys(ROLES, _NAMES),
}


def _mistake_in_memory(value: Any) -> str | None:
    if value is None or (_is_real(value) and value >= BYTE):
        return None
    if _is_real(value) and value > 0:
        return f"max_gigabytes must be at least {BYTE:g}, which is a byte, not {as_written(value)}."
    return f"max_gigabytes must be a positive number or None, not {as_written(value)}."


def _mistake_in_widths(name: str, value: Any) -> str | None:
    fine = isinstance(value, Sequence) and not isinstance(value, str) and all(_is_count(width) for width in value)
    if fine and (value or name == "hidden"):
        wide = [place for place, width in enumerate(value) if width >= WIDEST]
        return f"{name}[{wide[0]}] must be below 2**31; it is larger." if wide else None
    return f"{name} must be the widths of the layers, such as (16, 32), not {as_written(value)}."


def _mistake_in_pool(value: Any) -> str | None:
    several = [value] if isinstance(value, str) else value
    fine = isinstance(several, Sequence) and len(several) and all(isinstance(one, str) for one in several)
    if fine and set(several) <= set(POOLS) and len(set(several)) == len(several):
        return None
    return f"pool must be one or several of {', '.join(map(repr, POOLS))}, not {as_written(value)}."


def _mistake_in_seed(value: Any) -> str | None:
    if value is None or isinstance(value, np.random.RandomState | np.random.Generator):
        return None
    if type(value) is not bool and isinstance(value, Integral):
        if 0 <= int(value) < 2**32:
            return None
        return "random_state must be a whole number from 0 to 2**32 - 1; it is another."
    return (
        "random_state must be a whole number from 0 to 2**32 - 1, a random state of numpy or None, "
        f"not {as_written(value)}."
    )


def mistake_in_device(value: Any) -> str | None:
    """What is wrong with a device, or None: it must be one that is here and computes."""
    if value == "auto":
        return None
    shown, advice = as_written(value), "With 'auto' a GPU is taken if there is one."
    try:
        device = torch.device(value)
    except (RuntimeError, TypeError, ValueError):
        return f"device must be 'auto' or a device of torch such as 'cpu', not {shown}."
    if device.type == "meta":
        return f"device is {shown}, but nothing is computed there. {advice}"
    try:
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError, NotImplementedError, ImportError, AttributeError):
        return f"device is {shown}, but there is no such device here. {advice}"
    return None


OF_THEIR_OWN: dict[str, Callable[[Any], str | None]] = {
    "max_gigabytes": _mistake_in_memory,
    "channels": partial(_mistake_in_widths, "channels"),
    "pool": _mistake_in_pool,
    "hidden": partial(_mistake_in_widths, "hidden"),
    "random_state": _mistake_in_seed,
    "device": mistake_in_device,
}
"""Options of which there is more to say than what they must be."""
NUMBERS = {
    "degree_bins",
    "n_estimators",
    "batch_size",
    "max_epochs",
    "patience",
    "dropout",
    "label_smoothing",
    "validation_fraction",
    "learning_rate",
    "weight_decay",
    "max_gigabytes",
}
