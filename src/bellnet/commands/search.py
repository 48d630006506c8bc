"""The command search: which recipe is to be the classifier's, by validation inside training graphs."""

import argparse

from bellnet.commands.command import OK, Command, count, make_directory
from bellnet.commands.runs import check_sets, declare_folder, declare_sets, declare_ways, stopped

# Spelled out, since whoever asks for help does not want to wait for torch. A test compares them.
SETS = ("MUTAG", "PTC_MR", "PROTEINS", "IMDB-BINARY", "NCI1")
QUESTIONS = (
    *("jump", "pool", "label_smoothing", "width", "depth", "sizes", "dropout", "learning_rate", "batch_size"),
    *("degree_knots", "networks"),
)


def _declare_search(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--set", dest="sets", nargs="+", choices=SETS, default=SETS, help="some of the data sets (default all)"
    )
    parser.add_argument(
        "--trials", metavar="N", type=count, help="recipes to try altogether (default: all that change one answer)"
    )
    parser.add_argument("--repeats", metavar="N", type=count, default=1, help="draws of graphs for each (default 1)")
    parser.add_argument(
        "--question",
        dest="questions",
        nargs="+",
        choices=QUESTIONS,
        default=QUESTIONS,
        help="what recipes may differ in (default all)",
    )
    declare_ways(parser, "trainings")
    declare_folder(parser, "search", "study and records go", then="a search that was stopped goes on")
    declare_sets(parser)
    parser.add_argument("--silent", action="store_true", help="show no progress")


def _run_search(arguments: argparse.Namespace) -> int:
    from bellnet.experiments import Records, SearchPlan, check_extra, run_search, search_table

    check_extra("bellnet search")
    check_sets(arguments.data)
    make_directory(arguments.out)
    plan = SearchPlan(
        trials=arguments.trials,
        repeats=arguments.repeats,
        names=tuple(arguments.sets),
        questions=tuple(arguments.questions),
        data=arguments.data,
    )
    try:
        run_search(arguments.out, plan, jobs=arguments.jobs, ray=arguments.ray, show=not arguments.silent)
    except KeyboardInterrupt:
        return stopped(arguments.out)
    print(search_table(list(Records(arguments.out).finished().values())))
    return OK


COMMANDS = (
    Command(
        "search",
        "compare recipes for the classifier inside training graphs",
        (
            "search --data DIR",
            "search --data DIR --set MUTAG PTC_MR --trials 3 --repeats 2",
            "search --data DIR --question degree_knots --trials 3 --repeats 5 --out results/search-degrees",
        ),
        _declare_search,
        _run_search,
    ),
)
