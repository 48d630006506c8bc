"""Data sets of the TU layout as graphs, with their published splits."""

import os
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from bellnet._utils.json_text import read_json
from bellnet._utils.optional import require
from bellnet.data.graph import Graph, GraphSet, number_classes
from bellnet.data.tu import cache as cached
from bellnet.data.tu.cache import NAMES, Parcel, default_folder, fetch
from bellnet.data.tu.parse import Arrays, parse
from bellnet.data.tu.tu_files import Files, find, names_in
from bellnet.data.tu.unzip import MAX_RATIO, MAX_UNPACKED, Bound
from bellnet.errors import DataError, did_you_mean

if TYPE_CHECKING:
    import numpy as np

    Array = np.ndarray[Any, Any]
    Split = tuple[Array, Array]

PathLike = str | os.PathLike[str]


def load(
    name: PathLike | None = None,
    data: PathLike | None = None,
    root: PathLike | None = None,
    *,
    cache: PathLike | bool = True,
    max_unpacked: float | None = None,
    max_ratio: float | None = None,
) -> GraphSet:
    """A data set of the TU collection, or of the same layout. Needs the extra `graphs`.

    Edges are those of the files: with self-loops, directed where they are not symmetric. An edge that occurs twice
    counts once. Node labels are `node_labels`, as in the file; node and edge attributes are features; edge labels are
    features, one for each label (and so are node labels if a node has several).

    Args:
        name: The name of the data set, for instance "MUTAG"; or its path: a `Path`, or a text with a separator or the
            ending ".zip". May be omitted if `data` has a single data set.
        data: A zip, a folder of zips (and of `splits/NAME.json`), or an unpacked folder. If None: the environment
            variable BELLNET_DATA where it has the data set; otherwise the data set is downloaded.
        root: The folder for downloads; a folder in the cache if None.
        cache: The folder for parsed data sets; True for the environment variable BELLNET_CACHE or the default of the
            platform, False for no cache.
        max_unpacked: Maximum number of bytes that a file in a zip may unpack to; a gigabyte (2**30) if None. Reading a
            file takes up to ten times as much memory.
        max_ratio: Maximum number of bytes that a file in a zip may unpack to for each byte that it takes there; 200 if
            None. Files of up to 32 megabytes are read whatever their ratio.
    """
    require("numpy", extra="graphs", call="tu.load")
    bound = Bound(MAX_UNPACKED if max_unpacked is None else max_unpacked, MAX_RATIO if max_ratio is None else max_ratio)
    files = _files(name, data, root, bound=bound)
    if cache is False:
        found = _build(files.name, parse(files))
    else:
        folder = default_folder() if cache is True else Path(cache)
        found = _cached_or_parsed(files, folder / f"{files.name}-{files.digest()[:16]}-v{cached.VERSION}.npz")
    return replace(found, splits=_read_splits(files.name, files.path, len(found)))


def pack(name: PathLike, data: PathLike | None = None) -> Parcel:
    """A data set with its splits, for another machine: `receive` stores it there, and `load` reads it.

    The same files give the same parcel.

    Args:
        name: The name of the data set.
        data: Where it is, as in `load`.
    """
    files = _files(name, data, None, bound=Bound(MAX_UNPACKED, MAX_RATIO))
    found = find_splits(files.name, files.path)
    try:
        return Parcel(files.name, files.as_zip(), None if found is None else found.read_bytes())
    except OSError as reason:
        raise DataError(
            f"{files.path} cannot be read: {reason.strerror or reason}.\nGet the data set again."
        ) from reason


def known_names() -> list[str]:
    """The names of data sets that `load` knows: those in the folder BELLNET_DATA, and those of the TU collection."""
    folder = Path(os.environ.get("BELLNET_DATA") or os.devnull)
    return sorted({*NAMES, *(names_in(folder) if folder.is_dir() else ())})


def _files(name: PathLike | None, data: PathLike | None, root: PathLike | None, *, bound: Bound) -> Files:
    # Whether a name is a path does not depend on which files exist.
    is_path = name is not None and (not isinstance(name, str) or name.endswith(".zip") or "/" in name or os.sep in name)
    if data is None and is_path:
        name, data = None, name
    name = None if name is None else os.fspath(name)
    if data is not None:
        return _files_at(name, Path(data), bound)
    if name is None:
        raise DataError('tu.load: pass the name of the data set, tu.load("MUTAG"), or its path, tu.load(data=...).')
    if given := os.environ.get("BELLNET_DATA"):
        if not Path(given).is_dir():
            raise DataError(
                f'tu.load("{name}"): the environment variable BELLNET_DATA must name a folder, but there is no {given}.'
            )
        if files := find(name, Path(given), bound):
            return files
    folder = Path(root) if root is not None else default_folder() / "tu"
    return Files.in_zip(fetch(name, folder, known_names()), name, bound)


