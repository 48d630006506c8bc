"""The options of an estimator: checked all at once when it is fitted, and what "auto" stands for.

scikit-learn requires that options are stored as they are given, so they are not checked before.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from numbers import Integral, Rational, Real
from typing import Any

import numpy as np
import torch

from bellnet.data import Graph
from bellnet.errors import OptionError, as_written
from bellnet.estimator.labels import TARGETS

ATTRIBUTES = ("node_attrs", "edge_attrs", "node_labels", "edge_labels")
"""The options that name attributes of graphs, see `bellnet.data.as_graph`."""
MAX_NUMBER = 2**63 - 1
"""The largest number of any option, so that what is computed from it is finite."""
MAX_WIDTH = 2**31
"""The widths of layers are smaller."""
BYTE = 1e-9  # in gigabytes
POOLS = ("max", "mean", "sum")
NORMS = ("auto", "batch", "graph", "channels")
AUTO_NORM = {2: "batch", 3: "graph"}
"""What norm="auto" stands for, by the order. Over triples, running statistics of batches lag behind the weights."""
MAX_STORED_SHARE = 0.7
"""Up to this share of stored entries among all pairs of nodes, the sparse layout is faster than the padded one."""
MAX_EPOCHS, MIN_EPOCHS = 60, 5
ENTRIES_OF_MAX_EPOCHS = 10_000_000
"""Up to this number of entries, max_epochs="auto" is `MAX_EPOCHS`; beyond, it falls with the square root."""
MAX_ESTIMATORS = 3
ENTRIES_OF_ENSEMBLE = 250_000
"""Up to this number of entries, n_estimators="auto" is `MAX_ESTIMATORS`; beyond, it is 1. See ADR 0023."""


def auto_layout(graphs: Sequence[Graph], order: int) -> str:
    """The layout that takes less time; triples are padded whatever the graphs are."""
    if order == 3:
        return "padded"
    stored, pairs = sum(graph.n + graph.n_edges for graph in graphs), sum(graph.n**2 for graph in graphs)
    return "sparse" if stored <= MAX_STORED_SHARE * pairs else "padded"


def auto_max_epochs(graphs: Sequence[Graph], layout: str, order: int) -> int:
    """The maximum number of epochs: the more entries graphs have, the fewer epochs."""
    share = ENTRIES_OF_MAX_EPOCHS / max(_n_entries(graphs, layout, order), 1)
    return max(MIN_EPOCHS, int(MAX_EPOCHS * min(1, share) ** 0.5))


def auto_n_estimators(graphs: Sequence[Graph], layout: str, order: int) -> int:
    """The number of networks: an ensemble where there is little data."""
    return MAX_ESTIMATORS if _n_entries(graphs, layout, order) <= ENTRIES_OF_ENSEMBLE else 1


def _n_entries(graphs: Sequence[Graph], layout: str, order: int) -> int:
    return sum(graph.n**order if layout == "padded" else graph.n + graph.n_edges for graph in graphs)


def seed_of(random_state: Any) -> int:
    """A seed: the given one, or a random one that is drawn from a random state or from the system."""
    if random_state is None:
        return int(np.random.SeedSequence().generate_state(1)[0])
    if isinstance(random_state, np.random.RandomState):
        return int(random_state.randint(2**31))
    if isinstance(random_state, np.random.Generator):
        return int(random_state.integers(2**31))
    return int(random_state)


def device_of(device: str | torch.device) -> torch.device:
    """The device of torch; "auto" is a GPU if there is one."""
    if device == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    return torch.device(device)


def check_options(call: str, options: Mapping[str, Any]) -> None:
    """Raise `OptionError` with all mistakes in the options."""
    mistakes = [words for name, value in options.items() if (words := _mistake(name, value))]
    if not mistakes and options.get("order") == 3 and options.get("layout") == "sparse":
        mistakes = [
            "order=3 holds all triples of nodes, and layout='sparse' only edges and nodes; leave out one of them."
        ]
    if mistakes:
        raise OptionError("\n".join(f"{call}: {words}" for words in mistakes))


def _mistake(name: str, value: Any) -> str | None:
    """What is wrong with an option, or None."""
    if name in NUMBERS and _is_real(value) and value > MAX_NUMBER:
        return f"{name} must be at most 2**63 - 1; it is larger."  # it may be too long to be printed
    if name in OWN_CHECKS:
        return OWN_CHECKS[name](value)
    kind = KINDS.get(name)
    return None if kind is None or kind.has(value) else f"{name} must be {kind.words}, not {as_written(value)}."


@dataclass(frozen=True)
class Kind:
    """A kind of values: the test for it, and its description in messages."""

    has: Callable[[Any], bool]
    words: str


def _one_of(*choices: str) -> Kind:
    return Kind(lambda value: isinstance(value, str) and value in choices, f"one of {', '.join(map(repr, choices))}")


def _is_count(value: Any) -> bool:
    return _is_integer(value) and int(value) >= 1


def _is_integer(value: Any) -> bool:
    return _is_real(value) and isinstance(value, Integral)


def _is_real(value: Any) -> bool:
    if type(value) is bool or not isinstance(value, Real):
        return False
    return isinstance(value, Rational) or math.isfinite(value)


def _is_naming(value: Any) -> bool:
    return value is None or (isinstance(value, Sequence) and all(isinstance(name, str) for name in value))


_BOOL = Kind(lambda value: isinstance(value, bool), "True or False")
_COUNT = Kind(_is_count, "a whole number from 1 up")
_AUTO_OR_COUNT = Kind(
    lambda value: (isinstance(value, str) and value == "auto") or _is_count(value), f"'auto' or {_COUNT.words}"
)
_SHARE = Kind(lambda value: _is_real(value) and 0 <= value < 1, "from 0 up and below 1")
_NAMES = Kind(_is_naming, "the name or names of attributes, or None")

KINDS = {
    "target": _one_of(*TARGETS),
    "order": Kind(lambda value: _is_count(value) and value in (2, 3), "2 or 3"),
    "adjacency": _one_of("plain", "normalized", "both"),
    "layout": _one_of("auto", "padded", "sparse"),
    "node_channels": _one_of("diagonal", "separate"),
    "norm": Kind(lambda value: value is None or value in NORMS, f"None or one of {', '.join(map(repr, NORMS))}"),
    **dict.fromkeys(("degrees", "size_feature", "residual", "jumping_knowledge"), _BOOL),
    "degree_bins": Kind(
        lambda value: _is_integer(value) and (int(value) == 0 or int(value) >= 2), "0 or a whole number from 2 up"
    ),
    **dict.fromkeys(("n_estimators", "max_epochs"), _AUTO_OR_COUNT),
    "verbose": Kind(lambda value: isinstance(value, bool | np.bool_ | Integral), "True or False"),
    "batch_size": _COUNT,
    "patience": Kind(lambda value: value is None or _is_count(value), "a whole number from 1 up or None"),
    **dict.fromkeys(("dropout", "label_smoothing", "validation_fraction"), _SHARE),
    "learning_rate": Kind(lambda value: _is_real(value) and value > 0, "a positive number"),
    "weight_decay": Kind(lambda value: _is_real(value) and value >= 0, "a number from 0 up"),
    **dict.fromkeys(ATTRIBUTES, _NAMES),
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
        wide = [index for index, width in enumerate(value) if width >= MAX_WIDTH]
        return f"{name}[{wide[0]}] must be below 2**31; it is larger." if wide else None
    return f"{name} must be the widths of the layers, such as (16, 32), not {as_written(value)}."


def _mistake_in_pool(value: Any) -> str | None:
    names = [value] if isinstance(value, str) else value
    fine = isinstance(names, Sequence) and len(names) and all(isinstance(name, str) for name in names)
    if fine and set(names) <= set(POOLS) and len(set(names)) == len(names):
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
    """What is wrong with a device, or None: torch must be able to compute on it."""
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


OWN_CHECKS: dict[str, Callable[[Any], str | None]] = {
    "max_gigabytes": _mistake_in_memory,
    "channels": partial(_mistake_in_widths, "channels"),
    "hidden": partial(_mistake_in_widths, "hidden"),
    "pool": _mistake_in_pool,
    "random_state": _mistake_in_seed,
    "device": mistake_in_device,
}
"""The checks of options that have several messages."""
NUMBERS = {
    *("degree_bins", "n_estimators", "batch_size", "max_epochs", "patience", "dropout", "label_smoothing"),
    *("validation_fraction", "learning_rate", "weight_decay", "max_gigabytes"),
}
