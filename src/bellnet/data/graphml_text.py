"""The text of a GraphML file, from which nothing is lost when it is read as one graph.

Readers of GraphML pass over what they do not know, and XML has means to make a small file endless. Here both are
errors. A document type, which alone can define entities, is found in the text itself: no parser sees it, so nothing
depends on what the parser at hand would make of it.
"""

import codecs
import copy
import re
import xml.etree.ElementTree
from collections.abc import Iterable
from pathlib import Path
from xml.etree.ElementTree import Element

from bellnet.data.numerals import shown
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
_DRAWING = "yfiles.type"  # of a key whose values are drawings by yEd: of these the label is read, which is text
_WHY = {
    "graph": "nodes and edges hold no graphs",
    "hyperedge": "an edge joins two nodes",
    "port": "edges join nodes, not ports",
    "locator": "nothing is fetched from elsewhere",
}


def graphml_text(file: Path) -> str:
    """The text of a GraphML file, if all of it can be read.

    In it a default is one of nodes or one of edges: a key for all that has one is written as two keys.

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
        if _split_keys(root):
            return xml.etree.ElementTree.tostring(root, encoding="unicode")
    return text


def _split_keys(root: Element) -> bool:
    """Make a key for nodes and one for edges of every key for all with a default, and say whether there was any.

    Values find their key by its id alone, so the second key, which there is for its default, has an id of its own.
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
    for kind in ("node", "edge", "graph"):
        named = (key for key in keys if key.get("for", _EVERY) in (kind, _EVERY) and key.get("attr.name") is not None)
        _refuse_twice(file, "attr.name", (key.get("attr.name") for key in named), f" for {kind}s")
    for key in keys:
        _one_of(file, f"for of the <key> {key.get('id')!r}", key.get("for", _EVERY), _KEYS_FOR)
        defaults = _children(file, key, "default")
        if len(defaults) > 1:
            raise DataError(
                f"{file}: the key {key.get('id')!r} has {len(defaults)} defaults.\nTake all but one of them out."
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
        raise DataError(f"{file}: there is a node without id, number {names.index(None)}.\nGive every node a name.")
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
                raise DataError(f"{file}: {port} of an <edge> is not read: {_WHY['port']}.\nTake it out.")
        if edge.get("directed") is not None:
            _one_of(file, "directed of an <edge>", edge.get("directed"), ("true", "false"))
    for owner in (graph, *nodes, *edges):
        values = _children(file, owner, "data")
        _refuse_twice(file, "data", (data.get("key") for data in values))
        for data in values:
            if data.get("key") not in drawings:
                _children(file, data)


def _children(file: Path, parent: Element, wanted: str | None = None) -> list[Element]:
    """The parts of that name, if there is nothing else than what is read."""
    above = _name(parent)
    found = []
    if above not in _ONLY_TEXT:
        _refuse_text(file, parent)
    for part in parent:
        name = _name(part)
        if name not in _PARTS[above]:
            why = _WHY.get(name, "it is no part of GraphML there")
            raise DataError(f"{file}: <{name}> within <{above}> is not read: {why}.\nTake it out.")
        if name == wanted:
            found.append(part)
    return found


def _refuse_text(file: Path, parent: Element) -> None:
    for text in (parent.text, *(part.tail for part in parent)):
        if text and (came := text.strip()):
            raise DataError(
                f"{file}: the text {shown(came)} within <{_name(parent)}> is not read: values stand in <data>.\n"
                "Take it out."
            )


def _refuse_twice(file: Path, part: str, names: Iterable[str | None], of: str = "") -> None:
    seen = set()
    for name in names:
        if name in seen:
            raise DataError(f"{file}: the {part} {name!r}{of} is there twice.\nTake one of them out.")
        seen.add(name)


def _one_of(file: Path, what: str, came: str | None, known: tuple[str, ...]) -> None:
    if came not in known:
        *most, last = map(repr, known)
        raise DataError(f"{file}: {what} must be {', '.join(most)} or {last}, came {came!r}.\nWrite one of them.")


def _name(part: Element) -> str:
    return part.tag.removeprefix(_SPACE)
