"""What the padded layout costs in memory, said before it is paid.

Tensors over all pairs of nodes decide it, and of those how many numbers each pair has at the peak: the input twice
(encoded and scaled); what every layer leaves for the gradient (`Held`); and what stands in the memory for a moment. The
last was measured, on a CPU: a maximum over all pairs takes three and a half times the width of the last layer while it
is differentiated, everything else two and a half times that of the widest. Without gradients it is the input of a layer
and twice its output, five times if that is normalised.

For 25 fits and predictions of plain networks (single graphs of 800 to 2000 nodes, batches of 32 graphs of about 100;
all targets, several widths) the estimate was 0.78 to 1.25 times the peak, for 11 with norms, residuals or jumps
(graphs of 600 nodes, batches of graphs of 100) 0.85 to 1.94 times. With order 3 blocks hold triples of
nodes once each, and for a moment three and a half times the widest of them, or without gradients three times.
"""

from collections.abc import Sequence
from itertools import pairwise
from math import ceil
from typing import NamedTuple

import torch

from bellnet._utils.memory import machine_memory
from bellnet.data import Graph
from bellnet.errors import SizesError

MAX_ENTRIES = 2**19
"""The most entries of a batch, if it has several graphs: with 64 channels of single precision a layer takes 128 MB."""
KEPT_BYTES = 2**30
"""Encoded graphs are kept from epoch to epoch if they take no more."""
SHARE = 0.5
"""The share of all memory that may be taken if nothing else is said."""
UNKNOWN = 8 * 10**9
"""The memory of a machine that does not tell."""
HOLDS = {2: "the padded layout holds all pairs of nodes", 3: "order=3 holds all triples of nodes"}
CHEAPER = {2: "layout='sparse' only edges and nodes", 3: "order=2 only pairs"}
LISTED_SHARE = 0.7
"""Where so many of all pairs of nodes are listed, the sparse layout takes as long as the padded one: `make bench` has
random graphs of one size, where the padded one takes 1.11 times as long with this share, 2.23 times with 0.3 and 0.89
of the time with all pairs listed. Graphs of different sizes gain more: an epoch of the padded one took 17 times as long
on PROTEINS, 10 on NCI1, 5.2 on COLLAB, 3.5 on MUTAG, 2.7 on IMDB-BINARY (parts of each, one core, in torch's
operations)."""
MOST_EPOCHS, FEWEST_EPOCHS = 60, 5
OFTEN_SEEN = 10_000_000
"""So many entries are seen in all of `MOST_EPOCHS`, if their number is not given: of four times as many, half the
epochs. So the time grows with the root of what there is beyond them. COLLAB, with 22 million, takes 40 epochs; held out
labels of its first split were right in 71.1 percent after five and in 74.4 after twenty, and the loss still fell."""
MOST_NETWORKS = 3
LITTLE = 250_000
"""Of so many entries several networks learn, if their number is not given; of more, one. From so many of NCI1 three
were right for a percent more than one; from all of it, 350,000, for no more, in 2.4 times the time."""
WEIGHT_BYTES = 20
"""What a weight takes in training: itself, its gradient, two moments and the copy of the epoch that is kept."""


def cheaper_layout(graphs: Sequence[Graph], order: int) -> str:
    """The layout that takes less time: an entry that is listed costs more than one among all pairs of nodes.

    Triples are all held, whichever graphs they are of.
    """
    if order == 3:
        return "padded"
    listed, pairs = sum(graph.n + graph.n_edges for graph in graphs), sum(graph.n**2 for graph in graphs)
    return "sparse" if listed <= LISTED_SHARE * pairs else "padded"


def affordable_epochs(graphs: Sequence[Graph], layout: str, order: int) -> int:
    """How many epochs there are: the more there is to see, the less often it is seen."""
    entries = _n_entries(graphs, layout, order)
    return max(FEWEST_EPOCHS, int(MOST_EPOCHS * min(1, OFTEN_SEEN / max(entries, 1)) ** 0.5))


def usual_networks(graphs: Sequence[Graph], layout: str, order: int) -> int:
    """How many networks answer together: several where there is little to see, and so much is chance."""
    return MOST_NETWORKS if _n_entries(graphs, layout, order) <= LITTLE else 1


def _n_entries(graphs: Sequence[Graph], layout: str, order: int) -> int:
    return sum(graph.n**order if layout == "padded" else graph.n + graph.n_edges for graph in graphs)


class Held(NamedTuple):
    """What of a network decides how often a step holds the output of a layer.

    Attributes:
        dropout: The probability to drop a channel.
        norm: What is normalised before every activation, if anything is.
        residual: Whether layers add their input to their output.
        jumping_knowledge: Whether every layer is pooled.
        padded: Whether a batch has several graphs, so that what is normalised is apart from padding.
    """

    dropout: float
    norm: str | None
    residual: bool
    jumping_knowledge: bool
    padded: bool

    def times(self) -> int:
        """How many tensors of the size of its output every layer leaves for the gradient."""
        normalised = 0 if self.norm is None else 1 if self.norm == "batch" and not self.padded else 4
        return 1 + (self.dropout > 0) + normalised + self.residual + self.jumping_knowledge


