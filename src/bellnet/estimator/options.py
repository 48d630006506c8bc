"""The options of an estimator: their checks, what "auto" stands for, and the memory that they allow.

scikit-learn requires that options are stored as they are given, so they are checked by `fit`, all at once.

In the padded layout, tensors over all pairs of nodes (or with order 3 over all triples) need most of the memory: the
encoded and the scaled input, what each layer saves for backward, and scratch buffers. The factors of the scratch
buffers were measured on a CPU, see ADR 0021.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from numbers import Integral, Rational, Real
from typing import Any

import numpy as np
import torch

from bellnet._utils.memory import machine_memory
from bellnet.data import Graph
from bellnet.errors import OptionError, SizesError, as_written
from bellnet.estimator.labels import TARGETS
from bellnet.estimator.model import Ensemble, NetConfig

ATTRIBUTES = ("node_attrs", "edge_attrs", "node_labels", "edge_labels")
"""The options that name attributes of graphs, see `bellnet.data.as_graph`."""
LAYOUTS = ("padded", "sparse")
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

MAX_ENTRIES = 2**19
"""The largest number of entries of a batch of several graphs; with 64 channels in float32 they take 128 MB."""
CACHE_BYTES = 2**30
"""The most memory for encoded graphs that are cached from epoch to epoch."""
PREDICTION_BATCH = 32
"""Graphs in a batch for which no gradient is computed."""
MEMORY_SHARE = 0.5
"""The default share of all memory that may be taken."""
UNKNOWN_MEMORY = 8 * 10**9
"""The assumed memory of a machine that does not report it."""
WEIGHT_BYTES = 20
"""The memory of a weight in training: the weight, its gradient, two moments and the copy of the best epoch."""
CHEAPER = {2: "layout='sparse', which holds edges and nodes only", 3: "order=2, which holds pairs of nodes only"}


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
    """The number of networks: an ensemble on small data sets."""
    return MAX_ESTIMATORS if _n_entries(graphs, layout, order) <= ENTRIES_OF_ENSEMBLE else 1


def _n_entries(graphs: Sequence[Graph], layout: str, order: int) -> int:
    return sum(graph.n**order if layout == "padded" else graph.n + graph.n_edges for graph in graphs)


def seed_of(random_state: Any) -> int:
    """A seed: the given one, or one that is drawn from a random state of NumPy or from the system."""
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
        mistakes = ["order=3 holds all triples of nodes, layout='sparse' edges and nodes only; choose one of them."]
    if mistakes:
        raise OptionError("\n".join(f"{call}: {words}" for words in mistakes))


def _mistake(name: str, value: Any) -> str | None:
    """What is wrong with an option, or None."""
    if name == "device":
        return mistake_in_device(value)
    kind = KINDS.get(name)
    return None if kind is None or kind.has(value) else f"{name} must be {kind.words}, not {_shown(value)}."


def mistake_in_device(value: Any) -> str | None:
    """What is wrong with a device, or None: torch must be able to compute on it."""
    if value == "auto":
        return None
    shown, advice = _shown(value), "'auto' is a GPU if there is one, else the CPU."
    try:
        device = torch.device(value)
    except (RuntimeError, TypeError, ValueError):
        return f"device must be 'auto' or a device of torch such as 'cpu', not {shown}."
    if device.type == "meta":
        return f"device is {shown}, on which nothing is computed. {advice}"
    try:
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError, NotImplementedError, ImportError, AttributeError):
        return f"device is {shown}, which is not available. {advice}"
    return None


def _shown(value: Any) -> str:
    text = as_written(value)
    return text if len(text) <= 80 else f"{text[:77]}..."


@dataclass(frozen=True)
class Kind:
    """A kind of values: the test for it, and its description in messages."""

    has: Callable[[Any], bool]
    words: str

    def or_none(self) -> "Kind":
        """These values and None."""
        return Kind(lambda value: value is None or self.has(value), f"{self.words} or None")

    def or_auto(self) -> "Kind":
        """These values and "auto"."""
        return Kind(
            lambda value: (isinstance(value, str) and value == "auto") or self.has(value), f"'auto' or {self.words}"
        )


def _is_real(value: Any) -> bool:
    """Whether a value is a finite number; it is at most 2**63 - 1, so that what is computed from it is finite, too."""
    if type(value) is bool or not isinstance(value, Real):
        return False
    return (isinstance(value, Rational) or math.isfinite(value)) and value < 2**63


def _is_integer(value: Any, least: int) -> bool:
    return _is_real(value) and isinstance(value, Integral) and int(value) >= least


def _is_widths(value: Any) -> bool:
    if isinstance(value, str) or not isinstance(value, Sequence):
        return False
    return all(_is_integer(width, 1) and width < 2**31 for width in value)


def _is_pools(value: Any) -> bool:
    names = [value] if isinstance(value, str) else value
    if not isinstance(names, Sequence) or not all(isinstance(name, str) for name in names):
        return False
    return 0 < len(names) == len({*names} & {*POOLS})


def _is_seed(value: Any) -> bool:
    if isinstance(value, np.random.RandomState | np.random.Generator):
        return True
    return type(value) is not bool and isinstance(value, Integral) and 0 <= int(value) < 2**32


def _one_of(*choices: str) -> Kind:
    return Kind(lambda value: isinstance(value, str) and value in choices, f"one of {', '.join(map(repr, choices))}")


_BOOL = Kind(lambda value: isinstance(value, bool), "True or False")
_COUNT = Kind(lambda value: _is_integer(value, 1), "an integer from 1 to 2**63 - 1")
_SHARE = Kind(lambda value: _is_real(value) and 0 <= value < 1, "a number from 0 up and below 1")
_WIDTHS = "the widths of the layers, integers from 1 to 2**31 - 1 such as (16, 32)"
_NAMES = Kind(
    lambda value: isinstance(value, Sequence) and all(isinstance(name, str) for name in value),
    "the name or names of attributes",
)

KINDS = {
    "target": _one_of(*TARGETS),
    "order": Kind(lambda value: _is_integer(value, 2) and value <= 3, "2 or 3"),
    "channels": Kind(lambda value: _is_widths(value) and len(value) > 0, _WIDTHS),
    "hidden": Kind(_is_widths, _WIDTHS),
    "pool": Kind(_is_pools, f"one or several of {', '.join(map(repr, POOLS))}"),
    "adjacency": _one_of("plain", "normalized", "both"),
    "layout": _one_of("auto", *LAYOUTS),
    "node_channels": _one_of("diagonal", "separate"),
    "norm": _one_of(*NORMS).or_none(),
    **dict.fromkeys(("degrees", "size_feature", "residual", "jumping_knowledge"), _BOOL),
    "degree_bins": Kind(lambda value: _is_integer(value, 0) and value != 1, "0 or an integer from 2 up"),
    **dict.fromkeys(("n_estimators", "max_epochs"), _COUNT.or_auto()),
    "verbose": Kind(lambda value: isinstance(value, bool | np.bool_ | Integral), "True or False"),
    "batch_size": _COUNT,
    "patience": _COUNT.or_none(),
    **dict.fromkeys(("dropout", "label_smoothing", "validation_fraction"), _SHARE),
    "learning_rate": Kind(lambda value: _is_real(value) and value > 0, "a positive number below 2**63"),
    "weight_decay": Kind(lambda value: _is_real(value) and value >= 0, "a number from 0 up and below 2**63"),
    "random_state": Kind(_is_seed, "an integer from 0 to 2**32 - 1, a random state of NumPy").or_none(),
    "max_gigabytes": Kind(
        lambda value: _is_real(value) and value >= 1e-9, "a number from 1e-9 (a byte) up and below 2**63"
    ).or_none(),
    **dict.fromkeys(ATTRIBUTES, _NAMES.or_none()),
}


def allowed_bytes(max_gigabytes: float | None, device: torch.device) -> int:
    """The memory that may be taken: as given, or by default half of the memory of the device."""
    if max_gigabytes is not None:
        return round(10**9 * max_gigabytes)
    if device.type == "cuda":
        return round(MEMORY_SHARE * torch.cuda.get_device_properties(device).total_memory)
    return round(MEMORY_SHARE * (machine_memory() or UNKNOWN_MEMORY))


def max_pairs(sizes: Sequence[int], order: int) -> int:
    """The largest number of pairs of nodes in a batch of several graphs, which bounds its triples with order 3."""
    return max(1, MAX_ENTRIES // (max(sizes) if order == 3 else 1))


def largest_batch(sizes: Sequence[int], batch_size: int, order: int) -> tuple[int, int]:
    """The largest number of graphs in a batch of graphs of the largest size, and that size."""
    n = max(sizes)
    return max(1, min(len(sizes), batch_size, max_pairs(sizes, order) // n**2)), n


def training_bytes(config: NetConfig, batch: tuple[int, int]) -> int:
    """The peak memory of a training step on a padded batch, in float32.

    Args:
        config: The architecture.
        batch: The number of graphs and the number of nodes of each.
    """
    n_graphs, n_nodes = batch
    if config.order == 3:  # pairs take little memory in comparison, and triples are saved once
        first, layers, saved = 0, list(config.channels), 1
    else:
        first, layers, saved = config.in_channels_by_tensor[0], config.pair_channels, 1
        if config.norm is not None:
            saved += 1 if config.norm == "batch" and n_graphs == 1 else 4
        saved += (config.dropout > 0) + config.residual + config.jumping_knowledge
    pools_max = config.order == 3 or (config.target == "graph" and "max" in config.pool)
    scratch = max(2.5 * max(layers), (3.5 if pools_max else 0) * layers[-1])
    return round(4 * n_graphs * int(n_nodes**config.order) * (2 * first + sum(layers) * saved + scratch))


def prediction_bytes(config: NetConfig, batch: tuple[int, int]) -> int:
    """The same for predictions, in float64 and without saved tensors."""
    n_graphs, n_nodes = batch
    if config.order == 3:
        channels, scratch = [0, *[max(config.channels)] * 2], 2
    else:
        channels = [config.in_channels_by_tensor[0], *config.pair_channels]
        scratch = 2 if config.norm is None else 5
    most = max(before + scratch * after for before, after in pairwise(channels))
    return 8 * n_graphs * int(n_nodes**config.order) * (2 * channels[0] + most)


def check_weights(call: str, config: NetConfig, allowed: int) -> None:
    """Raise `SizesError` if training all weights takes more bytes than allowed."""

    def check(n_weights: int) -> None:
        count = config.n_estimators
        what = f"{count:,} networks" if count > 1 else "a network"
        fewer = "fewer estimators, fewer channels" if count > 1 else "fewer channels"
        what = f"training {what} of at least {n_weights:,} weights{' in total' * (count > 1)}"
        _check_bytes(call, what, WEIGHT_BYTES * n_weights, allowed, f"Use {fewer} or narrower hidden layers")

    check(config.min_weights)  # networks of too wide layers cannot be built at all
    one = Ensemble.on_meta(replace(config, n_estimators=1))
    check(config.n_estimators * sum(parameter.numel() for parameter in one.parameters()))


def check_training(call: str, config: NetConfig, sizes: Sequence[int], *, batch_size: int, allowed: int) -> None:
    """Raise `SizesError` if training on graphs of some sizes takes more bytes than allowed."""
    if config.layout == "padded":
        batch = largest_batch(sizes, batch_size, config.order)
        of_pairs, of_nodes = (*config.in_channels_by_tensor, 0)[:2]
        cached = min(CACHE_BYTES, 4 * sum(n * n * of_pairs + n * of_nodes for n in sizes))
        what, remedy = f"a training step on {_words(batch)}", f"Use fewer channels or {CHEAPER[config.order]}"
        _check_bytes(call, what, training_bytes(config, batch) + cached, allowed, remedy)


def check_prediction(call: str, config: NetConfig, sizes: Sequence[int], *, allowed: int) -> None:
    """The same for predictions."""
    if config.layout == "padded":
        batch = largest_batch(sizes, PREDICTION_BATCH, config.order)
        what, remedy = f"the prediction of {_words(batch)}", f"Fit a model with {CHEAPER[config.order]}"
        _check_bytes(call, what, prediction_bytes(config, batch), allowed, remedy)


def _check_bytes(call: str, what: str, needed: int, allowed: int, remedy: str) -> None:
    if needed > allowed:
        number = needed / 1e9  # rounded up, so that a limit of so many suffices
        enough = (
            str(math.ceil(number)) if number > 10 or number.is_integer() else f"{math.ceil(1000 * number) / 1000:g}"
        )
        raise SizesError(
            f"{call}: {what} takes about {enough} GB of memory, but {allowed / 1e9:.3g} GB is allowed.\n"
            f"{remedy}, or set max_gigabytes={enough}."
        )


def _words(batch: tuple[int, int]) -> str:
    count, n = batch
    return f"{count} graph{'s' if count > 1 else ''} of {n} node{'s' if n > 1 else ''}"
