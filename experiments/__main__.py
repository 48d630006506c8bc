"""The command line of the experiments: `python -m experiments table1 --quick`, from a clone of the repository."""

import argparse
import json
import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from bellnet._utils.files import check_directory, words
from bellnet.draw import check_path, save_figures
from bellnet.errors import BellnetError, OptionError
from experiments import graph_cell, matrix_cell, message_passing, methods, search, verify
from experiments.cell import Cell
from experiments.counting import QUICK as QUICK_COUNTING
from experiments.counting import Counting, counting_table, run_counting
from experiments.data.patterns import PATTERNS
from experiments.expressive.report import run_expressive
from experiments.graph_cell import cells_of_table3
from experiments.machine import require
from experiments.matrix_cell import cells_of_table1, cells_of_table2
from experiments.methods.base import PROTOCOLS
from experiments.methods.ign import LAYOUTS
from experiments.parallel import this_worker
from experiments.records import Records
from experiments.report import check_report, print_table, print_tables, write_report
from experiments.run import check_extra, merge_records, run_cells
from experiments.search import SearchPlan, run_search, search_table

OK, CHECK_FAILED, BAD_INPUT, INTERRUPTED = 0, 1, 2, 130
PROGRAM = "python -m experiments"
IGN = "ign"
QUICK_SETS, QUICK_SPLITS = graph_cell.SETS[:1], graph_cell.SPLITS[:2]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command and return its exit code.

    0 if all went well, 1 if a check failed, 2 if it could not be done as asked, 130 if Ctrl-C stopped it.

    Args:
        arguments: The words after the name; those of the shell if None.
    """
    parser = build_parser()
    parsed = parser.parse_args(arguments)
    name = f"{PROGRAM} {parsed.command}"
    try:
        code: int = parsed.run(parsed)
        return code
    except BellnetError as mistake:
        complain(f"{name}: {mistake}")
    except KeyboardInterrupt:
        complain("\nStopped.")
        return INTERRUPTED
    except BrokenPipeError:  # standard output has no reader any more
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except OSError as reason:
        complain(f"{name}: {reason.filename} cannot be used: {reason.strerror}.\nCheck the path and its permissions.")
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
    for name, (summary, example, declare, run) in COMMANDS.items():
        subparser = commands.add_parser(
            name,
            help=summary,
            description=f"{summary[0].upper()}{summary[1:]}. For example: {PROGRAM} {name} {example}",
        )
        declare(subparser)
        subparser.set_defaults(run=run)
    return parser


def count(text: str) -> int:
    """An integer from 1 up."""
    if text.isdecimal() and int(text) > 0:
        return int(text)
    raise argparse.ArgumentTypeError(f"{text!r} is not an integer from 1 up")


def from_zero(text: str) -> int:
    """An integer from 0 up."""
    if text.isdecimal():
        return int(text)
    raise argparse.ArgumentTypeError(f"{text!r} is not an integer from 0 up")


def positive(text: str) -> float:
    """A finite number above 0."""
    try:
        number = float(text)
    except ValueError:
        number = 0.0
    if 0 < number < float("inf"):
        return number
    raise argparse.ArgumentTypeError(f"{text!r} is not a positive number")


def make_directory(path: Path) -> None:
    """Make the directory given to --out; an `OptionError` if there can be none, or no file in it."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as reason:
        raise OptionError(f"--out {path} cannot be a directory: {reason.strerror}.") from reason
    try:
        check_directory(path)
    except OSError as reason:
        raise OptionError(f"--out {path} cannot be written: {words(reason)}") from reason


OPTIONS: dict[str, dict[str, Any]] = {
    "--out": {"metavar": "DIR", "type": Path},
    "--data": {
        "metavar": "DIR",
        "type": Path,
        "help": "the folder with the zips and their splits (default: the environment variable BELLNET_DATA)",
    },
    "--silent": {"action": "store_true", "help": "show no progress"},
    "--seed": {"metavar": "N", "type": from_zero, "default": 0, "help": "the seed (default %(default)s)"},
    "--jobs": {
        "metavar": "N",
        "type": count,
        "help": "trainings at a time (default 1; with --ray one for each processor)",
    },
    "--ray": {
        "metavar": "ADDRESS",
        "help": "train on a Ray cluster: HOST:PORT, or auto if this machine belongs to one; local starts one here",
    },
    "--quick": {"action": "store_true"},
}
"""Options of several commands."""


