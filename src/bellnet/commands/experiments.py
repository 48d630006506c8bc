"""The commands table1, table2, table3 and report: the experiments of `bellnet.experiments` from the shell."""

import argparse
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bellnet.commands.command import OK, Command, count, from_zero, make_directory, positive
from bellnet.commands.graph_files import declare_bound
from bellnet.commands.names import harmless
from bellnet.commands.runs import check_sets, declare_sets, declare_ways, stopped
from bellnet.errors import OptionError

if TYPE_CHECKING:
    from bellnet.experiments import Cell, GraphCell, MethodCell, Runnable

# Spelled out, since whoever asks for help does not want to wait for torch. A test compares them.
TASKS, METHODS = ("symmetric", "diagonal", "singular", "trace"), ("ours", "hartford", "trivial")
READOUTS = ("mean", "max")
SETS = ("MUTAG", "PTC_MR", "PROTEINS", "NCI1", "NCI109", "COLLAB", "IMDB-BINARY", "IMDB-MULTI")
SPLITS = tuple(range(10))
LAYOUTS, PROTOCOLS = ("dense", "sparse"), ("fixed", "nested")
FAITHFUL = "faithful"
OTHER_METHODS = ("best", "wl", "graphlet", "random-walk", "propagation", "gin", "dgcnn", "diffpool", "ecc", "ppgn")
QUICK_SETS, QUICK_SPLITS = SETS[:1], SPLITS[:2]


def _declare_table1(parser: argparse.ArgumentParser) -> None:
    _declare_matrices(parser, "table1")
    parser.add_argument(
        "--method", nargs="+", choices=METHODS, default=METHODS, help="some of the methods (default all)"
    )


def _run_table1(arguments: argparse.Namespace) -> int:
    from bellnet.experiments import cells_of_table1, check_extra

    check_extra("bellnet table1")
    return _run_matrices(arguments, cells_of_table1(methods=arguments.method, **_chosen(arguments)))


def _declare_table2(parser: argparse.ArgumentParser) -> None:
    _declare_matrices(parser, "table2")


def _run_table2(arguments: argparse.Namespace) -> int:
    from bellnet.experiments import cells_of_table2, check_extra

    check_extra("bellnet table2")
    return _run_matrices(arguments, cells_of_table2(**_chosen(arguments)))


def _declare_table3(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--method",
        nargs="+",
        choices=(FAITHFUL, *OTHER_METHODS),
        default=(FAITHFUL,),
        help="faithful: the paper's network as its authors train it (default); best: GraphClassifier() as it is; or "
        "baselines, kernels by GraKeL and networks by PyTorch Geometric",
    )
    parser.add_argument(
        "--set",
        dest="sets",
        nargs="+",
        choices=SETS,
        help="some of the data sets (default all; with --quick MUTAG)",
    )
    parser.add_argument(
        "--split",
        dest="splits",
        metavar="S",
        nargs="+",
        type=from_zero,
        choices=SPLITS,
        help="some of the published splits, 0 to 9 (default all; with --quick 0 and 1)",
    )
    parser.add_argument(
        "--layout",
        nargs="+",
        choices=LAYOUTS,
        help="of faithful; dense: values for all pairs of nodes; sparse: for edges and nodes only (default dense, as "
        "in the paper)",
    )
    parser.add_argument(
        "--protocol",
        nargs="+",
        choices=PROTOCOLS,
        help="of faithful; fixed: the last epoch counts; nested: training graphs that are kept aside choose it "
        "(default fixed, as in the paper); the other methods are always nested",
    )
    declare_sets(parser)
    declare_bound(parser)
    _declare_run(parser, "table3", quick="one data set, two splits, ten epochs: a minute instead of days", seed=100)
    parser.add_argument("--rate", metavar="R", type=positive, help="the learning rate (default: of the data set)")


