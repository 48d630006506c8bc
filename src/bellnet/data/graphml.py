"""A folder of GraphML files, one graph each, with a CSV of labels.

Readers of GraphML ignore unknown elements, and XML entities can expand a small file without bound. Here both are
errors. A document type, which alone can define entities, is found in the text before any parser reads it.
"""

import codecs
import copy
import csv
import io
import os
import re
import xml.etree.ElementTree
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Unpack
from xml.etree.ElementTree import Element

import torch

from bellnet._utils.optional import require
from bellnet.data.attributes import DAMAGE, GivenNames, Names
from bellnet.data.converters.conversion import read
from bellnet.data.graph import GraphSet, number_classes
from bellnet.data.text_numbers import INTEGER_FORM, REAL_FORM, integer, shown
from bellnet.errors import DataError

_NOT_UTF8 = re.compile("[\udc80-\udcff]")
"""Surrogates, which represent bytes that are not UTF-8."""
_NOT_FINITE = re.compile(r"[+-]?(nan|inf|infinity)", re.IGNORECASE)

_SPACE = "{http://graphml.graphdrawing.org/xmlns}"
_MARKS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
    (b"<\0", "utf-16-le"),
    (b"\0<", "utf-16-be"),
)
_DECLARED = re.compile(rb"""<\?xml\s[^>]*?\bencoding\s*=\s*["']([^"'>]*)["']""")
_BEFORE_TYPE = re.compile(r"(?:\s|<\?.*?\?>|<!--.*?-->)*", re.DOTALL)
_PARTS: dict[str, set[str]] = {
    "graphml": {"desc", "key", "data", "graph"},
    "key": {"desc", "default"},
    "graph": {"desc", "data", "node", "edge"},
    "node": {"desc", "data"},
    "edge": {"desc", "data"},
    "data": set(),
    "default": set(),
}
_ONLY_TEXT = ("data", "default")
_EVERY = "all"
_KEYS_FOR = (_EVERY, "graphml", "graph", "node", "edge", "hyperedge", "port", "endpoint")
_DRAWING = "yfiles.type"  # an attribute of keys whose values are drawings by yEd, of which the label text is read
_WHY = {
    "graph": "nodes and edges hold no graphs",
    "hyperedge": "an edge joins two nodes",
    "port": "edges join nodes, not ports",
    "locator": "nothing is fetched from elsewhere",
}


def load(
    folder: str | os.PathLike[str], labels: str | os.PathLike[str] | None = None, **names: Unpack[GivenNames]
) -> GraphSet:
    """The graphs of all files *.graphml of a folder, sorted by name; `ids` are the names. Needs the extra `graphs`.

    The CSV has a header with at least `file` and `label`, and one line for each file. If all labels are integers, which
    must fit int64, these are the classes, otherwise texts are. If all labels are numbers, which must be finite in
    torch's default dtype, they are targets as well.

    A file contains one graph, and whatever a `Graph` cannot represent is an error: nested graphs, hyperedges, ports,
    parallel edges, edges to undefined nodes. So is a document type. A missing value is the default of its key.

    Args:
        folder: The folder.
        labels: The CSV; `labels.csv` in the folder if None. Without such a file the graphs have no labels.
        **names: `node_attrs`, `edge_attrs`, `node_labels` and `edge_labels`, see `as_graph`.
    """
    require("networkx", extra="graphs", call="graphml.load")
    path = Path(folder)
    files = sorted(path.glob("*.graphml"))
    if not files:
        problem = "has no file *.graphml" if path.is_dir() else "is not a folder"
        raise DataError(f"graphml.load(folder): {path} {problem}.\nPass a folder with one GraphML file for each graph.")
    graphs = read("graphml.load(folder)", [_read(file) for file in files], Names.of(**names), [*map(str, files)])
    file_names = tuple(file.name for file in files)
    table = Path(labels) if labels is not None else path / "labels.csv"
    if labels is None and not table.is_file():
        return GraphSet(path.name, graphs, None, ids=file_names)
    values = _labels(table, file_names)
    numbers, classes = number_classes(_integers(table, values) or [*values.values()])
    return GraphSet(path.name, graphs, numbers, classes, _targets(table, values), ids=file_names)


def _read(file: Path) -> Any:
    """The networkx graph of a file."""
    import networkx

    try:
        found = networkx.parse_graphml(_checked_text(file))
    except DataError:
        raise
    except RecursionError as reason:
        raise DataError(f"{file}: its elements are nested too deeply to be read.\nRemove them.") from reason
    except (xml.etree.ElementTree.ParseError, networkx.NetworkXError, OSError, *DAMAGE) as reason:
        raise DataError(
            f"{file} cannot be read as GraphML: {reason}.\nIt is cut off or damaged; write it again."
        ) from reason
    for name, owners in (("node_default", found.nodes), ("edge_default", found.edges)):
        for owner in owners:
            owners[owner].update({**found.graph[name], **owners[owner]})
    for edge in found.edges.values():
        edge.pop("id", None)  # the id of the edge, which networkx stores with its attributes
    return found