def _add(parser: argparse.ArgumentParser, *flags: str, **changes: Any) -> None:
    """Add options to a command; what `changes` has replaces what `OPTIONS` has."""
    for flag in flags:
        parser.add_argument(flag, **{**OPTIONS.get(flag, {}), **changes})


def _add_choices(
    parser: argparse.ArgumentParser, flag: str, choices: Sequence[Any], words: str, default: Sequence[Any] | None = None
) -> None:
    """Add an option that takes some of several words; all of them if there is no other default."""
    default = choices if default is None else default
    parser.add_argument(flag, nargs="+", type=type(choices[0]), choices=choices, default=default, help=words)


def _add_out(parser: argparse.ArgumentParser, name: str, what: str) -> None:
    _add(parser, "--out", default=Path("results") / name, help=f"{what} (default %(default)s)")


def _check_data(folder: Path | None) -> None:
    if folder is not None and not folder.exists():
        raise OptionError(f"--data: there is no folder {folder}.\nIt must hold NAME.zip and splits/NAME.json.")


def _stopped(out: Path) -> int:
    complain(f"\nStopped. {out} keeps what was done; the same command goes on from there.")
    return INTERRUPTED


def _declare_table1(parser: argparse.ArgumentParser) -> None:
    _declare_table2(parser, "table1")
    _add_choices(parser, "--method", matrix_cell.METHODS, "some of the methods (default all)")


def _declare_table2(parser: argparse.ArgumentParser, name: str = "table2") -> None:
    _declare_run(parser, name, quick="a fifth of the examples, few epochs: minutes instead of hours", seed=0)
    _add_choices(parser, "--task", matrix_cell.TASKS, "some of the tasks (default all)")
    _add(parser, "--layers", metavar="K", nargs="+", type=count, help="some of the numbers of hidden layers")
    rates = "learning rates to try; the one that validates best counts"
    _add(parser, "--learning-rate", metavar="R", nargs="+", type=positive, default=(), help=rates)
    about = "how networks sum up for the trace (default mean; the paper has max); the one that validates best counts"
    _add_choices(parser, "--readout", matrix_cell.READOUTS, about, ("mean",))


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


def _declare_table3(parser: argparse.ArgumentParser) -> None:
    of_methods = "ign: the paper's network as its authors train it (default); bellnet: GraphClassifier() as it is; "
    of_methods += "or baselines, kernels by GraKeL and networks by PyTorch Geometric"
    of_layouts = "of ign; dense: values for all pairs of nodes (default, as in the paper); sparse: for edges and "
    of_protocols = "of ign; fixed: the last epoch counts (default, as in the paper); nested: a validation set "
    of_protocols += "chooses it, as for all other methods"
    _add_choices(parser, "--method", methods.NAMES, of_methods, (IGN,))
    _add_choices(parser, "--set", graph_cell.SETS, "some of the data sets (default all; with --quick MUTAG)", ())
    splits = "some of the published splits, 0 to 9 (default all; with --quick 0 and 1)"
    _add(parser, "--split", metavar="S", nargs="+", type=from_zero, choices=graph_cell.SPLITS, help=splits)
    _add_choices(parser, "--layout", LAYOUTS, f"{of_layouts}nodes only", ())
    _add_choices(parser, "--protocol", PROTOCOLS, of_protocols, ())
    _add(parser, "--data")
    unpacked = "the maximum size of a file in a zip, unpacked (default 2**30, a gigabyte)"
    _add(parser, "--max-unpacked", metavar="BYTES", type=count, help=unpacked)
    ratio = "the maximum ratio of sizes of a file, unpacked and in the zip, if it has over 32 megabytes (default 200)"
    _add(parser, "--max-ratio", metavar="R", type=positive, help=ratio)
    _declare_run(parser, "table3", quick="one data set, two splits, ten epochs: a minute instead of days", seed=100)
    _add(parser, "--learning-rate", metavar="R", type=positive, help="the learning rate (default: of the data set)")


