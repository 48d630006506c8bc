"""Labels of graphs, nodes or edges and their weights, as flat arrays: those of all graphs, graph after graph."""

import math
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import DataConversionWarning

from bellnet.data import Graph
from bellnet.errors import DataError

Array = NDArray[Any]

TARGETS = ("graph", "node", "edge")
CLASS_TYPES = (bool, int, float, str)
"""The types of classes; True is also an int. scikit-learn checks that floats are integers."""
FEW_CLASSES = 10
"""Up to this number of classes, there may be a class for each label."""
PLURAL = {"graph": "graphs", "node": "nodes", "edge": "edges"}
MIN_WEIGHT = float(np.finfo(np.float32).tiny)
"""Smaller relative weights are zero in training, which computes in float32."""


def count_labels(graphs: Sequence[Graph], target: str) -> NDArray[np.int64]:
    """The number of labels of each graph: one, one for each node, or one for each column of `edge_index`."""
    if target == "graph":
        return np.ones(len(graphs), dtype=np.int64)
    return np.array([graph.n if target == "node" else graph.edge_index.shape[1] for graph in graphs], dtype=np.int64)


def flatten(call: str, argument: str, given: object, counts: NDArray[np.int64], target: str) -> Array:
    """Labels or weights as a flat array, the graphs one after the other.

    Args:
        call: How messages name the call.
        argument: How messages name the argument.
        given: For graphs an array with an entry for each; for nodes and edges a list with an array for each graph.
        counts: The number of entries of each graph.
        target: What the entries belong to.
    """
    if target == "graph":
        values = _array(call, argument, given)
        if values.ndim == 0 or len(values) != len(counts):
            got = "a single value" if values.ndim == 0 else f"{len(values)} entries"
            raise DataError(f"{call}: {argument} must have an entry for each of the {len(counts)} graphs, not {got}.")
        return values
    what = PLURAL[target]
    example = f"[array of the {what} of graph 0, array of the {what} of graph 1, ...]"
    try:
        items = list(given)  # type: ignore[call-overload]
    except TypeError:
        items = None
    if items is None or len(items) != len(counts):
        got = type(given).__name__ if items is None else f"{len(items)} entries"
        raise DataError(
            f"{call}: {argument} must be a list with an array for each of the {len(counts)} graphs, not {got}.\n"
            f"With target={target!r} write {example}."
        )
    arrays = [_array(call, f"{argument}[{number}]", item) for number, item in enumerate(items)]
    for number, (array, count) in enumerate(zip(arrays, counts, strict=True)):
        if array.ndim == 0 or len(array) != count:
            got = "is a single value" if array.ndim == 0 else f"has {len(array)} entries"
            raise DataError(
                f"{call}: {argument}[{number}] {got}, but graphs[{number}] has {count} {what}.\n"
                f"With target={target!r} write {example}."
            )
    if len({array.dtype.kind for array in arrays}) == 1:
        return np.concatenate(arrays)
    together = np.concatenate([array.astype(object) for array in arrays])  # NumPy would write NaN as text
    return together if _missing(together).any() else _not_as_text(together)


def split_up(flat: Array, counts: NDArray[np.int64], target: str) -> Any:
    """The inverse of `flatten`: an array for graphs, a list of arrays for nodes and edges."""
    return flat if target == "graph" else np.split(flat, np.cumsum(counts)[:-1])


def one_dimensional(call: str, values: Array) -> Array:
    """Labels without a second axis; an axis of length one is dropped with the warning of scikit-learn."""
    if values.ndim == 2 and values.shape[1] == 1:
        warnings.warn(
            "A column-vector y was passed when a 1d array was expected. "
            "Please change the shape of y to (n_samples,), for example using ravel().",
            DataConversionWarning,
            stacklevel=4,
        )
        return values[:, 0]
    if values.ndim != 1:
        raise DataError(f"{call}: y must have one label for each graph, but its shape is {values.shape}.")
    return values


