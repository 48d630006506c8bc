"""The command line of the experiments: `python -m experiments table1 --quick`, from a clone of the repository."""

import argparse
import json
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from bellnet.draw import check_path, save_figures
from bellnet.errors import BellnetError, OptionError
from experiments import counting, matrix_cell, message_passing, methods, search, verify
from experiments.cell import Cell
from experiments.data.patterns import PATTERNS
from experiments.expressive.report import run_expressive
from experiments.graph_cell import SETS, SPLITS, cells_of_table3
from experiments.machine import require
from experiments.matrix_cell import cells_of_table1, cells_of_table2
from experiments.methods.base import PROTOCOLS
from experiments.methods.ign import LAYOUTS
from experiments.page import print_table
from experiments.parallel import this_worker
from experiments.records import Records
from experiments.report import check_report, print_tables, write_report
from experiments.run import check_extra, exclusive, make_usable, merge_records, run_cells

OK, CHECK_FAILED, BAD_INPUT, INTERRUPTED = 0, 1, 2, 130
PROGRAM = "python -m experiments"


@dataclass(frozen=True)
class Command:
    """A command.

    Attributes:
        help: What it does.
        example: The arguments of an example.
        run: Runs it and returns the exit code.
        options: The names of its options.
        changes: How they differ from `OPTIONS`.
        resumes: Whether it goes on where it was stopped.
    """

    help: str
    example: str
    run: Callable[[argparse.Namespace], int]
    options: str
    changes: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    resumes: bool = False


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command and return its exit code.

    0 if all went well, 1 if a check failed, 2 for bad arguments or input, 130 if Ctrl-C stopped it.

    Args:
        arguments: The arguments after the name; those of the shell if None.
    """
    parsed = build_parser().parse_args(arguments)
    command = COMMANDS[parsed.command]
    if "out" in parsed and parsed.out is None:
        # A quick run has a directory of its own: beside a whole one its figures would not be shown.
        parsed.out = Path("results") / f"{parsed.command}{'-quick' * getattr(parsed, 'quick', False)}"
    try:
        return command.run(parsed)
    except BellnetError as mistake:
        complain(f"{PROGRAM} {parsed.command}: {mistake}")
    except KeyboardInterrupt:
        where = f" {parsed.out} keeps what was done; the same command goes on from there." if command.resumes else ""
        complain(f"\nStopped.{where}")
        return INTERRUPTED
    except BrokenPipeError:  # standard output has no reader any more
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except OSError as reason:
        complain(
            f"{PROGRAM} {parsed.command}: {reason.filename} cannot be used: {reason.strerror}.\n"
            "Check the path and its permissions."
        )
    return BAD_INPUT


def complain(text: str) -> None:
    """Print to standard error."""
    print(text, file=sys.stderr, flush=True)


def build_parser() -> argparse.ArgumentParser:
    """The parser with every command."""
    parser = argparse.ArgumentParser(
        prog=PROGRAM,
        description="The experiments of the paper and others, run from a clone of the repository.",
        epilog="exit codes:\n  0  done\n  1  a check failed\n  2  bad arguments or bad input\n  130  stopped by Ctrl-C",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", dest="command", required=True)
    for name, command in COMMANDS.items():
        about = f"{command.help[0].upper()}{command.help[1:]}. For example: {PROGRAM} {name} {command.example}"
        subparser = commands.add_parser(name, help=command.help, description=about)
        for flag in command.options.split():
            subparser.add_argument(flag, **{**OPTIONS.get(flag, {}), **command.changes.get(flag, {})})
    return parser


def integer(minimum: int) -> Callable[[str], int]:
    """The type of an option: an integer."""

    def parse(text: str) -> int:
        if text.isdecimal() and int(text) >= minimum:
            return int(text)
        raise argparse.ArgumentTypeError(f"{text!r} is not an integer from {minimum} up")

    return parse


def positive(text: str) -> float:
    """The type of an option: a finite number above 0."""
    try:
        number = float(text)
    except ValueError:
        number = 0.0
    if 0 < number < float("inf"):
        return number
    raise argparse.ArgumentTypeError(f"{text!r} is not a positive number")


def _value(metavar: str, kind: Callable[[str], Any], about: str, **more: Any) -> dict[str, Any]:
    return {"metavar": metavar, "type": kind, "help": about, **more}


def _several(choices: Sequence[str], about: str, default: Sequence[str] | None = None) -> dict[str, Any]:
    """An option with one or more of some words, all of them by default."""
    return {"nargs": "+", "choices": choices, "default": choices if default is None else default, "help": about}


def _run_matrices(arguments: argparse.Namespace) -> int:
    """Run Table 1 or 2."""
    check_extra(arguments.command)
    chosen = {
        "tasks": arguments.task,
        "layers": arguments.layers,
        "seed": arguments.seed,
        "learning_rates": arguments.learning_rate,
        "readouts": arguments.readout,
    }
    is_table1 = arguments.command == "table1"
    cells = cells_of_table1(methods=arguments.method, **chosen) if is_table1 else cells_of_table2(**chosen)
    if arguments.quick:
        cells = [cell.quick(keep_learning_rate=bool(arguments.learning_rate)) for cell in cells]
    if arguments.epochs is not None:
        cells = [replace(cell, epochs=arguments.epochs) if cell.is_learned else cell for cell in cells]
    return _run_cells(arguments, cells)


def _run_table3(arguments: argparse.Namespace) -> int:
    check_extra("table3")
    _check_data(arguments.data)
    others = [method for method in arguments.method if method != "ign"]
    if others and arguments.protocol and "nested" not in arguments.protocol:
        raise OptionError(
            f"--protocol {' '.join(arguments.protocol)}: {', '.join(others)} can only be nested.\nAdd nested, or leave "
            "--protocol out."
        )
    if arguments.layout and "ign" not in arguments.method:
        raise OptionError(
            f"--layout {' '.join(arguments.layout)}: {', '.join(others)} have no layout to choose.\nLeave it out, or "
            "add ign to --method."
        )
    cells = cells_of_table3(
        arguments.method,
        names=arguments.set or (SETS[:1] if arguments.quick else SETS),
        splits=arguments.split or (SPLITS[:2] if arguments.quick else SPLITS),
        layouts=arguments.layout or LAYOUTS[:1],
        protocols=arguments.protocol,
        seed=arguments.seed,
        data=arguments.data,
    )
    changes = {"max_epochs": arguments.epochs, "learning_rate": arguments.learning_rate}
    bounds = {"max_unpacked": arguments.max_unpacked, "max_ratio": arguments.max_ratio}
    chosen = [cell.quick() if arguments.quick else cell for cell in cells]
    return _run_cells(arguments, [replace(cell.changed(**changes), **bounds) for cell in chosen])


def _check_data(folder: Path | None) -> None:
    if folder is not None and not folder.exists():
        raise OptionError(f"--data: there is no folder {folder}.\nIt must hold NAME.zip and splits/NAME.json.")


def _run_cells(arguments: argparse.Namespace, cells: Sequence[Cell]) -> int:
    ways = {"jobs": arguments.jobs, "devices": arguments.devices, "ray": arguments.ray}
    if not this_worker().is_leader:
        run_cells(cells, arguments.out, **ways)
        return OK
    make_usable(arguments.out)
    check_report(arguments.out)
    run_cells(cells, arguments.out, show=not arguments.silent, **ways)
    return _run_report(arguments)


def _run_report(arguments: argparse.Namespace) -> int:
    files = write_report(arguments.out)
    print_tables(arguments.out)
    print("\n".join(f"wrote {file}" for file in files))
    return OK


def _run_merge(arguments: argparse.Namespace) -> int:
    for source, taken in merge_records(arguments.directories, arguments.out).items():
        print(f"took {taken} cell{'s' * (taken != 1)} of {source}")
    return OK


def _run_search(arguments: argparse.Namespace) -> int:
    check_extra("search")
    _check_data(arguments.data)
    make_usable(arguments.out)
    plan = search.SearchPlan(
        trials=arguments.trials,
        repeats=arguments.repeats,
        names=tuple(arguments.set),
        parameters=tuple(arguments.parameter),
        data=arguments.data,
    )
    search.run_search(arguments.out, plan, jobs=arguments.jobs, ray=arguments.ray, show=not arguments.silent)
    print_table(search.search_table(list(Records(arguments.out).read().values())))
    return OK


def _run_counting(arguments: argparse.Namespace) -> int:
    check_extra("counting")
    make_usable(arguments.out)
    plan = counting.QUICK if arguments.quick else counting.Counting()
    progress: Callable[[str], None] = (lambda line: None) if arguments.silent else complain
    with exclusive(arguments.out):
        records = counting.run_counting(arguments.out, plan, patterns=arguments.pattern, progress=progress)
    print_table(counting.counting_table(records))
    return OK


def _run_expressive(arguments: argparse.Namespace) -> int:
    check_extra("expressive")
    if arguments.brec is not None and not arguments.brec.is_dir():
        raise OptionError(
            f"--brec: there is no folder {arguments.brec}.\nIt must hold BREC's files, such as brec_v3.npy."
        )
    make_usable(arguments.out)
    agrees = run_expressive(
        arguments.out,
        quick=arguments.quick,
        seed=arguments.seed,
        graph6=arguments.graph6,
        brec=arguments.brec,
        train=not arguments.skip_learning,
        progress=complain,
    )
    return OK if agrees else CHECK_FAILED


def _run_verify(arguments: argparse.Namespace) -> int:
    rows = verify.verify()
    print(json.dumps([asdict(row) for row in rows], indent=2) if arguments.json else verify.show(rows))
    return OK if all(row.ok for row in rows) else CHECK_FAILED


def _run_message_passing(arguments: argparse.Namespace) -> int:
    require("matplotlib", "torch_geometric", extra="draw,pyg", call="message-passing")
    make_usable(arguments.out)
    picture = check_path(arguments.out / "message-passing.png")
    outcome = message_passing.run(seed=arguments.seed)
    print(message_passing.show(outcome))
    save_figures({picture: message_passing.draw(outcome)})
    print(f"\nwrote {picture}")
    return OK if outcome.holds else CHECK_FAILED


COUNT = integer(1)
SELECTED = "of several, the one with the smallest validation error counts"
OPTIONS: dict[str, dict[str, Any]] = {
    "out": _value("DIR", Path, "the directory of the run"),
    "directories": _value("DIR", Path, "the directories of the runs", nargs="+"),
    "--out": _value("DIR", Path, "where results go (default results/COMMAND, with --quick results/COMMAND-quick)"),
    "--quick": {"action": "store_true"},
    "--seed": _value("N", integer(0), "the seed (default %(default)s)", default=0),
    "--epochs": _value("N", COUNT, "the number of epochs (default: of the task or data set)"),
    "--learning-rate": _value("R", positive, "the learning rate (default: of the data set)"),
    "--jobs": _value("N", COUNT, "trainings at a time (default 1; with --ray one for each processor)"),
    "--devices": _value("N", COUNT, "processes that train a cell together, if possible with a GPU each", default=1),
    "--ray": _value(
        "ADDRESS", str, "train on a Ray cluster: HOST:PORT, auto (the one of this machine), or local (new)"
    ),
    "--silent": {"action": "store_true", "help": "show no progress"},
    "--task": _several(matrix_cell.TASKS, "some of the tasks (default all)"),
    "--layers": _value("K", COUNT, "some of the numbers of hidden layers", nargs="+"),
    "--readout": _several(
        matrix_cell.READOUTS, f"pooling for the trace (default mean; paper: max); {SELECTED}", ("mean",)
    ),
    "--set": _several(SETS, "some of the data sets (default all; with --quick MUTAG)", ()),
    "--split": _value("S", integer(0), "some of the splits 0 to 9 (default all; with --quick 0 and 1)", nargs="+"),
    "--layout": _several(LAYOUTS, "of ign: values for all pairs of nodes (default), or for edges and nodes", ()),
    "--protocol": _several(PROTOCOLS, "of ign: the last epoch counts (default), or a validation set selects it", ()),
    "--data": _value("DIR", Path, "folder with zips and splits (default: the environment variable BELLNET_DATA)"),
    "--max-unpacked": _value("BYTES", COUNT, "maximum size of a file in a zip, unpacked (default a gigabyte)"),
    "--max-ratio": _value("R", positive, "maximum ratio of unpacked and packed size above 32 megabytes (default 200)"),
    "--trials": _value("N", COUNT, "the number of recipes (default: all that change one parameter)"),
    "--repeats": _value("N", COUNT, "draws of graphs for each recipe (default 1)", default=1),
    "--parameter": _several(tuple(search.SPACE), "the parameters in which recipes may differ (default all)"),
    "--pattern": _several(tuple(PATTERNS), "some of the patterns (default all)"),
    "--graph6": _value("FILE", Path, "distinguish the graphs of these files, too", nargs="+", default=()),
    "--brec": _value("DIR", Path, "the folder with BREC's files, to distinguish its pairs"),
    "--skip-learning": {"action": "store_true", "help": "compare with theory without training"},
    "--json": {"action": "store_true", "help": "print the rows as JSON"},
}
OF_RUNS = "--quick --out --seed --epochs --learning-rate --jobs --devices --ray --silent"
RATES = {"nargs": "+", "default": (), "help": f"learning rates; {SELECTED}"}
QUICK_MATRICES = {"help": "a fifth of the examples, few epochs: minutes instead of hours"}
COMMANDS = {
    "table1": Command(
        "run the paper's Table 1: learning simple functions",
        "--quick --jobs 2",
        _run_matrices,
        f"{OF_RUNS} --method --task --layers --readout",
        {
            "--quick": QUICK_MATRICES,
            "--learning-rate": RATES,
            "--method": _several(matrix_cell.METHODS, "some of the methods (default all)"),
        },
        resumes=True,
    ),
    "table2": Command(
        "run the paper's Table 2: testing on other sizes",
        "--quick",
        _run_matrices,
        f"{OF_RUNS} --task --layers --readout",
        {"--quick": QUICK_MATRICES, "--learning-rate": RATES},
        resumes=True,
    ),
    "table3": Command(
        "run the paper's Table 3: classifying graphs",
        "--quick --data DIR",
        _run_table3,
        f"{OF_RUNS} --method --set --split --layout --protocol --data --max-unpacked --max-ratio",
        {
            "--quick": {"help": "one data set, two splits, ten epochs: a minute instead of days"},
            "--seed": {"default": 100},
            "--split": {"choices": SPLITS},
            "--method": _several(
                methods.NAMES,
                "ign: the paper's network in its authors' set-up (default); bellnet: GraphClassifier(); and others",
                ("ign",),
            ),
        },
        resumes=True,
    ),
    "report": Command("write the tables and pictures of a run again", "results/table1", _run_report, "out"),
    "merge": Command(
        "gather the finished cells of several runs",
        "A B --out results/table3",
        _run_merge,
        "directories --out",
        {"--out": {"required": True, "help": "the directory to which their finished cells are copied"}},
    ),
    "search": Command(
        "compare recipes for the classifier",
        "--data DIR --set MUTAG --trials 3",
        _run_search,
        "--set --trials --repeats --parameter --out --data --jobs --ray --silent",
        {"--set": _several(tuple(search.SETS), "some of the data sets (default all)")},
        resumes=True,
    ),
    "counting": Command(
        "train networks to count patterns",
        "--quick",
        _run_counting,
        "--pattern --quick --out --silent",
        {"--quick": {"help": "few graphs and three epochs, to see that it runs"}},
        resumes=True,
    ),
    "expressive": Command(
        "compare networks with what theory expects",
        "--quick",
        _run_expressive,
        "--quick --graph6 --brec --skip-learning --seed --out",
        {"--quick": {"help": "fewer pairs, order 4 on 16 nodes at most, order 3 not trained: a minute"}},
    ),
    "verify": Command("check the statements of the paper on this machine", "--json", _run_verify, "--json"),
    "message-passing": Command(
        "turn a trained message passing network into equivariant layers",
        "--out pictures --seed 1",
        _run_message_passing,
        "--out --seed",
    ),
}


if __name__ == "__main__":
    sys.exit(main())