def _run_table3(arguments: argparse.Namespace) -> int:
    check_extra("table3")
    _check_data(arguments.data)
    others = [method for method in arguments.method if method != IGN]
    _check_options_of_ign(arguments, others)
    cells = cells_of_table3(
        arguments.method,
        names=arguments.set or (QUICK_SETS if arguments.quick else graph_cell.SETS),
        splits=arguments.split or (QUICK_SPLITS if arguments.quick else graph_cell.SPLITS),
        layouts=arguments.layout or LAYOUTS[:1],
        protocols=arguments.protocol,
        seed=arguments.seed,
        data=arguments.data,
    )
    changes = {"max_epochs": arguments.epochs, "learning_rate": arguments.learning_rate}
    bounds = {"max_unpacked": arguments.max_unpacked, "max_ratio": arguments.max_ratio}
    chosen = [cell.quick() if arguments.quick else cell for cell in cells]
    return _run_cells(arguments, [replace(cell.changed(**changes), **bounds) for cell in chosen])


def _check_options_of_ign(arguments: argparse.Namespace, others: Sequence[str]) -> None:
    """Refuse options that would have no effect."""
    if others and arguments.protocol and "nested" not in arguments.protocol:
        raise OptionError(
            f"--protocol {' '.join(arguments.protocol)}: {', '.join(others)} can only be nested.\nAdd nested, or leave "
            "--protocol out."
        )
    if arguments.layout and IGN not in arguments.method:
        raise OptionError(
            f"--layout {' '.join(arguments.layout)}: {', '.join(others)} have no layout to choose.\nLeave it out, or "
            f"add {IGN} to --method."
        )


def _declare_run(parser: argparse.ArgumentParser, name: str, *, quick: str, seed: int) -> None:
    """The options of all tables."""
    _add(parser, "--quick", help=quick)
    out = f"the directory of records, checkpoints and report (default results/{name}, with --quick "
    _add(parser, "--out", help=f"{out}results/{name}-quick); a run that was stopped goes on")
    _add(parser, "--seed", default=seed)
    devices = "processes that train each cell together, on a GPU each where there are so many (default 1)"
    _add(parser, "--devices", metavar="N", type=count, default=1, help=devices)
    of = "task" if seed == 0 else "data set"
    _add(parser, "--epochs", metavar="N", type=count, help=f"passes over the examples (default: of the {of})")
    _add(parser, "--jobs", "--ray", "--silent")


def _run_cells(arguments: argparse.Namespace, cells: Sequence[Cell]) -> int:
    # A quick run in a directory of its own: beside a whole one its figures would not be shown.
    out = arguments.out or Path("results") / f"{arguments.command}{'-quick' * arguments.quick}"
    ways = {"jobs": arguments.jobs, "devices": arguments.devices, "ray": arguments.ray}
    if not this_worker().is_leader:
        run_cells(cells, out, **ways)
        return OK
    make_directory(out)
    check_report(out)
    try:
        run_cells(cells, out, show=not arguments.silent, **ways)
    except KeyboardInterrupt:
        return _stopped(out)
    return _run_report(argparse.Namespace(out=out))


