"""The command counting: networks learn how often small patterns occur in graphs."""

import argparse

from bellnet.commands.command import OK, Command, make_directory
from bellnet.commands.runs import declare_folder, stopped
from bellnet.commands.streams import complain

# Spelled out, since whoever asks for help does not want to wait for torch. A test compares them.
PATTERNS = ("3-cycle", "4-cycle", "5-cycle", "6-cycle", "tailed triangle", "chordal cycle")


def _declare_counting(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--pattern",
        dest="patterns",
        nargs="+",
        choices=PATTERNS,
        default=PATTERNS,
        metavar="PATTERN",
        help=f"some of the patterns (default all: {', '.join(PATTERNS)})",
    )
    parser.add_argument("--quick", action="store_true", help="few graphs and three epochs, to see that it runs")
    declare_folder(parser, "counting", "records go", then="what is there is not trained again")
    parser.add_argument("--silent", action="store_true", help="show no progress")


def _run_counting(arguments: argparse.Namespace) -> int:
    from bellnet.experiments import QUICK_COUNTING, Counting, check_extra, counting_table, print_table, run_counting

    check_extra("bellnet counting")
    make_directory(arguments.out)
    plan = QUICK_COUNTING if arguments.quick else Counting()
    try:
        records = run_counting(
            arguments.out, plan, patterns=arguments.patterns, tell=None if arguments.silent else complain
        )
    except KeyboardInterrupt:
        return stopped(arguments.out)
    print_table(counting_table(records))
    return OK


COMMANDS = (
    Command(
        "counting",
        "train networks to count cycles and other patterns",
        ("counting --quick --out DIR", "counting --pattern 3-cycle 4-cycle --out DIR"),
        _declare_counting,
        _run_counting,
    ),
)
