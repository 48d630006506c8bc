"""Families of commands that `bellnet.cli` lists, each in a module of its own."""

from bellnet.commands.command import (
    BAD_INPUT,
    INTERRUPTED,
    OK,
    Command,
    count,
    from_zero,
    positive,
)
from bellnet.commands.explore import COMMANDS as EXPLORE_COMMANDS
from bellnet.commands.models import COMMANDS as MODEL_COMMANDS
from bellnet.commands.names import harmless, harmless_lines
from bellnet.commands.streams import Output, complain, own_streams

__all__ = [
    "BAD_INPUT",
    "EXPLORE_COMMANDS",
    "INTERRUPTED",
    "MODEL_COMMANDS",
    "OK",
    "Command",
    "Output",
    "complain",
    "count",
    "from_zero",
    "harmless",
    "harmless_lines",
    "own_streams",
    "positive",
]
