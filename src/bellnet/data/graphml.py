"""A folder of GraphML files, one graph each, with a CSV of labels."""

import csv
import io
import os
import re
import xml.etree.ElementTree
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from bellnet._utils.optional import require
from bellnet.data.convert import read
from bellnet.data.graphml_text import graphml_text
from bellnet.data.kinds import Given, Names
from bellnet.data.numerals import REAL_FORM, WHOLE_FORM, is_finite, shown, whole
from bellnet.data.sets import GraphSet, number_classes
from bellnet.errors import DataError

_NO_TEXT = re.compile("[\udc80-\udcff]")
"""What stands for a byte that is not UTF-8."""
_NOT_FINITE = re.compile(r"[+-]?(nan|inf|infinity)", re.IGNORECASE)


@dataclass(frozen=True, eq=False, repr=False)
class GraphMLSet(GraphSet):
    """A folder of GraphML files: a `GraphSet`, and the file that every graph comes from.

    Attributes:
        files: The names of the files, in the order of the graphs.
    """

    files: tuple[str, ...] = ()


def load(
    folder: str | os.PathLike[str],
    labels: str | os.PathLike[str] | None = None,
    *,
    node_attrs: Given = None,
    edge_attrs: Given = None,
    node_labels: Given = None,
    edge_labels: Given = None,
) -> GraphMLSet:
    """The graphs of all files *.graphml of a folder, sorted by name. Needs the extra `graphs`.

    The CSV has a line of headings with at least `file` and `label`, and one line for each file. Labels that are all
    whole numbers become such classes, others classes of text; labels that are all numbers are targets as well. Such
    whole numbers must fit into 64 bits, and such numbers be finite in torch's default type.

    A file holds one graph, and what a `Graph` has no place for is an error: nested graphs, hyperedges, ports, parallel
    edges, edges to nodes that are not there. So is a document type. A value that is left out is the default of its key.

    Args:
        folder: The folder.
        labels: The CSV; `labels.csv` in the folder if None. Without such a file the graphs have no labels.
        node_attrs: The names of the attributes that are node features, see `as_graph`.
        edge_attrs: The names of the attributes that are edge features.
        node_labels: The names of the attributes that are node labels.
        edge_labels: The names of the attributes that are edge labels.
    """
    require("networkx", extra="graphs", call="graphml.load")
    place = Path(folder)
    files = sorted(place.glob("*.graphml"))
    if not files:
        problem = "has no file *.graphml" if place.is_dir() else "is not a folder"
        raise DataError(
            f"graphml.load(folder): {place} {problem}.\nGive a folder with one GraphML file for each graph."
        )
    names_of = Names.of(node_attrs=node_attrs, edge_attrs=edge_attrs, node_labels=node_labels, edge_labels=edge_labels)
    graphs = read("graphml.load(folder)", [_read(file) for file in files], names_of, [str(file) for file in files])
    names = tuple(file.name for file in files)
    table = Path(labels) if labels is not None else place / "labels.csv"
    if labels is None and not table.is_file():
        return GraphMLSet(place.name, graphs, None, files=names)
    answers = _labels(table, names)
    numbers, classes = number_classes(_whole(table, answers) or [*answers.values()])
    targets = _real(table, answers)
    return GraphMLSet(place.name, graphs, numbers, classes, targets, names)


def _read(file: Path) -> Any:
    """The networkx graph of a file."""
    import networkx

    damage = (
        xml.etree.ElementTree.ParseError,
        networkx.NetworkXError,
        OSError,
        ValueError,
        KeyError,
        TypeError,
        AttributeError,
    )
    try:
        found = networkx.parse_graphml(graphml_text(file))
    except DataError:
        raise
    except RecursionError as reason:
        raise DataError(f"{file}: its elements are nested too deeply to be read.\nTake them out.") from reason
    except damage as reason:
        raise DataError(
            f"{file} cannot be read as GraphML: {reason}.\nIt is cut off or damaged; write it again."
        ) from reason
    for name, owners in (("node_default", found.nodes), ("edge_default", found.edges)):
        for owner in owners:
            owners[owner].update({**found.graph[name], **owners[owner]})
    for edge in found.edges.values():
        edge.pop("id", None)  # how the file calls the edge, which networkx keeps among its attributes
    return found