def known_labels(call: str, values: Array, target: str) -> NDArray[np.bool_]:
    """Which labels are known; unknown labels of nodes and edges are None or NaN."""
    if target == "graph":
        return np.ones(len(values), dtype=np.bool_)
    missing = _missing(values).reshape(len(values), -1 if values.size else 1)
    known = np.logical_not(missing.all(axis=1))
    if len(known) and not known.any():
        raise DataError(f"{call}: all {len(known)} labels of y are unknown: None or NaN.\nLabel some {PLURAL[target]}.")
    return known


def only_known(values: Array, known: NDArray[np.bool_]) -> Array:
    """The known labels in the type that they have without unknown ones, which turn strings to objects and integers to
    floats.
    """
    if known.all():
        return values
    taken = values[known]
    if taken.dtype == object:
        taken = _not_as_text(taken)
    is_integer = taken.dtype.kind == "f" and bool((np.isfinite(taken) & (taken == np.round(taken))).all())
    return taken.astype(np.int64) if is_integer and bool((np.abs(taken) < 2**53).all()) else taken


def _not_as_text(values: Array) -> Array:
    """Objects in the type that NumPy finds for them, unless that is text and some of them are not strings."""
    found = np.array(values.tolist())
    return values if found.dtype.kind == "U" and not all(isinstance(value, str) for value in values.flat) else found


def _missing(values: Array) -> NDArray[np.bool_]:
    """Which values are None or NaN."""
    if values.dtype == object:
        return np.array([value is None or value != value for value in values.ravel()], dtype=np.bool_).reshape(
            values.shape
        )
    return np.isnan(values) if values.dtype.kind == "f" else np.zeros(values.shape, dtype=np.bool_)


def check_present(call: str, values: Array) -> None:
    """Raise an error if labels are None, complex, NaN or infinite."""
    if values.dtype.kind == "c":
        raise DataError(
            f"{call}: y must hold real numbers or names of classes, but it is {values.dtype}.\n"
            "Use the real part, or the real and the imaginary part as two numbers."
        )
    if values.dtype == object:
        missing = _missing(values)
        what = "missing"
    elif values.dtype.kind == "f":
        missing = ~np.isfinite(values)
        what = "NaN or infinite"
    else:
        return
    if missing.any():
        indices = np.flatnonzero(missing.reshape(len(values), -1).any(axis=1))
        raise DataError(
            f"{call}: y contains NaN or missing values: {len(indices)} of {len(values)} labels are {what}, "
            f"the first is label {indices[0]}.\nRemove them and their graphs."
        )


def check_classes(call: str, values: Array) -> None:
    """Raise an error if labels are not of one of the types of classes."""
    if values.dtype.kind in "biufU":
        return
    if values.dtype.kind == "O":
        kinds = {_kind(value) for value in values.flat}
        if len(kinds) == 1 and kinds <= {*CLASS_TYPES}:
            return
        got = " and ".join(sorted(kind.__name__ for kind in kinds))
    else:
        got = str(values.dtype)
    raise DataError(
        f"{call}: y must hold classes of one type, all integers, all strings or all booleans; got {got}.\n"
        "Convert them, for instance to strings: y = [str(label) for label in y]."
    )


def _kind(value: object) -> type:
    """The type of classes that a value has, or its own type."""
    if isinstance(value, np.generic):
        value = value.item()
    return next((kind for kind in CLASS_TYPES if isinstance(value, kind)), type(value))


def check_shared(call: str, labels: Array, classes: Array) -> None:
    """Raise an error if classes seem to be targets of a regression.

    These are strings of numbers that are not all integers; and more than `FEW_CLASSES` classes that are also more than
    half as many as labels.
    """
    names = classes.tolist()
    if len(names) > FEW_CLASSES and 2 * len(names) > len(labels):
        what = f"holds {len(names)} classes for {len(labels)} labels; expected classes that several labels share."
        other = "make fewer classes"
    elif (fraction := _fraction(names)) is not None:
        what = f"holds numbers instead of classes, such as {fraction!r}; expected integers or names."
        other = "write classes as names, such as 'class 1.5'"
    else:
        return
    raise DataError(
        f"{call}: y {what}\nFor numbers use GraphRegressor, on the command line --regression; otherwise {other}."
    )