def _labels(table: Path, names: tuple[str, ...]) -> dict[str, str]:
    """The label of each of these files, in their order."""
    try:
        content = table.read_bytes()
        # Names of files may be any bytes; everything else is text.
        reader = csv.DictReader(io.StringIO(content.decode("utf-8-sig", "surrogateescape"), newline=""))
        rows: list[dict[str, str | None]] = list(reader)
        headings = list(reader.fieldnames or [])
        if any(map(_NOT_UTF8.search, (*headings, *(row.get("label") or "" for row in rows)))):
            content.decode("utf-8-sig")  # raises, with the position
    except (OSError, UnicodeDecodeError, csv.Error) as reason:
        raise DataError(f"{table} cannot be read: {reason}.\nPass a CSV with the headings file,label.") from reason
    if headings.count("file") != 1 or headings.count("label") != 1:
        raise DataError(
            f"{table}: expected one heading file and one heading label, got {', '.join(headings) or 'none'}.\n"
            "Write file,label into the first line."
        )
    known: dict[str, str] = {}
    for line, row in enumerate(rows, 2):
        file, value = row["file"], row["label"]
        if not file or value is None or not value.strip():
            raise DataError(
                f"{table}, line {line}: expected a file and a label, got {file!r} and {value!r}.\nFill in the line."
            )
        if file in known:
            raise DataError(f"{table}, line {line}: {file} has a label already.\nRemove one of the lines.")
        known[file] = value.strip()
    missing, unknown = [name for name in names if name not in known], [file for file in known if file not in names]
    if missing or unknown:
        problem = "has no label for" if missing else "has labels for missing files:"
        which = missing or unknown
        raise DataError(
            f"{table} {problem} {', '.join(which[:3])}{' and others' if len(which) > 3 else ''}.\n"
            "It needs one line for each file *.graphml of the folder."
        )
    return {name: known[name] for name in names}


def _integers(table: Path, values: dict[str, str]) -> list[int] | None:
    """The labels as integers; None if one is something else."""
    if not all(map(INTEGER_FORM.fullmatch, values.values())):
        return None
    found = []
    for file, value in values.items():
        number = integer(value)
        if number is None:
            raise DataError(
                f"{table}: expected an integer within int64 for {file}, got {shown(value)}.\n"
                "Use smaller labels, or text."
            )
        found.append(number)
    return found


def _targets(table: Path, values: dict[str, str]) -> torch.Tensor | None:
    """The labels as targets; None if one is not a number."""
    if not all(REAL_FORM.fullmatch(value) or _NOT_FINITE.fullmatch(value) for value in values.values()):
        return None
    targets = torch.tensor([[float(value)] for value in values.values()])
    for (file, value), target in zip(values.items(), targets, strict=True):
        if not target.isfinite():
            raise DataError(
                f"{table}: expected a finite number within {targets.dtype} for {file}, got {shown(value)}, but all "
                "labels are numbers.\nScale the labels, remove the graph, or use text."
            )
    return targets


def _checked_text(file: Path) -> str:
    """The text of a GraphML file all of which networkx reads.

    A key for all elements that has a default is replaced by one for nodes and one for edges.
    """
    text = _decode(file, file.read_bytes())
    begin = _BEFORE_TYPE.match(text)
    if begin and text.startswith("<!DOCTYPE", begin.end()):
        raise DataError(
            f"{file}: a document type (<!DOCTYPE ...>) is not read, since it can define text without end and name "
            "other files.\nRemove it; GraphML needs none."
        )
    root = xml.etree.ElementTree.fromstring(text)
    if _name(root) == "graphml":
        _check(file, root)
        if _split_keys(root):
            return xml.etree.ElementTree.tostring(root, encoding="unicode")
    return text


def _split_keys(root: Element) -> bool:
    """Replaces each key for all elements with a default by one for nodes and one for edges; whether there was any.

    Values refer to their key by its id, so the second key, which only provides the default, has an id of its own.
    """
    keys = [part for part in root if _name(part) == "key"]
    unused = "edge " + max((key.get("id", "") for key in keys), key=len, default="")  # longer than all others
    found = [key for key in keys if key.get("for", _EVERY) == _EVERY and any(_name(part) == "default" for part in key)]
    for number, key in enumerate(found):
        second = copy.deepcopy(key)
        key.set("for", "node")
        second.set("for", "edge")
        second.set("id", f"{unused} {number}")
        root.insert(0, second)
    return bool(found)


