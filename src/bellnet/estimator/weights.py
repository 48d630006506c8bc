"""How much every label counts."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from bellnet.errors import DataError
from bellnet.estimator.labels import flatten


def flat_weights(call: str, given: Any, counts: NDArray[np.int64], target: str) -> NDArray[np.float64]:
    """Sample weights as a flat array: as given for labels, or repeated where they are given for graphs."""
    if given is None:
        return np.ones(int(counts.sum()))
    per_graph = target == "graph" or (len(given) == len(counts) and all(np.ndim(weight) == 0 for weight in given))
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
    return np.repeat(weights, counts) if per_graph and target != "graph" else weights
