"""Published splits of a data set into training and test graphs.

A split belongs to one order of the graphs, so it is looked for beside the files and never used with others.
"""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bellnet.errors import DataError

if TYPE_CHECKING:
    import numpy as np

    Split = tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]


def read_splits(name: str, place: Path, n_graphs: int) -> "list[Split] | None":
    """The splits in splits/NAME.json beside a zip or a folder; None if there are none.

    A graph may be in no test set, but in no split on both sides.
    """
    file = find_splits(name, place)
    return None if file is None else _read(file, n_graphs)


def find_splits(name: str, place: Path) -> Path | None:
    """The file splits/NAME.json beside a zip or a folder; None if there is none."""
    folders = dict.fromkeys([place, *place.parents[:3]]) if place.is_dir() else [place.parent]
    files = (folder / "splits" / f"{name}.json" for folder in folders)
    return next((file for file in files if file.is_file()), None)


def _read(file: Path, n_graphs: int) -> "list[Split]":
    import numpy as np

    form = 'expected {"folds": [{"train": [...], "test": [...]}, ...]} with whole numbers'
    try:
        stored = json.loads(file.read_text(encoding="utf-8"))
        splits = [tuple(np.array(part[side]) for side in ("train", "test")) for part in stored["folds"]]
    except RecursionError as reason:
        raise DataError(f"{file}: {form}; the JSON is nested too deeply to be read.\nGet the file again.") from reason
    except (OSError, ValueError, KeyError, TypeError) as reason:
        raise DataError(f"{file}: {form}; {type(reason).__name__}: {reason}.\nGet the file again.") from reason
    for number, (train, test) in enumerate(splits):
        for side, places in (("train", train), ("test", test)):
            if places.ndim != 1 or not np.issubdtype(places.dtype, np.integer):
                raise DataError(f"{file}: {form}; {side} of split {number} is something else.\nGet the file again.")
            if len(places) and not 0 <= places.min() <= places.max() < n_graphs:
                raise DataError(
                    f"{file}: expected places from 0 to {n_graphs - 1}, since there are {n_graphs} graphs; {side} of "
                    f"split {number} goes from {places.min()} to {places.max()}.\n"
                    "The splits are those of another copy of the data set; remove them or get them again."
                )
        both = np.intersect1d(train, test)
        if len(both):
            raise DataError(f"{file}: graph {both[0]} is in train and in test of split {number}.\nGet the file again.")
    return [(train.astype(np.int64), test.astype(np.int64)) for train, test in splits]
