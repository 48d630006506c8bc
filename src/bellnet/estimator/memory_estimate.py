"""Estimates of the memory that training and prediction take; what would take too much is refused before it begins.

In the padded layout, tensors over all pairs of nodes (or with order 3 over all triples) need most of the memory: the
encoded and the scaled input, what each layer saves for backward, and scratch buffers. The factors of the scratch
buffers were measured on a CPU, see ADR 0021.
"""

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from math import ceil

import torch

from bellnet._utils.memory import machine_memory
from bellnet.errors import SizesError
from bellnet.estimator.ensemble import Ensemble
from bellnet.estimator.model import NetConfig

MAX_ENTRIES = 2**19
"""The largest number of entries of a batch of several graphs; with 64 channels in float32 they take 128 MB."""
CACHE_BYTES = 2**30
"""The most memory for encoded graphs that are cached from epoch to epoch."""
PREDICTION_BATCH = 32
"""Graphs in a batch for which no gradient is computed."""
SHARE = 0.5
"""The default share of all memory that may be taken."""
UNKNOWN = 8 * 10**9
"""The assumed memory of a machine that does not report it."""
WEIGHT_BYTES = 20
"""The memory of a weight in training: the weight, its gradient, two moments and the copy of the best epoch."""
HOLDS = {2: "the padded layout holds all pairs of nodes", 3: "order=3 holds all triples of nodes"}
CHEAPER = {2: "layout='sparse' only edges and nodes", 3: "order=2 only pairs"}


def allowed_bytes(max_gigabytes: float | None, device: torch.device) -> int:
    """The memory that may be taken: as given, or by default half of the memory of the device."""
    if max_gigabytes is not None:
        return round(10**9 * max_gigabytes)
    if device.type == "cuda":
        return round(SHARE * torch.cuda.get_device_properties(device).total_memory)
    memory = machine_memory()
    return round(SHARE * (UNKNOWN if memory is None else memory))


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
        first, layers, saved = config.in_channels_by_tensor[0], _pair_channels(config), 1
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
        channels = [config.in_channels_by_tensor[0], *_pair_channels(config)]
        scratch = 2 if config.norm is None else 5
    most = max(before + scratch * after for before, after in pairwise(channels))
    return 8 * n_graphs * int(n_nodes**config.order) * (2 * channels[0] + most)


def _pair_channels(config: NetConfig) -> list[int]:
    """The output channels of all layers whose outputs are pairs of nodes."""
    return config.widths[1:] if config.target == "edge" else list(config.channels)


def cached_bytes(config: NetConfig, sizes: Sequence[int]) -> int:
    """The memory of the encoded graphs that are cached from epoch to epoch."""
    of_pairs, of_nodes = (*config.in_channels_by_tensor, 0)[:2]
    return min(CACHE_BYTES, 4 * sum(n * n * of_pairs + n * of_nodes for n in sizes))


def min_weights(config: NetConfig) -> int:
    """A lower bound of the number of weights: one basis map in each layer."""
    return config.n_estimators * sum(before * after for before, after in pairwise(config.widths))


def check_weights(call: str, config: NetConfig, allowed: int) -> None:
    """Raise `SizesError` if training all weights takes more bytes than allowed."""
    _check_weights(call, config, min_weights(config), allowed)  # networks of too wide layers cannot be built at all
    parameters = Ensemble.on_meta(replace(config, n_estimators=1)).parameters()
    _check_weights(call, config, config.n_estimators * sum(parameter.numel() for parameter in parameters), allowed)


def _check_weights(call: str, config: NetConfig, n_weights: int, allowed: int) -> None:
    needed = WEIGHT_BYTES * n_weights
    if needed > allowed:
        several = config.n_estimators > 1
        raise SizesError(
            f"{call}: {f'{config.n_estimators:,} networks' if several else 'a network'} of at least {n_weights:,} "
            f"weights{' together' * several} would take about {_gigabytes(needed)} GB of memory to train, but "
            f"{allowed / 1e9:.3g} GB is the most that {'they' if several else 'it'} may take.\nNarrower channels "
            f"and hidden{', and n_estimators=1,' * several} take less, and "
            f"max_gigabytes={_gigabytes(needed)} allows it."
        )


def check_training(call: str, config: NetConfig, sizes: Sequence[int], *, batch_size: int, allowed: int) -> None:
    """Raise `SizesError` if training on graphs of some sizes takes more bytes than allowed."""
    if config.layout != "padded":
        return
    batch = largest_batch(sizes, batch_size, config.order)
    needed = training_bytes(config, batch) + cached_bytes(config, sizes)
    if needed > allowed:
        raise SizesError(
            f"{call}: a training step on {_words(batch)} would take about {_gigabytes(needed)} GB of memory, but "
            f"{allowed / 1e9:.3g} GB is the most that it may take: {HOLDS[config.order]}.\n"
            f"With {CHEAPER[config.order]} are held. Fewer channels take less, and "
            f"max_gigabytes={_gigabytes(needed)} allows it."
        )


def check_prediction(call: str, config: NetConfig, sizes: Sequence[int], *, allowed: int) -> None:
    """The same for predictions."""
    if config.layout != "padded":
        return
    batch = largest_batch(sizes, PREDICTION_BATCH, config.order)
    needed = prediction_bytes(config, batch)
    if needed > allowed:
        raise SizesError(
            f"{call}: predictions for {_words(batch)} would take about {_gigabytes(needed)} GB of memory, but "
            f"{allowed / 1e9:.3g} GB is the most that they may take: {HOLDS[config.order]}.\n"
            f"In a model that is fitted with {CHEAPER[config.order]} are held. "
            f"set_params(max_gigabytes={_gigabytes(needed)}) allows it."
        )


def _words(batch: tuple[int, int]) -> str:
    count, n = batch
    return f"{count} graph{'s' if count > 1 else ''} of {n} node{'s' if n > 1 else ''}"


def _gigabytes(n_bytes: int) -> str:
    """Gigabytes, rounded up so that a limit of so many suffices."""
    number = n_bytes / 1e9
    return str(ceil(number)) if number > 10 or number == int(number) else f"{ceil(1000 * number) / 1000:g}"
