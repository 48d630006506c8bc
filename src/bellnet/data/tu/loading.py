"""Load a data set of the TU layout."""

import os
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from bellnet._utils.optional import require
from bellnet.data.graph import Graph
from bellnet.data.sets import GraphSet, number_classes
from bellnet.data.tu import cache as kept
from bellnet.data.tu.collection import NAMES
from bellnet.data.tu.fetch import fetch
from bellnet.data.tu.files import Files, Zipped, find, names_in
from bellnet.data.tu.parcel import Parcel
from bellnet.data.tu.parcel import pack as packed
from bellnet.data.tu.parse import Arrays, parse
from bellnet.data.tu.splits import read_splits
from bellnet.data.tu.unpack import MAX_RATIO, MAX_UNPACKED, Bound
from bellnet.errors import DataError, did_you_mean

if TYPE_CHECKING:
    import numpy as np

    Array = np.ndarray[Any, Any]


@dataclass(frozen=True, eq=False, repr=False)
class TUSet(GraphSet):
    """A data set of the TU layout: a `GraphSet`, and published splits where they came with it.

    Attributes:
        splits: For each split the places of its training graphs and of its test graphs, or None. Some published
            splits leave a few graphs out of every test set.
    """

    splits: "list[tuple[Array, Array]] | None" = None


def load(
    name: str | None = None,
    data: str | os.PathLike[str] | None = None,
    root: str | os.PathLike[str] | None = None,
    *,
    cache: str | os.PathLike[str] | bool = True,
    max_unpacked: float | None = None,
    max_ratio: float | None = None,
) -> TUSet:
    """A data set of the TU collection, or of the same layout. Needs the extra `graphs`.

    Edges are kept as the files list them: with self-loops, directed where they are not symmetric. An edge that is
    listed twice counts once. Node labels are `node_labels`, as in the file; node and edge attributes are features;
    edge labels become features, one for each label (and so do node labels if there are several for a node).

    Args:
        name: The name of the data set, for instance "MUTAG". May be left out if `data` holds only one.
        data: A zip, a folder of zips (and of `splits/NAME.json`), or an unpacked folder. If None: the environment
            variable BELLNET_DATA where that has the data set, or else it is downloaded.
        root: The folder for downloads; a folder in the cache if None.
        cache: The folder in which parsed sets are kept; True for the environment variable BELLNET_CACHE or the usual
            folder of the platform, False for none.
        max_unpacked: The most bytes that a file in a zip may unpack to; a gigabyte (2**30) if None. Reading a file
            takes up to ten times as much memory.
        max_ratio: The most bytes that a file in a zip may unpack to for each byte that it takes there; 200 if None.
            Files that unpack to no more than 32 megabytes are read whatever their ratio.
    """
    require("numpy", extra="graphs", call="tu.load")
    bound = Bound(MAX_UNPACKED if max_unpacked is None else max_unpacked, MAX_RATIO if max_ratio is None else max_ratio)
    files = _files(name, data, root, bound=bound)
    if cache is False:
        found = _build(files.name, parse(files))
    else:
        folder = kept.default_folder() if cache is True else Path(cache)
        found = _kept_or_parsed(files, kept.file_for(folder, files.name, files.digest()))
    return replace(found, splits=read_splits(files.name, files.place, len(found)))


def pack(name: str, data: str | os.PathLike[str] | None = None) -> Parcel:
    """A data set with its splits, for another machine: `receive` keeps it there, and `load` reads what was kept.

    Args:
        name: The name of the data set.
        data: Where it is, as in `load`.
    """
    return packed(_files(name, data, None, bound=Bound(MAX_UNPACKED, MAX_RATIO)))


def known_names() -> list[str]:
    """The names of data sets that `load` knows: those in the folder BELLNET_DATA, and those of the TU collection."""
    usual = Path(os.environ.get("BELLNET_DATA") or os.devnull)
    return sorted({*NAMES, *(names_in(usual) if usual.is_dir() else ())})


def _kept_or_parsed(files: Files, file: Path) -> TUSet:
    arrays = kept.read(file)
    if arrays is not None:
        with suppress(ValueError, TypeError, IndexError, RuntimeError):  # a damaged file is as good as none
            return _build(files.name, arrays)
    arrays = parse(files)
    found = _build(files.name, arrays)
    kept.write(file, arrays)
    return found


def _files(
    name: str | None, data: str | os.PathLike[str] | None, root: str | os.PathLike[str] | None, *, bound: Bound
) -> Files:
    if data is not None:
        place = Path(data)
        if not place.exists():
            raise DataError(f"tu.load: data must be a zip or a folder, but there is no {place}.")
        files = find(name, place, bound)
        if files is None:
            there = sorted(file.stem for file in place.glob("*.zip"))
            raise DataError(
                f'tu.load("{name}"): {place} has neither {name}.zip nor {name}_A.txt nor {name}/{name}_A.txt. '
                f"{did_you_mean(str(name), names_in(place))}".rstrip()
                + (f"\nThere are {', '.join(there)}." if there else "\nThere is no zip at all.")
            )
        return files
    if name is None:
        raise DataError('tu.load: name the data set, tu.load("MUTAG"), or say where it is, tu.load(data=...).')
    if usual := os.environ.get("BELLNET_DATA"):
        if not Path(usual).is_dir():
            raise DataError(
                f'tu.load("{name}"): the environment variable BELLNET_DATA must name a folder, but there is no {usual}.'
            )
        if files := find(name, Path(usual), bound):
            return files
    folder = Path(root) if root is not None else kept.default_folder() / "tu"
    return Zipped(fetch(name, folder, known_names()), name, bound)


def _build(name: str, arrays: Arrays) -> TUSet:
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
    return TUSet(name, graphs, labels, classes, targets)


def _features(values: "Array | None", rows: slice) -> torch.Tensor | None:
    """In float32, or as they are where one of them does not fit that."""
    if values is None:
        return None
    found = torch.from_numpy(values[rows])
    narrow = found.to(torch.float32)
    return narrow if bool(narrow.isfinite().all()) else found.clone()