def _labels(table: Path, names: tuple[str, ...]) -> dict[str, str]:
    """The label of each of these files, in their order."""
    headings, rows = _rows(table)
    _check_headings(table, headings)
    known = _by_file(table, rows)
    _check_files(table, known, names)
    return {name: known[name] for name in names}


def _rows(table: Path) -> tuple[Sequence[str], list[dict[str, str | None]]]:
    """The headings of a CSV and its rows, with None for what a row lacks."""
    try:
        content = table.read_bytes()
        # The name of a file may be any bytes; all else is text.
        reader = csv.DictReader(io.StringIO(content.decode("utf-8-sig", "surrogateescape"), newline=""))
        rows: list[dict[str, str | None]] = list(reader)
        headings = reader.fieldnames or []
        if any(map(_NO_TEXT.search, (*headings, *(row.get("label") or "" for row in rows)))):
            content.decode("utf-8-sig")  # which says what is wrong, and where
    except (OSError, UnicodeDecodeError, csv.Error) as reason:
        raise DataError(f"{table} cannot be read: {reason}.\nGive a CSV with the headings file,label.") from reason
    return headings, rows


def _check_headings(table: Path, headings: Sequence[str]) -> None:
    if not {"file", "label"} <= {*headings}:
        raise DataError(
            f"{table}: expected the headings file and label, came {', '.join(headings) or 'nothing'}.\n"
            "Write file,label into the first line."
        )
    for heading in ("file", "label"):
        if list(headings).count(heading) > 1:
            raise DataError(f"{table}: the heading {heading!r} is there twice.\nTake one of the columns out.")


def _by_file(table: Path, rows: list[dict[str, str | None]]) -> dict[str, str]:
    """The labels of rows that each name another file."""
    known: dict[str, str] = {}
    for line, row in enumerate(rows, 2):
        file, answer = row["file"], row["label"]
        if not file or answer is None or not answer.strip():
            raise DataError(
                f"{table}, line {line}: expected a file and a label, came {file!r} and {answer!r}.\nFill in the line."
            )
        if file in known:
            raise DataError(f"{table}, line {line}: {file} has a label already.\nRemove one of the lines.")
        known[file] = answer.strip()
    return known


def _check_files(table: Path, known: dict[str, str], names: tuple[str, ...]) -> None:
    """Refuse labels that are missing, and labels for files that are."""
    if absent := [name for name in names if name not in known]:
        raise DataError(
            f"{table} has no label for {', '.join(absent[:3])}{' and others' if len(absent) > 3 else ''}.\n"
            "Every file *.graphml needs a line."
        )
    if unknown := [file for file in known if file not in names]:
        raise DataError(
            f"{table} has labels for files that are not there: {', '.join(unknown[:3])}"
            f"{' and others' if len(unknown) > 3 else ''}.\nRemove these lines, or add the files."
        )


def _whole(table: Path, answers: dict[str, str]) -> list[int] | None:
    """The labels as whole numbers; None if one of them is something else."""
    if not all(map(WHOLE_FORM.fullmatch, answers.values())):
        return None
    found = []
    for file, answer in answers.items():
        number = whole(answer)
        if number is None:
            raise DataError(
                f"{table}: expected a whole number of at most 64 bits for {file}, came {shown(answer)}.\n"
                "Number the classes anew, or write them as text."
            )
        found.append(number)
    return found


def _real(table: Path, answers: dict[str, str]) -> torch.Tensor | None:
    """The labels as targets; None if one of them is no number."""
    if not all(REAL_FORM.fullmatch(answer) or _NOT_FINITE.fullmatch(answer) for answer in answers.values()):
        return None
    for file, answer in answers.items():
        if not is_finite(answer):
            raise DataError(
                f"{table}: expected a finite number for {file}, came {shown(answer)}, but all labels are numbers.\n"
                "Remove the graph, or write the labels as text."
            )
    targets = torch.tensor([[float(answer)] for answer in answers.values()])
    for (file, answer), target in zip(answers.items(), targets, strict=True):
        if not target.isfinite():
            raise DataError(
                f"{table}: expected a number for {file}, came {shown(answer)}, which is infinite in {targets.dtype}, "
                "the type of targets.\nScale the labels, or write them as text."
            )
    return targets
