"""The graphs that a command is given: a path to the TU layout or to GraphML files, or the name of a data set."""

import argparse
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bellnet.cli.command import count, from_zero, positive
from bellnet.errors import DataError, OptionError, did_you_mean

if TYPE_CHECKING:
    from bellnet.data import Graph, GraphSet


@dataclass(frozen=True)
class Given:
    """Graphs, what each is called, and its label if it has one."""

    path: Path
    graphs: "list[Graph]"
    names: list[str]
    labels: list[Any] | None
    targets: Any | None

    def answers(self, *, numbers: bool) -> Any:
        """The classes, or the numbers, of all graphs; refused where there are none."""
        found = self.targets if numbers else self.labels
        if found is None:
            what = "numbers to predict" if numbers else "labels"
            raise DataError(
                f"{self.path} has no {what}.\nThe TU layout keeps them in NAME_graph_"
                f"{'attributes' if numbers else 'labels'}.txt; beside GraphML files write labels.csv with the headings "
                "file,label, or name a CSV with --labels."
            )
        return found


def declare_data(parser: argparse.ArgumentParser, part: str) -> None:
    """The arguments that name graphs; `part` says which side of a split is meant."""
    parser.add_argument(
        "data",
        metavar="DATA",
        type=Path,
        help="a zip or folder of the TU layout, a folder of GraphML files, or the name of a data set: one in the "
        "folder BELLNET_DATA, or of the TU collection, which is downloaded",
    )
    parser.add_argument(
        "--labels",
        metavar="CSV",
        type=Path,
        help="for GraphML: a table with the headings file,label (default: labels.csv in the folder)",
    )
    parser.add_argument(
        "--split", metavar="K", type=from_zero, help=f"only the {part} graphs of the published split K, from 0 up"
    )
    declare_bound(parser)


def declare_bound(parser: argparse.ArgumentParser) -> None:
    """The arguments that say how much a file in a zip may unpack to."""
    parser.add_argument(
        "--max-unpacked",
        metavar="BYTES",
        type=count,
        help="the most that a file in a zip may unpack to (default 2**30, a gigabyte)",
    )
    parser.add_argument(
        "--max-ratio",
        metavar="R",
        type=positive,
        help="the most bytes for each byte in the zip, if a file unpacks to more than 32 megabytes (default 200)",
    )


def read_data(arguments: argparse.Namespace, part: str) -> Given:
    """What the arguments name; `part` is "training" or "test"."""
    from bellnet import data

    path: Path = arguments.data
    is_name = not path.exists() and str(path) in data.tu.known_names()
    if not path.exists() and not is_name:
        raise DataError(
            f"there is no {path}. {did_you_mean(str(path), data.tu.known_names())}".rstrip()
            + "\nGive a zip or folder of the TU layout, a folder of GraphML files, or the name of a data set: one in "
            "the folder BELLNET_DATA, or of the TU collection, such as MUTAG."
        )
    if path.is_dir() and any(path.glob("*.graphml")):
        found, names, splits = _read_graphml(arguments)
    else:
        found, names, splits = _read_tu(arguments, is_name=is_name)
    chosen = range(len(found)) if arguments.split is None else _side(path, splits, arguments.split, part)
    places = [int(place) for place in chosen]
    labels = None if found.labels is None else found.labels.tolist()
    return Given(
        path,
        [found.graphs[place] for place in places],
        [names[place] for place in places],
        None if labels is None else [found.classes[labels[place]] for place in places],
        None if found.targets is None else _numbers(found.targets[places]),
    )


def _read_graphml(arguments: argparse.Namespace) -> "tuple[GraphSet, list[str], Any]":
    """The graphs of a folder of GraphML files and their names; there are no splits."""
    from bellnet import data

    for option in ("max_unpacked", "max_ratio"):
        if getattr(arguments, option) is not None:
            raise OptionError(
                f"--{option.replace('_', '-')} belongs to zips; a folder of GraphML files has nothing to unpack."
            )
    found = data.graphml.load(arguments.data, arguments.labels)
    return found, [Path(name).stem for name in found.files], None


def _read_tu(arguments: argparse.Namespace, *, is_name: bool) -> "tuple[GraphSet, list[str], Any]":
    """The graphs of the TU layout, at a path or by a name, their numbers, and the published splits."""
    from bellnet import data

    if arguments.labels is not None:
        raise OptionError("--labels belongs to a folder of GraphML files; the TU layout has its own labels.")
    where: dict[str, Any] = {"name": str(arguments.data)} if is_name else {"data": arguments.data}
    found = data.tu.load(**where, max_unpacked=arguments.max_unpacked, max_ratio=arguments.max_ratio)
    return found, [str(place) for place in range(len(found))], found.splits


def _side(path: Path, splits: Any, number: int, part: str) -> Any:
    if splits is None:
        raise OptionError(f"--split {number}: there are no splits beside {path}; they would be in splits/NAME.json.")
    if number >= len(splits):
        raise OptionError(f"--split {number}: {path} has {len(splits)} splits, from 0 to {len(splits) - 1}.")
    return splits[number][0 if part == "training" else 1]


def _numbers(targets: Any) -> Any:
    values = targets.numpy()
    return values[:, 0] if values.shape[1] == 1 else values
