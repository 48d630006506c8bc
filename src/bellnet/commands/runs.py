"""What commands that run for long have in common: a folder that keeps what is done, where cells run, the data sets."""

import argparse
from pathlib import Path

from bellnet.commands.command import INTERRUPTED, count
from bellnet.commands.streams import complain
from bellnet.errors import OptionError


def declare_folder(parser: argparse.ArgumentParser, name: str, what: str, *, then: str = "") -> None:
    """The folder that a command writes to, results/NAME if none is given.

    Args:
        parser: Of the command.
        name: Of the folder.
        what: What goes there, such as "the report goes".
        then: What else is to be said of it.
    """
    parser.add_argument(
        "--out",
        metavar="DIR",
        type=Path,
        default=Path("results") / name,
        help=f"where {what} (default results/{name}){then and f'; {then}'}",
    )


def declare_ways(parser: argparse.ArgumentParser, what: str) -> None:
    """Where many things run that do not know of each other: side by side, or on a cluster."""
    parser.add_argument(
        "--jobs",
        metavar="N",
        type=count,
        help=f"{what} at a time (default 1; with --ray one for each processor)",
    )
    parser.add_argument(
        "--ray",
        metavar="ADDRESS",
        help=f"run {what} on a Ray cluster: HOST:PORT, or auto if this machine belongs to one; local starts one here",
    )


def declare_sets(parser: argparse.ArgumentParser) -> None:
    """The folder with the data sets of the TU collection."""
    parser.add_argument(
        "--data",
        metavar="DIR",
        type=Path,
        help="the folder with the zips and their splits (default: the environment variable BELLNET_DATA)",
    )


def check_sets(folder: Path | None) -> None:
    """Refuse a folder given to --data that is not there."""
    if folder is not None and not folder.exists():
        raise OptionError(f"--data: there is no folder {folder}.\nIt must hold NAME.zip and splits/NAME.json.")


def stopped(out: Path) -> int:
    """Say that what was interrupted can go on, and give the exit code for that."""
    complain(f"\nStopped. {out} keeps what was done; the same command goes on from there.")
    return INTERRUPTED