def _fraction(names: list[Any]) -> str | None:
    """The first string that is not an integer, if all are finite numbers."""
    try:
        numbers = [float(name) if isinstance(name, str) else math.nan for name in names]
    except ValueError:
        return None
    if not all(map(math.isfinite, numbers)):
        return None
    return next((name for name, number in zip(names, numbers, strict=True) if not number.is_integer()), None)


def check_both_directions(call: str, graphs: Sequence[Graph], flat: Array, known: NDArray[np.bool_]) -> None:
    """Raise an error if the two directions of an undirected edge have different known labels."""
    start = 0
    for number, graph in enumerate(graphs):
        labels, ends = flat[start : start + graph.n_edges], graph.edge_index.numpy()
        is_known = known[start : start + graph.n_edges]
        start += graph.n_edges
        if graph.directed:
            continue
        forwards, backwards = np.lexsort(ends), np.lexsort(ends[::-1])
        differ = (labels[forwards] != labels[backwards]).reshape(len(labels), -1 if labels.size else 1).any(axis=1)
        differ &= is_known[forwards] & is_known[backwards]
        if differ.any():
            one, other = ends[:, forwards[np.flatnonzero(differ)[0]]]
            raise DataError(
                f"{call}: graphs[{number}] is undirected, but y[{number}] has different labels for the edges "
                f"({one}, {other}) and ({other}, {one}).\nGive both the same, or make the graph with directed=True."
            )


def flat_weights(call: str, given: Any, counts: NDArray[np.int64], target: str) -> NDArray[np.float64]:
    """Sample weights as a flat array; those given for graphs are repeated for their labels."""
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
            raise DataError(f"{call}: the sum of sample_weight overflows float64.")
    return weights


def relative_weights(
    call: str, sample_weights: NDArray[np.float64], class_weights: NDArray[np.float64], training: NDArray[np.bool_]
) -> NDArray[np.float32]:
    """The products of sample weights and class weights, divided by their mean over the training set.

    Args:
        call: How messages name the call.
        sample_weights: The sample weight of each label.
        class_weights: The weight of the class of each label.
        training: Which labels are in the training set.
    """
    counts = (sample_weights > 0) & (class_weights > 0)
    if not counts[training].any():
        raise DataError(
            f"{call}: all weights of the training set are zero; at least one label must have a positive one."
        )
    with np.errstate(all="ignore"):
        products = sample_weights * class_weights
        scaled = products / products[training].max()  # first, since the mean of large numbers can overflow
        found: NDArray[np.float32] = (scaled / scaled[training].mean()).astype(np.float32)
    wrong = np.flatnonzero(~np.isfinite(found) | (counts & (found < MIN_WEIGHT)))
    if len(wrong):
        raise DataError(
            f"{call}: the weight of label {wrong[0]}, sample_weight times class_weight, divided by the mean weight "
            "does not fit float32.\nBring the weights closer together, or give weight 0 to labels that must not count."
        )
    return found


def _array(call: str, argument: str, given: object) -> Array:
    if given is None:
        raise DataError(
            f"{call} requires y to be passed, but the target y is None.\n"
            "Give a label for each graph: fit(graphs, labels)."
            if argument == "y"
            else f"{call}: {argument} is None."
        )
    if hasattr(given, "detach"):
        given = given.detach().cpu().numpy()
    if isinstance(given, np.ma.MaskedArray):
        hidden, given = np.ma.getmaskarray(given), np.array(given.data, dtype=object)
        given[hidden] = None  # masked labels are unknown
    try:
        found = np.asarray(given)
        if found.dtype.kind != "U" or not isinstance(given, list | tuple):
            return found
        objects = np.asarray(given, dtype=object)  # NumPy turns numbers between strings into text
        return found if all(isinstance(value, str) for value in objects.flat) else objects
    except ValueError as reason:
        raise DataError(f"{call}: {argument} must be an array, but its entries differ in length.") from reason
