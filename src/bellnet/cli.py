"""The command line: plans, pictures and checks without writing Python.

One function declares the arguments of a command and one runs it; `COMMANDS` lists them. Nothing heavy is imported
before a command needs it.
"""

import argparse
import os
import re
import sys
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from bellnet import __version__
from bellnet._utils.optional import import_torch
from bellnet.commands import (
    BAD_INPUT,
    EXPLORE_COMMANDS,
    INTERRUPTED,
    MODEL_COMMANDS,
    OK,
    Command,
    Output,
    complain,
    count,
    harmless,
    harmless_lines,
    own_streams,
)
from bellnet.errors import BellnetError, OptionError, SpecError, did_you_mean

if TYPE_CHECKING:
    from bellnet import Plan


def main(arguments: Sequence[str] | None = None, *, ready: Callable[[], None] | None = None) -> int:
    """Run a command and return its exit code.

    0 if all went well, 2 if it could not be done as asked, 130 if Ctrl-C stopped it.

    Args:
        arguments: The words after the name; those of the shell if None.
        ready: Called when all is imported that takes long, before the command begins.
    """
    given = sys.argv[1:] if arguments is None else arguments
    with own_streams() as output:
        if output is None:
            complain(
                "bellnet: standard output is closed, so that nothing can be said.\n"
                f"Send it somewhere; {os.devnull} takes what nobody wants."
            )
            return BAD_INPUT
        return _run(given, output, ready)


def _run(given: Sequence[str], output: Output, ready: Callable[[], None] | None) -> int:
    name = "bellnet"
    usual = warnings.formatwarning
    warnings.formatwarning = lambda words, kind, *where: f"{name}: {kind.__name__}: {harmless_lines(words)}\n"
    try:
        parser = build_parser()
        try:
            # A spec without source begins like an option; with a space in front it does not.
            parsed = parser.parse_args([f" {word}" if word.startswith("->") else word for word in given])
            if parsed.run is None:
                parser.print_help(sys.stderr)
                return BAD_INPUT
            name = f"bellnet {parsed.command}"
            if parsed.uses_torch:
                import_torch()
            if ready is not None:
                ready()
            code: int = parsed.run(parsed)
            return code
        finally:
            output.flush()
            if output.failure is not None:  # which argparse may have kept to itself
                raise output.failure
    except BellnetError as mistake:
        advice = _about_quotes(given) if isinstance(mistake, SpecError) else []
        complain("\n".join([f"{name}: {mistake}", *advice]))
    except KeyboardInterrupt:
        complain("\nStopped.")
        return INTERRUPTED
    except OSError as reason:
        complain(f"{name}: {_refusal(reason, output)}")
    finally:
        warnings.formatwarning = usual
    return BAD_INPUT


def _refusal(reason: OSError, output: Output) -> str:
    """What the system has refused, and where."""
    said = reason.strerror or str(reason)
    if reason is output.failure:
        return f"standard output cannot be written: {said}."
    if reason.filename is None:
        return f"{said}."
    return f"{reason.filename} cannot be used: {said}.\nCheck the path and its permissions."


class _Parser(argparse.ArgumentParser):
    """A parser that repeats nothing that a terminal would obey, and knows what a misspelled word was meant to be."""

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """As argparse does it, but options that are not known are a mistake where they are found."""
        self._meant = self._meant_by(sys.argv[1:] if args is None else args)
        found, rest = super().parse_known_args(args, namespace)
        if rest:
            self.error(f"unrecognized arguments: {' '.join(rest)}")
        return found, rest

    def error(self, message: str) -> NoReturn:
        super().error("\n".join([harmless(message), *self._meant]))

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        try:
            super()._check_value(action, value)
        except argparse.ArgumentError:
            self._meant = [meant] if (meant := did_you_mean(str(value), map(str, action.choices or ()))) else []
            raise

    def _meant_by(self, given: Sequence[str]) -> list[str]:
        """What was meant by options that there are not; the beginnings of those that there are, are known as well."""
        known = [option for option in self._option_string_actions if option.startswith("--")]
        options = (word.partition("=")[0] for word in given if word.startswith("--"))
        unknown = [option for option in options if not any(name.startswith(option) for name in known)]
        return [meant for option in unknown if (meant := did_you_mean(option, known))] + _about_quotes(given)


