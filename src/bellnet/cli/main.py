"""The parser of the command line, and how a command ends: its exit code, and errors without a traceback.

No heavy package is imported before a command needs it.
"""

import argparse
import os
import re
import sys
import warnings
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

from bellnet import __version__
from bellnet._utils.optional import import_torch
from bellnet.cli import model_commands, spec_commands
from bellnet.cli.command import BAD_INPUT, INTERRUPTED
from bellnet.cli.output import Output, command_streams, print_error, printable, printable_lines
from bellnet.errors import BellnetError, SpecError, did_you_mean

COMMANDS = (*spec_commands.COMMANDS, *model_commands.COMMANDS)


def main(arguments: Sequence[str] | None = None, *, before_command: Callable[[], None] | None = None) -> int:
    """Run a command and return its exit code.

    That is 0 on success, 2 on bad input or output that cannot be written, and 130 after Ctrl-C.

    Args:
        arguments: The words after the name; those of the shell if None.
        before_command: Called before the command begins, after slow imports.
    """
    given = sys.argv[1:] if arguments is None else arguments
    with command_streams() as output:
        if output is None:
            print_error(f"bellnet: standard output is closed.\nRedirect it, for instance to {os.devnull}.")
            return BAD_INPUT
        return _run(given, output, before_command)


def _run(given: Sequence[str], output: Output, before_command: Callable[[], None] | None) -> int:
    name = "bellnet"
    usual = warnings.formatwarning
    warnings.formatwarning = lambda words, kind, *where: f"{name}: {kind.__name__}: {printable_lines(words)}\n"
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
            if before_command is not None:
                before_command()
            code: int = parsed.run(parsed)
            return code
        finally:
            output.flush()
            if output.failure is not None:  # argparse may have suppressed it
                raise output.failure
    except BellnetError as mistake:
        advice = _about_quotes(given) if isinstance(mistake, SpecError) else []
        print_error("\n".join([f"{name}: {mistake}", *advice]))
    except KeyboardInterrupt:
        print_error("\nStopped.")
        return INTERRUPTED
    except OSError as reason:
        print_error(f"{name}: {_refusal(reason, output)}")
    finally:
        warnings.formatwarning = usual
    return BAD_INPUT


def _refusal(reason: OSError, output: Output) -> str:
    """The message of an error of the operating system."""
    words = reason.strerror or str(reason)
    if reason is output.failure:
        return f"standard output cannot be written: {words}."
    if reason.filename is None:
        return f"{words}."
    return f"{reason.filename} cannot be used: {words}.\nCheck the path and its permissions."


class _Parser(argparse.ArgumentParser):
    """A parser whose errors have no control characters and suggest corrections of misspelled words."""

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """As in argparse, but unknown options are errors of the parser that meets them."""
        self._suggestions = self._suggestions_for(sys.argv[1:] if args is None else args)
        found, rest = super().parse_known_args(args, namespace)
        if rest:
            self.error(f"unrecognized arguments: {' '.join(rest)}")
        return found, rest

    def error(self, message: str) -> NoReturn:
        super().error("\n".join([printable(message), *self._suggestions]))

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        try:
            super()._check_value(action, value)
        except argparse.ArgumentError:
            suggestion = did_you_mean(str(value), map(str, action.choices or ()))
            self._suggestions = [suggestion] if suggestion else []
            raise

    def _suggestions_for(self, given: Sequence[str]) -> list[str]:
        """Corrections of unknown options. Abbreviations of options are known."""
        known = [option for option in self._option_string_actions if option.startswith("--")]
        options = (word.partition("=")[0] for word in given if word.startswith("--"))
        unknown = [option for option in options if not any(name.startswith(option) for name in known)]
        found = [did_you_mean(option, known) for option in unknown]
        return [suggestion for suggestion in found if suggestion] + _about_quotes(given)


def _about_quotes(given: Sequence[str]) -> list[str]:
    """Advice if the shell has split a spec, or has redirected the output at its arrow."""
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