def _run_table3(arguments: argparse.Namespace) -> int:
    from bellnet.experiments import cells_of_methods, cells_of_table3, check_extra, quick_graphs, quick_method

    check_extra("bellnet table3")
    check_sets(arguments.data)
    others = [method for method in arguments.method if method != FAITHFUL]
    _check_options_of_faithful(arguments, others)
    wanted = {
        "names": arguments.sets or (QUICK_SETS if arguments.quick else SETS),
        "splits": arguments.splits or (QUICK_SPLITS if arguments.quick else SPLITS),
        "seed": arguments.seed,
        "data": arguments.data,
    }
    bounds = {"max_unpacked": arguments.max_unpacked, "max_ratio": arguments.max_ratio}
    cells: list[GraphCell | MethodCell] = []
    if FAITHFUL in arguments.method:
        layouts, protocols = arguments.layout or LAYOUTS[:1], arguments.protocol or PROTOCOLS[:1]
        changes = {"epochs": arguments.epochs, "rate": arguments.rate}
        for cell in cells_of_table3(layouts=layouts, protocols=protocols, **wanted):
            made = quick_graphs(cell) if arguments.quick else cell
            named = {name: value for name, value in changes.items() if value is not None}
            cells.append(replace(made, **bounds, **named))
    for other in cells_of_methods(others, **wanted):
        short = quick_method(other) if arguments.quick else other
        cells.append(replace(short.changed(epochs=arguments.epochs, rate=arguments.rate), **bounds))
    return _run_cells(arguments, cells)


def _check_options_of_faithful(arguments: argparse.Namespace, others: Sequence[str]) -> None:
    """Refuse what would be left aside without a word."""
    if others and arguments.protocol and PROTOCOLS[1] not in arguments.protocol:
        raise OptionError(
            f"--protocol {' '.join(arguments.protocol)}: {', '.join(others)} can only be nested.\nAdd nested, or leave "
            "--protocol out."
        )
    if arguments.layout and FAITHFUL not in arguments.method:
        raise OptionError(
            f"--layout {' '.join(arguments.layout)}: {', '.join(others)} have no layout to choose.\nLeave it out, or "
            f"add {FAITHFUL} to --method."
        )


def _declare_matrices(parser: argparse.ArgumentParser, name: str) -> None:
    """What Tables 1 and 2 have in common."""
    _declare_run(parser, name, quick="a fifth of the examples, few epochs: minutes instead of hours", seed=0)
    parser.add_argument("--task", nargs="+", choices=TASKS, default=TASKS, help="some of the tasks (default all)")
    parser.add_argument("--layers", metavar="K", nargs="+", type=count, help="some of the numbers of hidden layers")
    parser.add_argument(
        "--rate",
        metavar="R",
        nargs="+",
        type=positive,
        default=(),
        help="learning rates to try; the one that validates best counts",
    )
    parser.add_argument(
        "--readout",
        nargs="+",
        choices=READOUTS,
        default=READOUTS[:1],
        help="how networks sum up for the trace (default mean; the paper has max); the one that validates best counts",
    )


def _chosen(arguments: argparse.Namespace) -> dict[str, Any]:
    """Which cells of Tables 1 and 2 are asked for."""
    return {
        "tasks": arguments.task,
        "layers": arguments.layers,
        "seed": arguments.seed,
        "rates": arguments.rate,
        "readouts": arguments.readout,
    }


def _run_matrices(arguments: argparse.Namespace, cells: "list[Cell]") -> int:
    from bellnet.experiments import quick

    if arguments.quick:
        cells = [quick(cell, keep_rate=bool(arguments.rate)) for cell in cells]
    if arguments.epochs is not None:
        cells = [replace(cell, epochs=arguments.epochs) if cell.is_learned else cell for cell in cells]
    return _run_cells(arguments, cells)


