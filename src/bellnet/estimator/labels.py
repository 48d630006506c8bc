"""Labels of graphs, nodes or edges: one flat array, and how many of them belong to each graph.

Whatever labels belong to, everything behind this module sees flat arrays: the loss, the weights, the part held out.
"""

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
"""What classes can be; True is also an int. Floats must be integers, which scikit-learn checks."""
FEW_CLASSES = 10
"""So many classes are not refused, however few labels there are."""
PLURAL = {"graph": "graphs", "node": "nodes", "edge": "edges"}


def count_labels(graphs: Sequence[Graph], target: str) -> NDArray[np.int64]:
    """How many labels each graph has: one, one for each node, or one for each listed edge."""
    if target == "graph":
        return np.ones(len(graphs), dtype=np.int64)
    return np.array([graph.n if target == "node" else graph.edge_index.shape[1] for graph in graphs], dtype=np.int64)


def flatten(call: str, argument: str, given: object, counts: NDArray[np.int64], target: str) -> Array:
    """Labels or weights as a flat array, the graphs one after the other.

    Args:
        call: How messages name the call.
        argument: How messages name what was given.
        given: For graphs an array with an entry for each; for nodes and edges a list with an array for each graph.
        counts: How many entries each graph must have.
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
    if len({array.dtype.kind for array in arrays}) > 1:  # or numpy would write NaN as text
        arrays = [array.astype(object) for array in arrays]
        return np.concatenate(arrays) if any(map(_has_gaps, arrays)) else _not_as_text(np.concatenate(arrays))
    return np.concatenate(arrays)


def split_up(flat: Array, counts: NDArray[np.int64], target: str) -> Any:
    """What `flatten` flattened: an array for graphs, a list of arrays for nodes and edges."""
    return flat if target == "graph" else np.split(flat, np.cumsum(counts)[:-1])


def one_dimensional(call: str, values: Array) -> Array:
    """Labels without a second axis; one of length one is dropped with scikit-learn's warning."""
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
    """Which labels are known; of nodes and edges some may be None or NaN, which stand for all that is not known."""
    if target == "graph":
        return np.ones(len(values), dtype=np.bool_)
    missing = _missing(values).reshape(len(values), -1 if values.size else 1)
    known = np.logical_not(missing.all(axis=1))
    if len(known) and not known.any():
        raise DataError(
            f"{call}: y has no label that is known; all {len(known)} are None or NaN.\n"
            f"Give some {PLURAL[target]} labels."
        )
    return known


def only_known(values: Array, known: NDArray[np.bool_]) -> Array:
    """The labels that are known, as if there were no others, which make objects of texts and floats of numbers."""
    if known.all():
        return values
    taken = values[known]
    if taken.dtype == object:
        taken = _not_as_text(taken)
    is_whole = taken.dtype.kind == "f" and bool((np.isfinite(taken) & (taken == np.round(taken))).all())
    return taken.astype(np.int64) if is_whole and bool((np.abs(taken) < 2**53).all()) else taken


def _not_as_text(values: Array) -> Array:
    """Objects in the type that numpy finds for them, unless that is text and some of them are none."""
    found = np.array(values.tolist())
    return values if found.dtype.kind == "U" and not all(isinstance(value, str) for value in values.flat) else found


def _has_gaps(values: Array) -> bool:
    return bool(_missing(values).any())


def _missing(values: Array) -> NDArray[np.bool_]:
    """Where there is None or NaN."""
    if values.dtype == object:
        return np.array([value is None or value != value for value in values.ravel()], dtype=np.bool_).reshape(
            values.shape
        )
    return np.isnan(values) if values.dtype.kind == "f" else np.zeros(values.shape, dtype=np.bool_)


def check_present(call: str, values: Array) -> None:
    """Refuse labels that are None, or not a finite and real number where numbers are given."""
    if values.dtype.kind == "c":
        raise DataError(
            f"{call}: y must hold real numbers or names of classes, but it is {values.dtype}.\n"
            "Give its real part, or real and imaginary part as two numbers each."
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
        places = np.flatnonzero(missing.reshape(len(values), -1).any(axis=1))
        raise DataError(
            f"{call}: y contains NaN or missing values: {len(places)} of {len(values)} labels are {what}, "
            f"the first is number {places[0]}.\nLeave those out, graphs and labels."
        )


def check_classes(call: str, values: Array) -> None:
    """Refuse labels that are not of one of the types that classes can have."""
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
    """The type of class labels that a value is of, or its own type."""
    if isinstance(value, np.generic):
        value = value.item()
    return next((kind for kind in CLASS_TYPES if isinstance(value, kind)), type(value))


def check_shared(call: str, labels: Array, classes: Array) -> None:
    """Refuse classes that seem to be the targets of a regression.

    These are texts that are all numbers, some of them not integers; and more than `FEW_CLASSES` classes if they are
    also more than half as many as there are labels.
    """
    names = classes.tolist()
    if len(names) > FEW_CLASSES and 2 * len(names) > len(labels):
        what = f"holds {len(names)} classes for {len(labels)} labels; expected classes that several labels share."
        other = "make fewer classes"
    elif (fraction := _fraction(names)) is not None:
        what = f"holds numbers in place of classes, such as {fraction!r}; expected integers or names."
        other = "write classes as names, such as 'class 1.5'"
    else:
        return
    raise DataError(
        f"{call}: y {what}\nFor numbers use GraphRegressor, on the command line --regression; otherwise {other}."
    )


def _fraction(names: list[Any]) -> str | None:
    """The first text that is no integer, if all are finite numbers."""
    try:
        numbers = [float(name) if isinstance(name, str) else math.nan for name in names]
    except ValueError:
        return None
    if not all(map(math.isfinite, numbers)):
        return None
    return next((name for name, number in zip(names, numbers, strict=True) if not number.is_integer()), None)


def check_both_directions(call: str, graphs: Sequence[Graph], flat: Array, known: NDArray[np.bool_]) -> None:
    """Refuse known labels of edges that differ between the two directions of an edge without direction."""
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
        given[hidden] = None  # what is masked is not known
    try:
        found = np.asarray(given)
        if found.dtype.kind != "U" or not isinstance(given, list | tuple):
            return found
        objects = np.asarray(given, dtype=object)  # numpy makes text of what stands beside text
        return found if all(isinstance(value, str) for value in objects.flat) else objects
    except ValueError as reason:
        raise DataError(f"{call}: {argument} must be an array, but its entries differ in length.") from reason
