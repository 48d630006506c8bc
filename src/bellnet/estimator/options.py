"""The options of an estimator, checked all at once when it is fitted; scikit-learn wants them stored as given."""

import math
from collections.abc import Mapping, Sequence
from numbers import Integral, Rational, Real
from typing import Any

import numpy as np
import torch

from bellnet.errors import OptionError
from bellnet.estimator.labels import TARGETS

CHOICES = {
    "target": TARGETS,
    "pool": ("max", "mean", "sum"),
    "adjacency": ("plain", "normalized", "both"),
    "layout": ("padded", "sparse"),
}
ROLES = ("node", "edge", "label", "edge_label")
"""What attributes of graphs can be named as, see `bellnet.data.as_graph`."""
FROM_ONE = ("batch_size", "max_epochs", "patience")
SHARES = ("dropout", "validation_fraction")
NUMBERS = (*FROM_ONE, *SHARES, "learning_rate", "weight_decay", "max_gigabytes")
MOST = 2**63 - 1
"""The largest number that any option can be: what is computed from it is a number too."""
WIDEST = 2**31
"""Layers are narrower."""
BYTE = 1e-9  # in gigabytes


def check_options(call: str, options: Mapping[str, Any]) -> None:
    """Refuse options that cannot be, and say of each what is wrong."""
    mistakes = [words for name, value in options.items() if (words := _mistake(name, value))]
    if mistakes:
        raise OptionError("\n".join(f"{call}: {words}" for words in mistakes))


def _mistake(name: str, value: Any) -> str | None:
    if name in CHOICES:
        known = isinstance(value, str) and value in CHOICES[name]
        return None if known else f"{name} must be one of {', '.join(map(repr, CHOICES[name]))}, not {value!r}."
    if name in NUMBERS and _is_real(value) and value > MOST:
        return f"{name} must be at most 2**63 - 1; it is larger."  # too large to be shown, perhaps
    if name == "degrees":
        return None if isinstance(value, bool) else f"degrees must be True or False, not {value!r}."
    if name in ROLES:
        fine = value is None or (isinstance(value, Sequence) and all(isinstance(one, str) for one in value))
        return None if fine else f"{name} must be the name or names of attributes, or None, not {value!r}."
    if name in FROM_ONE:
        return None if _is_count(value) else f"{name} must be a whole number from 1 up, not {value!r}."
    if name in SHARES:
        return None if _is_real(value) and 0 <= value < 1 else f"{name} must be from 0 up and below 1, not {value!r}."
    if name == "learning_rate":
        return None if _is_real(value) and value > 0 else f"{name} must be a positive number, not {value!r}."
    if name == "weight_decay":
        return None if _is_real(value) and value >= 0 else f"{name} must be a number from 0 up, not {value!r}."
    if name == "max_gigabytes":
        if value is None or (_is_real(value) and value >= BYTE):
            return None
        if _is_real(value) and value > 0:
            return f"{name} must be at least {BYTE:g}, which is a byte, not {value!r}."
        return f"{name} must be a positive number or None, not {value!r}."
    if name in ("channels", "hidden"):
        return _mistake_in_widths(name, value)
    if name == "device":
        return mistake_in_device(value)
    if name == "random_state":
        return _mistake_in_seed(value)
    if name == "verbose":
        fine = isinstance(value, bool | np.bool_ | Integral)
        return None if fine else f"verbose must be True or False, not {value!r}."
    return None


def _mistake_in_widths(name: str, value: Any) -> str | None:
    fine = isinstance(value, Sequence) and not isinstance(value, str) and all(_is_count(width) for width in value)
    if fine and (value or name == "hidden"):
        wide = [place for place, width in enumerate(value) if width >= WIDEST]
        return f"{name}[{wide[0]}] must be below 2**31; it is larger." if wide else None
    return f"{name} must be the widths of the layers, such as (16, 32), not {value!r}."


def _mistake_in_seed(value: Any) -> str | None:
    if value is None or isinstance(value, np.random.RandomState | np.random.Generator):
        return None
    if type(value) is not bool and isinstance(value, Integral):
        if 0 <= int(value) < 2**32:
            return None
        return "random_state must be a whole number from 0 to 2**32 - 1; it is another."
    return f"random_state must be a whole number from 0 to 2**32 - 1, a random state of numpy or None, not {value!r}."


def mistake_in_device(value: Any) -> str | None:
    """What is wrong with a device, or None: it must be one that is here and computes."""
    if value == "auto":
        return None
    try:
        device = torch.device(value)
    except (RuntimeError, TypeError):
        return f"device must be 'auto' or a device of torch such as 'cpu', not {value!r}."
    if device.type == "meta":
        return f"device is {value!r}, but nothing is computed there. With 'auto' a GPU is taken if there is one."
    try:
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError, NotImplementedError, ImportError, AttributeError):
        return f"device is {value!r}, but there is no such device here. With 'auto' a GPU is taken if there is one."
    return None


def _is_count(value: Any) -> bool:
    return _is_real(value) and isinstance(value, Integral) and int(value) >= 1


def _is_real(value: Any) -> bool:
    if type(value) is bool or not isinstance(value, Real):
        return False
    return isinstance(value, Rational) or math.isfinite(value)