def _declare_report(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("out", metavar="DIR", type=Path, help="what was given to --out")


def _run_report(arguments: argparse.Namespace) -> int:
    files = write_report(arguments.out)
    print_tables(arguments.out)
    print("\n".join(f"wrote {file}" for file in files))
    return OK


def _declare_merge(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("directories", metavar="DIR", nargs="+", type=Path, help="what was given to --out elsewhere")
    _add(parser, "--out", required=True, help="where their finished cells go")


def _run_merge(arguments: argparse.Namespace) -> int:
    make_directory(arguments.out)
    for source, taken in merge_records(arguments.directories, arguments.out).items():
        print(f"took {taken} cell{'s' * (taken != 1)} of {source}")
    return OK


def _declare_search(parser: argparse.ArgumentParser) -> None:
    _add_choices(parser, "--set", tuple(search.SETS), "some of the data sets (default all)")
    trials = "recipes to try altogether (default: all that change one answer)"
    _add(parser, "--trials", metavar="N", type=count, help=trials)
    _add(parser, "--repeats", metavar="N", type=count, default=1, help="draws of graphs for each (default 1)")
    _add_choices(parser, "--parameter", tuple(search.SPACE), "what recipes may differ in (default all)")
    _add_out(parser, "search", "where study and records go; a search that was stopped goes on")
    _add(parser, "--data", "--jobs", "--ray", "--silent")


def _run_search(arguments: argparse.Namespace) -> int:
    check_extra("search")
    _check_data(arguments.data)
    make_directory(arguments.out)
    plan = SearchPlan(
        trials=arguments.trials,
        repeats=arguments.repeats,
        names=tuple(arguments.set),
        questions=tuple(arguments.parameter),
        data=arguments.data,
    )
    try:
        run_search(arguments.out, plan, jobs=arguments.jobs, ray=arguments.ray, show=not arguments.silent)
    except KeyboardInterrupt:
        return _stopped(arguments.out)
    print(search_table(list(Records(arguments.out).finished().values())))
    return OK


def _declare_counting(parser: argparse.ArgumentParser) -> None:
    _add_choices(parser, "--pattern", tuple(PATTERNS), "some of the patterns (default all)")
    _add(parser, "--quick", help="few graphs and three epochs, to see that it runs")
    _add_out(parser, "counting", "where records go; what is there is not trained again")
    _add(parser, "--silent")


def _run_counting(arguments: argparse.Namespace) -> int:
    check_extra("counting")
    make_directory(arguments.out)
    plan = QUICK_COUNTING if arguments.quick else Counting()
    progress = (lambda line: None) if arguments.silent else complain
    try:
        records = run_counting(arguments.out, plan, patterns=arguments.pattern, progress=progress)
    except KeyboardInterrupt:
        return _stopped(arguments.out)
    print_table(counting_table(records))
    return OK


def _declare_expressive(parser: argparse.ArgumentParser) -> None:
    _add(parser, "--quick", help="fewer pairs, order 4 on 16 nodes at most, order 3 not trained: a minute")
    files = "distinguish the graphs of these files, too"
    _add(parser, "--graph6", metavar="FILE", nargs="+", type=Path, default=(), help=files)
    _add(parser, "--brec", metavar="DIR", type=Path, help="the folder with BREC's files, to distinguish its pairs")
    _add(parser, "--skip-learning", action="store_true", help="train nothing, compare with theory alone")
    _add(parser, "--seed")
    _add_out(parser, "expressive", "where the report goes")


def _run_expressive(arguments: argparse.Namespace) -> int:
    check_extra("expressive")
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
        progress=complain,
    )
    return OK if agrees else CHECK_FAILED


def _declare_verify(parser: argparse.ArgumentParser) -> None:
    _add(parser, "--json", action="store_true", help="print the rows as JSON")


def _run_verify(arguments: argparse.Namespace) -> int:
    rows = verify.verify()
    print(json.dumps([asdict(row) for row in rows], indent=2) if arguments.json else verify.show(rows))
    return OK if all(row.ok for row in rows) else CHECK_FAILED


def _declare_message_passing(parser: argparse.ArgumentParser) -> None:
    _add_out(parser, "message-passing", "where the picture goes")
    _add(parser, "--seed")


def _run_message_passing(arguments: argparse.Namespace) -> int:
    require("matplotlib", "torch_geometric", extra="draw,pyg", call="message-passing")
    make_directory(arguments.out)
    picture = check_path(arguments.out / "message-passing.png")
    outcome = message_passing.run(seed=arguments.seed)
    print(message_passing.show(outcome))
    save_figures({picture: message_passing.draw(outcome)})
    print(f"\nwrote {picture}")
    return OK if outcome.holds else CHECK_FAILED


Command = tuple[str, str, Callable[[argparse.ArgumentParser], None], Callable[[argparse.Namespace], int]]
"""What a command does, the arguments of an example, a function that declares its arguments, and one that runs it."""

COMMANDS: dict[str, Command] = {
    "table1": (
        "run the paper's Table 1: learning simple functions",
        "--quick --jobs 2",
        _declare_table1,
        _run_matrices,
    ),
    "table2": ("run the paper's Table 2: testing on other sizes", "--quick", _declare_table2, _run_matrices),
    "table3": ("run the paper's Table 3: classifying graphs", "--quick --data DIR", _declare_table3, _run_table3),
    "report": ("write the tables and pictures of a run again", "results/table1", _declare_report, _run_report),
    "merge": ("gather the finished cells of several runs", "A B --out results/table3", _declare_merge, _run_merge),
    "search": ("compare recipes for the classifier", "--data DIR --set MUTAG --trials 3", _declare_search, _run_search),
    "counting": ("train networks to count patterns", "--quick --out DIR", _declare_counting, _run_counting),
    "expressive": ("compare networks with what theory expects", "--quick", _declare_expressive, _run_expressive),
    "verify": ("check the statements of the paper on this machine", "--json", _declare_verify, _run_verify),
    "message-passing": (
        "turn a trained message passing network into equivariant layers",
        "--out pictures --seed 1",
        _declare_message_passing,
        _run_message_passing,
    ),
}


if __name__ == "__main__":
    sys.exit(main())
