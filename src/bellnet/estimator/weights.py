"""How much every label counts."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from bellnet.errors import DataError
from bellnet.estimator.labels import flatten

LEAST = float(np.finfo(np.float32).tiny)
"""What is smaller beside one counts as zero where training computes."""


def flat_weights(call: str, given: Any, counts: NDArray[np.int64], target: str) -> NDArray[np.float64]:
    """Sample weights as a flat array: as given for labels, or repeated where they are given for graphs."""
    if given is None:
        return np.ones(int(counts.sum()))
    per_graph = target == "graph" or (
        hasattr(given, "__len__") and len(given) == len(counts) and all(np.ndim(weight) == 0 for weight in given)
    )
    values = flatten(
        call, "sample_weight", given, np.ones_like(counts) if per_graph else counts, "graph" if per_graph else target
    )
    if values.ndim != 1 or values.dtype.kind not in "biuf":
        raise DataError(
            f"{call}: sample_weight must be one number for each label, not {values.dtype} of shape {values.shape}."
        )
    weights = values.astype(np.float64)
    if not np.isfinite(weights).all() or (weights < 0).any():
        raise DataError(f"{call}: sample_weight must hold finite numbers from 0 up.")
    if per_graph and target != "graph":
        weights = np.repeat(weights, counts)
    with np.errstate(over="ignore"):
        if not np.isfinite(weights.sum()):
            raise DataError(f"{call}: the sum of sample_weight must be finite; it is too large for a number.")
    return weights


def times_class_weights(
    call: str, weights: NDArray[np.float64], of_classes: NDArray[np.float64]
) -> NDArray[np.float64]:
    """The product of sample weights and class weights; infinite where it is too large for a number.

    Args:
        call: How messages name the call.
        weights: A number from 0 up for every label.
        of_classes: The weight of its class for every label.
    """
    with np.errstate(over="ignore", under="ignore"):  # what is too large is refused when all weights are known
        product: NDArray[np.float64] = weights * of_classes
    _refuse_vanished(call, (product == 0) & (weights > 0) & (of_classes > 0))
    if not product.any():
        raise DataError(f"{call}: all weights are zero; at least one label must count.")
    return product


def relative_weights(call: str, weights: NDArray[np.float64], held: NDArray[np.bool_]) -> NDArray[np.float32]:
    """The weights divided by the mean of those that are learned from, as training computes with them.

    Args:
        call: How messages name the call.
        weights: A number from 0 up for every label; infinite where a product was too large for a number.
        held: Which labels are held out, and so not learned from.
    """
    if not weights[~held].any():
        raise DataError(f"{call}: all labels that are left to learn from have weight zero.")
    with np.errstate(all="ignore"):
        scaled = weights / weights[~held].max()  # first, since the mean of large numbers can be too large for one
        found: NDArray[np.float32] = (scaled / scaled[~held].mean()).astype(np.float32)
    if not np.isfinite(found).all():
        raise DataError(
            f"{call}: the weights of the labels, sample_weight times class_weight, cannot be computed with: divided by "
            "the mean of those that are learned from they are not finite.\n"
            "Bring them closer together, and closer to one."
        )
    _refuse_vanished(call, (found < LEAST) & (weights > 0))
    return found


def _refuse_vanished(call: str, vanished: NDArray[np.bool_]) -> None:
    if vanished.any():
        raise DataError(
            f"{call}: the weight of label {np.flatnonzero(vanished)[0]}, sample_weight times class_weight, is nothing "
            "beside the others: as a number of 32 bits, with which training computes, it would be zero.\n"
            "Bring the weights closer together, or give 0 to a label that is not to count."
        )