def _about_quotes(given: Sequence[str]) -> list[str]:
    """What to tell those whose shell has cut a spec to pieces, or has sent the output where its arrow points."""
    if any(word.strip() in ("-", "->") or re.fullmatch(r"[^-].*-", word) for word in given):
        return ['Put quotation marks around a spec, or the shell takes it to pieces: bellnet plan "n n -> n".']
    return []


def build_parser() -> argparse.ArgumentParser:
    """The parser with every command of `COMMANDS`."""
    parser = _Parser(
        prog="bellnet",
        description="All permutation-equivariant linear layers between tensors over node sets.",
        epilog=_epilog(tuple(command.examples[0] for command in COMMANDS))
        + "\n\nexit codes:\n  0  done\n"
        + "  2  bad arguments or bad input, or output that cannot be written\n  130  stopped by Ctrl-C",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"bellnet {__version__}")
    parser.set_defaults(run=None)
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", dest="command")
    for command in COMMANDS:
        subparser = commands.add_parser(
            command.name,
            help=command.summary,
            description=f"{command.summary[0].upper()}{command.summary[1:]}.",
            epilog=_epilog(command.examples),
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        command.declare(subparser)
        subparser.set_defaults(run=command.run, uses_torch=command.uses_torch)
    return parser


def _epilog(examples: tuple[str, ...]) -> str:
    return "\n".join(["examples:", *(f"  bellnet {example}" for example in examples)])


COLUMNS = """\
columns of the table, a row for each rank:
  rank       number of nodes that a map carries from input to output, for each node set
  contract   contractions of the input: a letter for each axis, equal letters for
             one node; letters after the arrow are carried, the others summed over
  permute    number of orders in which the carried nodes can arrive
  broadcast  broadcasts to the output: letters before the arrow are carried
             (they are named anew), the values are repeated along the others
  maps       contractions times permutations times broadcasts
"""


def _declare_plan(parser: argparse.ArgumentParser) -> None:
    parser.epilog = f"{COLUMNS}\n{parser.epilog}"
    _declare_spec(parser)
    parser.add_argument("--symmetric", action="store_true", help="inputs do not change when their slots are exchanged")
    parser.add_argument("--hollow", action="store_true", help="inputs are zero where two of their slots coincide")
    parser.add_argument("--max-maps", metavar="M", type=count, help="refuse a spec with more maps (default 50000)")
    parser.add_argument("--diagrams", action="store_true", help="list the diagrams, with what each does in words")
    parser.add_argument("--cost", metavar="N", type=_sizes, help="count the cost for N nodes, or for u=30,i=10")
    parser.add_argument(
        "--channels", metavar=("D", "D'"), nargs=2, type=count, help="channels in and out, for --cost (default 1 1)"
    )
    parser.add_argument("--batch", metavar="B", type=count, help="graphs in a batch, for --cost (default 1)")


def _run_plan(arguments: argparse.Namespace) -> int:
    from bellnet import plan

    if arguments.cost is None and (arguments.channels or arguments.batch):
        raise OptionError("--channels and --batch belong to --cost.\nAdd the number of nodes, for instance --cost 30.")
    bound = {} if arguments.max_maps is None else {"max_maps": arguments.max_maps}
    the_plan = plan(arguments.spec, symmetric=arguments.symmetric, hollow=arguments.hollow, **bound)
    parts = [str(the_plan)]
    if arguments.diagrams:
        parts.append(_diagram_table(the_plan))
    if arguments.cost is not None:
        parts.append(_cost_table(the_plan, arguments.cost, arguments.channels or (1, 1), arguments.batch or 1))
    print("\n\n".join(parts))
    return OK


def _diagram_table(the_plan: "Plan") -> str:
    is_single = the_plan.spec.is_single
    names = [
        diagram.name if is_single else f"[{diagram.source}] to [{diagram.target}]  {diagram.name}"
        for diagram in the_plan.diagrams
    ]
    words = [diagram.words() for diagram in the_plan.diagrams]
    steps = [diagram.describe() for diagram in the_plan.diagrams]
    rows = [
        ("map", "name", "in words", "step by step"),
        *zip(map(str, range(len(names))), names, words, steps, strict=True),
    ]
    _, of_name, of_words, _ = (max(map(len, column)) for column in zip(*rows, strict=True))
    return "\n".join(
        f"  {number:>4}  {name:<{of_name}}  {word:<{of_words}}  {step}" for number, name, word, step in rows
    )


def _cost_table(the_plan: "Plan", sizes: int | dict[str, int], channels: Sequence[int], batch: int) -> str:
    cost = the_plan.cost(sizes, channels[0], channels[1], batch)
    saved = cost.stacked_multiplications / max(cost.multiplications, 1)
    rows = (
        ("multiplications", f"{cost.multiplications:,}", ""),
        ("with all maps stacked", f"{cost.stacked_multiplications:,}", f"{saved:.1f} times as many"),
        ("bytes of the input", f"{cost.input_bytes:,}", ""),
        ("bytes of the output", f"{cost.output_bytes:,}", ""),
        ("bytes in between", f"{cost.extra_bytes:,}", ""),
    )
    width = max(len(number) for _, number, _ in rows)
    return "\n".join(f"  {name:<21}  {number:>{width}}  {note}".rstrip() for name, number, note in rows)


def _declare_basis(parser: argparse.ArgumentParser) -> None:
    _declare_spec(parser)
    parser.add_argument("--n", metavar="N", type=_sizes, default=5, help="nodes, or u=4,i=3 (default 5)")
    parser.add_argument("--basis", choices=("orbit", "diagram"), default="orbit", help="default orbit, as in the paper")
    parser.add_argument("--out", metavar="FILE", type=Path, required=True, help="the matrices: a .png, .pdf or .svg")
    parser.add_argument("--diagrams", metavar="FILE", type=Path, help="the diagrams (default: FILE-diagrams)")


def _run_basis(arguments: argparse.Namespace) -> int:
    from bellnet.draw import check_path, draw_basis, draw_diagrams, pairs_of, save_figures

    out: Path = check_path(arguments.out)
    diagrams: Path = check_path(arguments.diagrams or out.with_name(f"{out.stem}-diagrams{out.suffix}"))
    if out.resolve() == diagrams.resolve():
        raise OptionError(f"--out and --diagrams are one file, {str(out)!r}.\nGive each picture its own.")
    figures = {}
    for end, spec, n in pairs_of(arguments.spec, arguments.n):
        figures[out.with_stem(out.stem + end)] = draw_basis(spec, n, basis=arguments.basis)
        figures[diagrams.with_stem(diagrams.stem + end)] = draw_diagrams(spec)
    save_figures(figures)
    print("\n".join(f"wrote {harmless(path)}" for path in figures))
    return OK


def _declare_spec(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("spec", metavar="SPEC", help='the shape of source and target, for instance "n n -> n n"')


def _sizes(text: str) -> int | dict[str, int]:
    if "=" not in text:
        return count(text)
    sizes: dict[str, int] = {}
    for part in text.split(","):
        name, equals, size = part.partition("=")
        if not equals or not name.strip():
            raise argparse.ArgumentTypeError(f"{part!r} is not a node set and its size, for instance u=30")
        sizes[name.strip()] = count(size.strip())
    return sizes


COMMANDS = (
    Command(
        "plan",
        "print how the maps of a spec are computed",
        (
            'plan "n n -> n n"',
            'plan "n n n -> n" --diagrams',
            'plan "n n -> n n" --symmetric --hollow',
            'plan "{n n}, n -> {n n}, n"',
            'plan "u i -> u i" --cost u=100,i=40 --channels 16 32 --batch 8',
        ),
        _declare_plan,
        _run_plan,
        uses_torch=False,
    ),
    Command(
        "basis",
        "draw the maps of a spec as matrices and as diagrams",
        (
            'basis "n n -> n n" --n 5 --out figure1.png',
            'basis "u i -> u i" --n u=4,i=3 --basis diagram --out maps.pdf',
        ),
        _declare_basis,
        _run_basis,
    ),
    *EXPLORE_COMMANDS,
    *MODEL_COMMANDS,
)


if __name__ == "__main__":
    sys.exit(main())
