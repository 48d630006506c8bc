"""The command expressive: which networks tell which graphs apart, beside what theory expects."""

import argparse
from pathlib import Path

from bellnet.commands.command import CHECK_FAILED, OK, Command, from_zero, make_directory
from bellnet.commands.names import harmless_lines
from bellnet.commands.runs import declare_folder
from bellnet.commands.streams import complain
from bellnet.errors import OptionError


def _declare(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--quick", action="store_true", help="fewer pairs, order 4 on 16 nodes at most, order 3 not trained: a minute"
    )
    parser.add_argument(
        "--graph6", metavar="FILE", nargs="+", type=Path, default=(), help="tell the graphs of these files apart, too"
    )
    parser.add_argument(
        "--brec", metavar="DIR", type=Path, help="the folder with BREC's files, to tell its pairs apart"
    )
    parser.add_argument("--skip-learning", action="store_true", help="train nothing, compare with theory alone")
    parser.add_argument("--seed", metavar="N", type=from_zero, default=0, help="of everything random (default 0)")
    declare_folder(parser, "expressive", "the report goes")


def _run(arguments: argparse.Namespace) -> int:
    from bellnet.experiments import run_expressive
    from bellnet.extras import require

    require("matplotlib", extra="draw", call="bellnet expressive")
    if arguments.brec is not None and not arguments.brec.is_dir():
        raise OptionError(
            f"--brec: there is no folder {arguments.brec}.\nIt must hold BREC's files, such as brec_v3.npy."
        )
    make_directory(arguments.out)
    agrees = run_expressive(
        arguments.out,
        quick=arguments.quick,
        seed=arguments.seed,
        graph6=arguments.graph6,
        brec=arguments.brec,
        train=not arguments.skip_learning,
        say=lambda text: print(harmless_lines(text), flush=True),
        progress=complain,
    )
    return OK if agrees else CHECK_FAILED


COMMANDS = (
    Command(
        "expressive",
        "show which networks tell which graphs apart, beside what theory expects",
        ("expressive --quick", "expressive --brec DIR", "expressive --skip-learning --graph6 sr251256.g6"),
        _declare,
        _run,
    ),
)