def _declare_run(parser: argparse.ArgumentParser, name: str, *, quick: str, seed: int) -> None:
    """What all tables have in common."""
    parser.add_argument("--quick", action="store_true", help=quick)
    parser.add_argument(
        "--out",
        metavar="DIR",
        type=Path,
        help=f"where records, checkpoints and the report go (default results/{name}, with --quick "
        f"results/{name}-quick); a run that was stopped goes on",
    )
    parser.add_argument(
        "--seed", metavar="N", type=from_zero, default=seed, help=f"of everything random (default {seed})"
    )
    declare_ways(parser, "cells")
    parser.add_argument(
        "--devices",
        metavar="N",
        type=count,
        default=1,
        help="processes that train each cell together, on a GPU each where there are so many (default 1)",
    )
    of = "task" if seed == 0 else "data set"
    parser.add_argument("--epochs", metavar="N", type=count, help=f"passes over the examples (default: of the {of})")
    parser.add_argument("--silent", action="store_true", help="show no progress")


def _run_cells(arguments: argparse.Namespace, cells: "Sequence[Runnable]") -> int:
    from bellnet.experiments import check_report, is_first, run_cells, write_report

    # A quick run in a directory of its own: beside a whole one its figures would not be shown.
    out = arguments.out or Path("results") / f"{arguments.command}{'-quick' * arguments.quick}"
    ways = {"jobs": arguments.jobs, "devices": arguments.devices, "ray": arguments.ray}
    if not is_first():
        run_cells(cells, out, **ways)
        return OK
    make_directory(out)
    check_report(out)
    try:
        run_cells(cells, out, show=not arguments.silent, **ways)
    except KeyboardInterrupt:
        return stopped(out)
    files = write_report(out)
    _print_tables(out, files)
    return OK


def _declare_report(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("directory", metavar="DIR", type=Path, help="what was given to --out")


def _run_report(arguments: argparse.Namespace) -> int:
    from bellnet.experiments import write_report

    _print_tables(arguments.directory, write_report(arguments.directory))
    return OK


def _declare_merge(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("directories", metavar="DIR", nargs="+", type=Path, help="what was given to --out elsewhere")
    parser.add_argument("--out", metavar="DIR", type=Path, required=True, help="where their finished cells go")


def _run_merge(arguments: argparse.Namespace) -> int:
    from bellnet.experiments import merge_records

    make_directory(arguments.out)
    for source, taken in merge_records(arguments.directories, arguments.out).items():
        print(f"took {taken} cell{'s' * (taken != 1)} of {harmless(source)}")
    return OK


def _print_tables(directory: Path, files: Sequence[Path]) -> None:
    from bellnet.experiments import print_tables

    print_tables(directory)
    for file in files:
        print(f"wrote {harmless(file)}")


COMMANDS = (
    Command(
        "table1",
        "run the paper's Table 1: learning simple functions",
        (
            "table1 --quick",
            "table1 --out results/table1 --jobs 2",
            "table1 --task symmetric trace --layers 1 2 --method ours",
        ),
        _declare_table1,
        _run_table1,
    ),
    Command(
        "table2",
        "run the paper's Table 2: testing on other sizes",
        ("table2 --quick", "table2 --task diagonal --layers 1 2 3"),
        _declare_table2,
        _run_table2,
    ),
    Command(
        "table3",
        "run the paper's Table 3: classifying graphs",
        (
            "table3 --quick --data DIR",
            "table3 --data DIR --set MUTAG PTC_MR --jobs 2",
            "table3 --data DIR --set IMDB-BINARY --layout dense sparse --protocol fixed nested",
            "table3 --data DIR --set MUTAG NCI1 --method best wl gin",
        ),
        _declare_table3,
        _run_table3,
    ),
    Command(
        "report",
        "draw the tables and pictures of a run again",
        ("report results/table1",),
        _declare_report,
        _run_report,
    ),
    Command(
        "merge",
        "gather the finished cells of several runs in one directory",
        ("merge other/results/table3 --out results/table3",),
        _declare_merge,
        _run_merge,
    ),
)
