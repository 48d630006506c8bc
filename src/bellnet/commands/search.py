"""The command search: which recipe is to be the classifier's, by validation inside training graphs."""

import argparse
from pathlib import Path

from bellnet.commands.command import INTERRUPTED, OK, Command, count, declare_ways, make_directory
from bellnet.commands.streams import complain
from bellnet.errors import OptionError

# Spelled out, since whoever asks for help does not want to wait for torch. A test compares them.
SETS = ("MUTAG", "PTC_MR", "PROTEINS", "IMDB-BINARY", "NCI1")


def _declare_search(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--set", dest="sets", nargs="+", choices=SETS, default=SETS, help="some of the data sets (default all)"
    )
    parser.add_argument("--trials", metavar="N", type=count, default=17, help="recipes to try altogether (default 17)")
    parser.add_argument("--repeats", metavar="N", type=count, default=1, help="draws of graphs for each (default 1)")
    declare_ways(parser, "trainings")
    parser.add_argument(
        "--out",
        metavar="DIR",
        type=Path,
        default=Path("results") / "search",
        help="where study and records go (default results/search); a search that was stopped goes on",
    )
    parser.add_argument(
        "--data",
        metavar="DIR",
        type=Path,
        help="the folder with the zips and their splits (default: the environment variable BELLNET_DATA)",
    )
    parser.add_argument("--silent", action="store_true", help="show no progress")


def _run_search(arguments: argparse.Namespace) -> int:
    from bellnet.experiments import Records, SearchPlan, check_extra, run_search, search_table

    check_extra("bellnet search")
    if arguments.data is not None and not arguments.data.exists():
        raise OptionError(f"--data: there is no folder {arguments.data}.\nIt must hold NAME.zip and splits/NAME.json.")
    make_directory(arguments.out)
    plan = SearchPlan(
        trials=arguments.trials, repeats=arguments.repeats, names=tuple(arguments.sets), data=arguments.data
    )
    try:
        run_search(arguments.out, plan, jobs=arguments.jobs, ray=arguments.ray, show=not arguments.silent)
    except KeyboardInterrupt:
        complain(f"\nStopped. {arguments.out} keeps what was done; the same command goes on from there.")
        return INTERRUPTED
    print(search_table(list(Records(arguments.out).finished().values())))
    return OK


COMMANDS = (
    Command(
        "search",
        "compare recipes for the classifier inside training graphs",
        ("search --data DIR", "search --data DIR --set MUTAG PTC_MR --trials 3 --repeats 2"),
        _declare_search,
        _run_search,
    ),
)
