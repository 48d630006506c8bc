"""Files of graphs in the format graph6: a line of printable characters for each undirected graph.

A character holds six bits, as the number that is left when 63 is subtracted. First comes the number of nodes, then the
upper triangle of the adjacency matrix, column by column.
"""

import os
from pathlib import Path

import torch

from bellnet.data.graph import Graph, undirected
from bellnet.errors import DataError

HEADER = b">>graph6<<"
LONG = 126
"""The character after which the number of nodes takes three others, and after two of which it takes six."""
OTHERS = {58: "sparse6", 59: "incremental sparse6", 38: "digraph6"}


def load(path: str | os.PathLike[str]) -> list[Graph]:
    """The graphs of a file, one for each line.

    Args:
        path: The file.
    """
    try:
        content = Path(path).read_bytes()
    except OSError as reason:
        raise DataError(f"graph6.load: {os.fspath(path)} cannot be read: {reason.strerror}.") from reason
    lines = content.removeprefix(HEADER).splitlines()
    return [
        read(line, where=f"graph6.load: line {number} of {os.fspath(path)}")
        for number, line in enumerate(lines, 1)
        if line.strip()
    ]


def read(text: str | bytes, *, where: str = "graph6.read") -> Graph:
    """The graph that some characters stand for.

    Args:
        text: The characters.
        where: How a message names the place where they come from.

    >>> read("DQc")
    Graph(n=5, edges=8)
    """
    given = text.encode() if isinstance(text, str) else bytes(text)
    line = given.strip().removeprefix(HEADER)
    if line[:1] and line[0] in OTHERS:
        raise DataError(f"{where} is {OTHERS[line[0]]}, not graph6.\nConvert it, for instance with networkx.")
    if not line or not all(63 <= byte <= LONG for byte in line):
        raise DataError(f"{where} is not graph6: expected characters from ? to ~, but it is {_shown(given)}.")
    n, bits = _size(line)
    wanted = -(-n * (n - 1) // 12)
    if len(bits) != wanted:
        raise DataError(
            f"{where} is not graph6: {n} nodes take {wanted} characters after their number, but there are {len(bits)}."
        )
    six = torch.tensor(list(bits), dtype=torch.int64)[:, None] - 63 >> torch.arange(5, -1, -1) & 1
    columns, rows = torch.tril_indices(n, n, -1)  # the upper triangle by columns is the lower one by rows
    linked = six.reshape(-1)[: len(rows)].bool()
    return undirected(n, torch.stack([rows[linked], columns[linked]], 1))


def write(graph: Graph) -> str:
    """The characters of an undirected graph without self-loops; features and labels have no place in them.

    >>> write(undirected(5, [(0, 2), (0, 4), (1, 3), (3, 4)]))
    'DQc'
    """
    source, target = graph.edge_index
    if graph.directed or bool((source == target).any()):
        raise DataError("graph6.write: the graph must be undirected and without self-loops.")
    triangle = torch.zeros(-(-graph.n * (graph.n - 1) // 12) * 6, dtype=torch.int64)
    upper = source < target
    triangle[target[upper] * (target[upper] - 1) // 2 + source[upper]] = 1
    six = triangle.reshape(-1, 6) @ (1 << torch.arange(5, -1, -1))
    return "".join(map(chr, [*_characters_of_size(graph.n), *(six + 63).tolist()]))


def _size(line: bytes) -> tuple[int, bytes]:
    """The number of nodes, and the characters after it."""
    if line[0] != LONG:
        return line[0] - 63, line[1:]
    start, stop = (2, 8) if line[1:2] == bytes([LONG]) else (1, 4)
    n = 0
    for byte in line[start:stop]:
        n = n << 6 | byte - 63
    return n, line[stop:]


def _characters_of_size(n: int) -> list[int]:
    if n <= 62:
        return [n + 63]
    places, lead = (3, [LONG]) if n < 1 << 18 else (6, [LONG, LONG])
    return [*lead, *(63 + (n >> 6 * place & 63) for place in range(places - 1, -1, -1))]


def _shown(given: bytes) -> str:
    words = given.decode("ascii", "backslashreplace")
    return repr(words if len(words) <= 40 else words[:40] + "...")