def _files_at(name: str | None, source: Path, bound: Bound) -> Files:
    if not source.exists() and name is None and (zipped := source.with_name(f"{source.name}.zip")).is_file():
        source = zipped
    if not source.exists():
        raise DataError(f"tu.load: expected a zip or a folder, but there is no {source}.")
    files = find(name, source, bound)
    if files is None:
        there = names_in(source)
        raise DataError(
            f'tu.load("{name}"): {source} has neither {name}.zip nor {name}_A.txt nor {name}/{name}_A.txt. '
            f"{did_you_mean(str(name), there)}".rstrip()
            + f"\nIt has {', '.join(there) or 'no data set'}."
        )
    return files


def _cached_or_parsed(files: Files, file: Path) -> GraphSet:
    arrays = cached.read(file)
    if arrays is not None:
        with suppress(ValueError, TypeError, IndexError, RuntimeError):  # a damaged file is treated as a missing one
            return _build(files.name, arrays)
    arrays = parse(files)
    found = _build(files.name, arrays)
    cached.write(file, arrays)
    return found


def _build(name: str, arrays: Arrays) -> GraphSet:
    labels, classes = (None, ()) if arrays.labels is None else number_classes(arrays.labels.tolist())
    graphs = []
    node = edge = 0
    for n, n_edges in zip(arrays.sizes.tolist(), arrays.edge_counts.tolist(), strict=True):
        nodes, edges = slice(node, node + n), slice(edge, edge + n_edges)
        kinds = None if arrays.node_labels is None else torch.from_numpy(arrays.node_labels[nodes])
        graphs.append(
            Graph(
                n,
                torch.from_numpy(arrays.edges[:, edges]).to(torch.int64),
                edge_features=_features(arrays.edge_features, edges),
                node_features=_features(arrays.node_features, nodes),
                node_labels=None if kinds is None else kinds.to(torch.int64, copy=True),
                directed=arrays.directed,
            )
        )
        node, edge = node + n, edge + n_edges
    targets = None if arrays.targets is None else torch.from_numpy(arrays.targets)
    return GraphSet(name, graphs, labels, classes, targets)


def _features(values: "Array | None", rows: slice) -> torch.Tensor | None:
    """In float32, or in float64 where a value does not fit float32."""
    if values is None:
        return None
    found = torch.from_numpy(values[rows])
    narrow = found.to(torch.float32)
    return narrow if bool(narrow.isfinite().all()) else found.clone()


def find_splits(name: str, source: Path) -> Path | None:
    """The file splits/NAME.json beside a zip or a folder; None if there is none.

    Splits hold for one order of the graphs, so only those beside the files are used.
    """
    folders = dict.fromkeys([source, *source.parents[:3]]) if source.is_dir() else [source.parent]
    files = (folder / "splits" / f"{name}.json" for folder in folders)
    return next((file for file in files if file.is_file()), None)


def _read_splits(name: str, source: Path, n_graphs: int) -> "list[Split] | None":
    """The published splits, or None. A graph may be in no test set, but not on both sides of a split."""
    import numpy as np

    file = find_splits(name, source)
    if file is None:
        return None
    form = f'{file}: expected {{"folds": [{{"train": [...], "test": [...]}}, ...]}} with integers'
    again = "\nGet the file again."
    try:
        stored = read_json(file.read_text(encoding="utf-8"))
        splits = [tuple(np.array(part[side]) for side in ("train", "test")) for part in stored["folds"]]
    except (OSError, ValueError, KeyError, TypeError) as reason:
        raise DataError(f"{form}; {type(reason).__name__}: {str(reason).rstrip('.')}.{again}") from reason
    for number, (train, test) in enumerate(splits):
        for side, indices in (("train", train), ("test", test)):
            if indices.ndim != 1 or not np.issubdtype(indices.dtype, np.integer):
                raise DataError(f"{form}; {side} of split {number} is something else.{again}")
            if len(indices) and not 0 <= indices.min() <= indices.max() < n_graphs:
                raise DataError(
                    f"{file}: expected indices from 0 to {n_graphs - 1}, since there are {n_graphs} graphs; {side} of "
                    f"split {number} goes from {indices.min()} to {indices.max()}.\n"
                    "The splits are those of another copy of the data set; remove them or get them again."
                )
        if len(both := np.intersect1d(train, test)):
            raise DataError(f"{file}: graph {both[0]} is in train and in test of split {number}.{again}")
    return [(train.astype(np.int64), test.astype(np.int64)) for train, test in splits]