def _decode(file: Path, content: bytes) -> str:
    declared = _DECLARED.match(content)
    default = declared.group(1).decode("ascii", "replace") if declared else "utf-8"
    encoding = next((name for mark, name in _MARKS if content.startswith(mark)), default)
    try:
        return content.decode(encoding)
    except (LookupError, UnicodeDecodeError) as reason:
        raise DataError(f"{file} cannot be decoded: {reason}.\nWrite the file as UTF-8.") from reason


def _check(file: Path, root: Element) -> None:
    """Raises a `DataError` for content that networkx would ignore."""
    graphs = _children(file, root, "graph")
    if len(graphs) > 1:
        raise DataError(f"{file}: expected one graph, got {len(graphs)}.\nWrite each graph into a file of its own.")
    keys = _children(file, root, "key")
    _refuse_twice(file, "key", (key.get("id") for key in keys))
    for kind in ("node", "edge", "graph"):
        named = (key for key in keys if key.get("for", _EVERY) in (kind, _EVERY) and key.get("attr.name") is not None)
        _refuse_twice(file, "attr.name", (key.get("attr.name") for key in named), f" for {kind}s")
    for key in keys:
        _one_of(file, f"for of the <key> {key.get('id')!r}", key.get("for", _EVERY), _KEYS_FOR)
        defaults = _children(file, key, "default")
        if len(defaults) > 1:
            raise DataError(
                f"{file}: the key {key.get('id')!r} has {len(defaults)} defaults.\nRemove all but one of them."
            )
        for default in defaults:
            _children(file, default)
    drawings = {key.get("id") for key in keys if key.get(_DRAWING) is not None}
    for graph in graphs:
        _check_graph(file, graph, drawings)


def _check_graph(file: Path, graph: Element, drawings: set[str | None]) -> None:
    _one_of(file, "edgedefault of the <graph>", graph.get("edgedefault"), ("directed", "undirected"))
    nodes, edges = (_children(file, graph, name) for name in ("node", "edge"))
    names = [node.get("id") for node in nodes]
    if None in names:
        raise DataError(f"{file}: there is a node without id, number {names.index(None)}.\nGive every node an id.")
    _refuse_twice(file, "node", names)
    _refuse_twice(file, "edge", (edge.get("id") for edge in edges if edge.get("id") is not None))
    known = set(names)
    for edge in edges:
        ends = edge.get("source"), edge.get("target")
        if not known.issuperset(ends):
            raise DataError(
                f"{file}: an edge joins {ends[0]!r} with {ends[1]!r}, but there is no such node.\n"
                "Every edge needs source and target, and every node a <node>."
            )
        for port in ("sourceport", "targetport"):
            if edge.get(port) is not None:
                raise DataError(f"{file}: {port} of an <edge> is not read: {_WHY['port']}.\nRemove it.")
        if edge.get("directed") is not None:
            _one_of(file, "directed of an <edge>", edge.get("directed"), ("true", "false"))
    for owner in (graph, *nodes, *edges):
        values = _children(file, owner, "data")
        _refuse_twice(file, "data", (data.get("key") for data in values))
        for data in values:
            if data.get("key") not in drawings:
                _children(file, data)


def _children(file: Path, parent: Element, wanted: str | None = None) -> list[Element]:
    """The children of that name; a `DataError` if there are others than those that are read."""
    above = _name(parent)
    found = []
    for text in () if above in _ONLY_TEXT else (parent.text, *(part.tail for part in parent)):
        if text and (got := text.strip()):
            raise DataError(
                f"{file}: the text {shown(got)} within <{above}> is not read: values stand in <data>.\nRemove it."
            )
    for part in parent:
        name = _name(part)
        if name not in _PARTS[above]:
            why = _WHY.get(name, "it is no part of GraphML there")
            raise DataError(f"{file}: <{name}> within <{above}> is not read: {why}.\nRemove it.")
        if name == wanted:
            found.append(part)
    return found


def _refuse_twice(file: Path, part: str, names: Iterable[str | None], of: str = "") -> None:
    seen = set()
    for name in names:
        if name in seen:
            raise DataError(f"{file}: the {part} {name!r}{of} occurs twice.\nRemove one of them.")
        seen.add(name)


def _one_of(file: Path, what: str, got: str | None, known: tuple[str, ...]) -> None:
    if got not in known:
        *most, last = map(repr, known)
        raise DataError(f"{file}: {what} must be {', '.join(most)} or {last}, got {got!r}.\nWrite one of them.")


def _name(part: Element) -> str:
    return part.tag.removeprefix(_SPACE)
