"""Graphs in the format graph6: a file with a graph on each line, and BREC.

BREC is 400 pairs of graphs in six categories (Wang and Zhang, 2023), in the files that its authors publish: either
`brec_v3.npy`, all pairs one after the other, 32 permuted copies of both graphs by turns, then copies of one graph each
for a test of reliability, which are not needed here; or the files that one is made from, with every graph once:
`basic.npy` and others. All are arrays of graph6.
"""

import os
from pathlib import Path
from typing import Any

from bellnet.data import Graph, as_graph
from bellnet.errors import DataError
from experiments.data.families import Pair
from experiments.machine import require

WHOLE = "brec_v3.npy"
COPIES = 32
CATEGORIES = {
    "basic": 60,
    "regular": 100,
    "extension": 100,
    "CFI": 100,
    "4-vertex condition": 20,
    "distance regular": 20,
}
"""The number of pairs of each category, in the order of `brec_v3.npy`."""
FILES = {
    "basic": ("basic.npy",),
    "regular": ("regular.npy", "str.npy"),
    "extension": ("extension.npy",),
    "CFI": ("cfi.npy",),
    "4-vertex condition": ("4vtx.npy",),
    "distance regular": ("dr.npy",),
}


def load(path: str | os.PathLike[str]) -> list[Graph]:
    """The graphs of a file, one for each line."""
    try:
        lines = Path(path).read_bytes().splitlines()
    except OSError as reason:
        raise DataError(f"graph6.load: {os.fspath(path)} cannot be read: {reason.strerror}.") from reason
    place = f"of {os.fspath(path)}"
    return [_graph(line, f"graph6.load: line {number} {place}") for number, line in enumerate(lines, 1) if line.strip()]


def _graph(text: str | bytes, where: str) -> Graph:
    """The graph that a line of graph6 stands for; an error names where it comes from."""
    require("networkx", extra="experiments", call="graph6")
    import networkx

    try:
        return as_graph(networkx.from_graph6_bytes((text.encode() if isinstance(text, str) else text).strip()))
    except (networkx.NetworkXError, ValueError, IndexError) as reason:
        raise DataError(f"{where} is not graph6: {reason}.") from reason


def load_brec(folder: str | os.PathLike[str]) -> dict[str, list[Pair]]:
    """The pairs of each category."""
    place = Path(folder)
    whole = _find(place, WHOLE)
    if whole is not None:
        return _from_whole(whole)
    found = {category: [path for name in names if (path := _find(place, name))] for category, names in FILES.items()}
    pairs = {category: _from_parts(category, paths) for category, paths in found.items() if paths}
    if not pairs:
        names = ", ".join(name for names in FILES.values() for name in names)
        raise DataError(f"load_brec: {place} has none of BREC's files.\nIt must hold {WHOLE}, or some of {names}.")
    return pairs


def _find(folder: Path, name: str) -> Path | None:
    return next(iter(sorted(folder.rglob(name))), None)


def _from_whole(path: Path) -> dict[str, list[Pair]]:
    records = _array(path).reshape(-1)
    total = sum(CATEGORIES.values())
    if len(records) not in (wanted := (2 * COPIES * total, 4 * COPIES * total)):
        raise DataError(
            f"load_brec: {path} must hold {wanted[1]:,} graphs, or {wanted[0]:,} without the test of reliability, "
            f"but it holds {len(records):,}."
        )
    pairs, start = {}, 0
    for category, count in CATEGORIES.items():
        numbers = range(start, start + count)
        pairs[category] = [
            _pair(f"{category} {number}", records[2 * COPIES * number : 2 * COPIES * number + 2], path)
            for number in numbers
        ]
        start += count
    return pairs


def _from_parts(category: str, paths: list[Path]) -> list[Pair]:
    pairs = []
    for path in paths:
        records = _array(path).reshape(-1)
        if len(records) % 2:
            raise DataError(f"load_brec: {path} must hold pairs of graphs, but it holds {len(records)} graphs.")
        for number in range(0, len(records), 2):
            pairs.append(_pair(f"{path.stem} {number // 2}", records[number : number + 2], path))
    return pairs


def _pair(name: str, records: Any, path: Path) -> Pair:
    first, second = (_graph(record, f"load_brec: a graph of {name} in {path}") for record in records.tolist())
    return Pair(name, first, second)


def _array(path: Path) -> Any:
    import numpy as np

    try:
        array = np.load(path, allow_pickle=False)
    except (OSError, ValueError, EOFError) as reason:
        raise DataError(f"load_brec: {path} cannot be read as an array of numpy: {reason}.") from reason
    if not isinstance(array, np.ndarray) or array.dtype.kind not in "SU":
        raise DataError(f"load_brec: {path} must be an array of graph6, which are bytes or text.")
    return array