def training_bytes(n_entries: int, widths: Sequence[int], *, maximum: bool, held: Held) -> int:
    """The most memory that a training step takes beyond what is kept, in single precision.

    Args:
        n_entries: The number of pairs of nodes in a batch, padding included; or of triples.
        widths: The channels of everything that is held for all of those, beginning with the input.
        maximum: Whether a maximum over all of them is taken at the end.
        held: How much of it is held.
    """
    given, *layers = widths
    passing = max(2.5 * max(layers), (3.5 if maximum else 0) * layers[-1])
    return round(4 * n_entries * (2 * given + sum(layers) * held.times() + passing))


def prediction_bytes(n_entries: int, widths: Sequence[int], held: Held) -> int:
    """The same for predictions, in double precision; nothing is left for a gradient."""
    passing = 2 if held.norm is None else 5
    return 8 * n_entries * (2 * widths[0] + max(before + passing * after for before, after in pairwise(widths)))


def kept_bytes(sizes: Sequence[int], of_pairs: int, of_nodes: int, dtype: torch.dtype) -> int:
    """The most memory that encoded graphs take which are kept for the next epoch, with so many channels of each."""
    return min(KEPT_BYTES, sum(n * n * of_pairs + n * of_nodes for n in sizes) * dtype.itemsize)


def most_pairs(sizes: Sequence[int], order: int) -> int:
    """The most pairs of nodes of a batch of several graphs, so that it has at most `MAX_ENTRIES` pairs, or triples."""
    return max(1, MAX_ENTRIES // (max(sizes) if order == 3 else 1))


def largest_batch(sizes: Sequence[int], batch_size: int, order: int) -> tuple[int, int]:
    """The most graphs that a batch of graphs of the largest size can have, and that size."""
    n = max(sizes)
    return max(1, min(len(sizes), batch_size, most_pairs(sizes, order) // n**2)), n


def fewest_weights(widths: Sequence[int]) -> int:
    """The fewest weights that a network of layers of such widths has, beginning with the input: one map in each."""
    return sum(before * after for before, after in pairwise(widths))


def check_weights(call: str, n_weights: int, allowed: int, *, n_estimators: int) -> None:
    """Refuse networks of so many weights or more together if training them needs more bytes than are allowed."""
    needed = WEIGHT_BYTES * n_weights
    if needed > allowed:
        several = n_estimators > 1
        raise SizesError(
            f"{call}: {f'{n_estimators:,} networks' if several else 'a network'} of at least {n_weights:,} weights"
            f"{' together' * several} would take about {_gigabytes(needed)} GB of memory to train, but "
            f"{allowed / 1e9:.3g} GB is the most that {'they' if several else 'it'} may take.\nNarrower channels "
            f"and hidden{', and n_estimators=1,' * several} take less, and "
            f"max_gigabytes={_gigabytes(needed)} allows it."
        )


def check_training(call: str, batch: tuple[int, int], needed: int, allowed: int, *, order: int) -> None:
    """Refuse training steps on batches of so many graphs of such a size that need more bytes than are allowed."""
    if needed > allowed:
        raise SizesError(
            f"{call}: a training step on {_words(batch)} would take about {_gigabytes(needed)} GB of memory, but "
            f"{allowed / 1e9:.3g} GB is the most that it may take: {HOLDS[order]}.\n"
            f"With {CHEAPER[order]} are held. Fewer channels take less, and "
            f"max_gigabytes={_gigabytes(needed)} allows it."
        )


def check_prediction(call: str, batch: tuple[int, int], needed: int, allowed: int, *, order: int) -> None:
    """The same for predictions."""
    if needed > allowed:
        raise SizesError(
            f"{call}: predictions for {_words(batch)} would take about {_gigabytes(needed)} GB of memory, but "
            f"{allowed / 1e9:.3g} GB is the most that they may take: {HOLDS[order]}.\n"
            f"In a model that is fitted with {CHEAPER[order]} are held. "
            f"set_params(max_gigabytes={_gigabytes(needed)}) allows it."
        )


def allowed_bytes(max_gigabytes: float | None, device: torch.device) -> int:
    """So many, or half of the memory of the device."""
    if max_gigabytes is not None:
        return round(10**9 * max_gigabytes)
    if device.type == "cuda":
        return round(SHARE * torch.cuda.get_device_properties(device).total_memory)
    here = machine_memory()
    return round(SHARE * (UNKNOWN if here is None else here))


def _words(batch: tuple[int, int]) -> str:
    count, n = batch
    return f"{count} graph{'s' if count > 1 else ''} of {n} node{'s' if n > 1 else ''}"


def _gigabytes(n_bytes: int) -> str:
    """Rounded up, so that what is named as enough is enough."""
    number = n_bytes / 1e9
    return str(ceil(number)) if number > 10 or number == int(number) else f"{ceil(1000 * number) / 1000:g}"
