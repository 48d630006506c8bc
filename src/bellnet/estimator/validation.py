"""Graphs and labels that a caller gives to say when training should stop, instead of a part held out."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bellnet.data import Encoding, Graph
from bellnet.errors import DataError
from bellnet.estimator.inputs import check_fits, read_graphs
from bellnet.estimator.labels import PLURAL, Array, count_labels, flatten, known_labels


@dataclass(frozen=True)
class Validation:
    """The graphs, how many labels each has, the labels as one flat array, and which of them are known."""

    graphs: list[Graph]
    counts: NDArray[np.int64]
    flat: Array
    known: NDArray[np.bool_]


def read_validation(call: str, given: Any, encoding: Encoding, *, target: str) -> Validation:
    """What was given as `validation_data`, which must fit the graphs that are learned from.

    Args:
        call: How messages name the call.
        given: Graphs and their labels, as a pair.
        encoding: That of the graphs that are learned from.
        target: What has labels.
    """
    if not isinstance(given, tuple | list) or len(given) != 2:
        what = f"{len(given)} things" if isinstance(given, tuple | list) else type(given).__name__
        raise DataError(f"{call}: validation_data must be graphs and their labels, (graphs, y), not {what}.")
    graphs = read_graphs(call, given[0], encoding)
    check_fits(call, graphs, encoding)
    counts = count_labels(graphs, target)
    flat = flatten(call, "y", given[1], counts, target)
    if not len(flat):
        raise DataError(f"{call}: there is nothing to measure; no graph has {PLURAL[target]}.")
    return Validation(graphs, counts, flat, known_labels(call, flat, target))
