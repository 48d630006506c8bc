"""The text of a GraphML file, from which nothing is lost when it is read as one graph.

Readers of GraphML pass over what they do not know, and XML has means to make a small file endless. Here both are
errors. A document type, which alone can define entities, is found in the text itself: no parser sees it, so nothing
depends on what the parser at hand would make of it.
"""

import codecs
import re
import xml.etree.ElementTree
from collections.abc import Iterable
from pathlib import Path
from xml.etree.ElementTree import Element

from bellnet.errors import DataError

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
_PARTS = {
    "graphml": {"desc", "key", "data", "graph"},
    "key": {"desc", "default"},
    "graph": {"desc", "data", "node", "edge"},
    "node": {"desc", "data"},
    "edge": {"desc", "data"},
}
_WHY = {
    "graph": "nodes and edges hold no graphs",
    "hyperedge": "an edge joins two nodes",
    "port": "edges join nodes, not ports",
    "locator": "nothing is fetched from elsewhere",
}


def graphml_text(file: Path) -> str:
    """The text of a GraphML file, if all of it can be read.

    Raises:
        OSError: The file cannot be read at all.
        xml.etree.ElementTree.ParseError: It is not XML.
    """
    text = _decode(file, file.read_bytes())
    begin = _BEFORE_TYPE.match(text)
    if begin and text.startswith("<!DOCTYPE", begin.end()):
        raise DataError(
            f"{file}: a document type (<!DOCTYPE ...>) is not read, since it can define text without end and name "
            "other files.\nTake it out; GraphML needs none."
        )
    root = xml.etree.ElementTree.fromstring(text)
    if _name(root) == "graphml":
        _check(file, root)
    return text


def _decode(file: Path, content: bytes) -> str:
    declared = _DECLARED.match(content)
    usual = declared.group(1).decode("ascii", "replace") if declared else "utf-8"
    encoding = next((name for mark, name in _MARKS if content.startswith(mark)), usual)
    try:
        return content.decode(encoding)
    except LookupError as reason:
        raise DataError(f"{file}: the encoding {encoding!r} is not known.\nWrite the file as UTF-8.") from reason
    except UnicodeDecodeError as reason:
        raise DataError(
            f"{file} is not written in {encoding} as it says: {reason}.\nWrite the file as UTF-8."
        ) from reason


def _check(file: Path, root: Element) -> None:
    """Refuse whatever would be passed over."""
    graphs = _children(file, root, "graph")
    if len(graphs) > 1:
        raise DataError(f"{file}: expected one graph, came {len(graphs)}.\nWrite each graph into a file of its own.")
    keys = _children(file, root, "key")
    _refuse_twice(file, "key", (key.get("id") for key in keys))
    for key in keys:
        _children(file, key, "default")
    for graph in graphs:
        _check_graph(file, graph)


def _check_graph(file: Path, graph: Element) -> None:
    _one_of(file, "edgedefault of the <graph>", graph.get("edgedefault"), ("directed", "undirected"))
    nodes, edges = (_children(file, graph, name) for name in ("node", "edge"))
    names = [node.get("id") for node in nodes]
    if None in names:
        raise DataError(f"{file}: there is a node without id, number {names.index(None)}.\nGive every node a name.")
    _refuse_twice(file, "node", names)
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
                raise DataError(f"{file}: {port} of an <edge> is not read: {_WHY['port']}.\nTake it out.")
        if edge.get("directed") is not None:
            _one_of(file, "directed of an <edge>", edge.get("directed"), ("true", "false"))
    for owner in (graph, *nodes, *edges):
        _refuse_twice(file, "data", (data.get("key") for data in _children(file, owner, "data")))


def _children(file: Path, parent: Element, wanted: str) -> list[Element]:
    """The parts of that name, if there are no other parts than those that are read."""
    above = _name(parent)
    found = []
    for part in parent:
        name = _name(part)
        if name not in _PARTS[above]:
            why = _WHY.get(name, "it is no part of GraphML there")
            raise DataError(f"{file}: <{name}> within <{above}> is not read: {why}.\nTake it out.")
        if name == wanted:
            found.append(part)
    return found


def _refuse_twice(file: Path, part: str, names: Iterable[str | None]) -> None:
    seen = set()
    for name in names:
        if name in seen:
            raise DataError(f"{file}: the {part} {name!r} is there twice.\nTake one of them out.")
        seen.add(name)


def _one_of(file: Path, what: str, came: str | None, known: tuple[str, str]) -> None:
    if came not in known:
        raise DataError(f"{file}: {what} must be {known[0]!r} or {known[1]!r}, came {came!r}.\nWrite one of them.")


def _name(part: Element) -> str:
    return part.tag.removeprefix(_SPACE)
