"""Families of commands that `bellnet.cli` lists, each in a module of its own."""

from bellnet.commands.command import (
    BAD_INPUT,
    CHECK_FAILED,
    INTERRUPTED,
    OK,
    Command,
    count,
    from_zero,
    make_directory,
    positive,
)
from bellnet.commands.counting import COMMANDS as COUNTING_COMMANDS
from bellnet.commands.experiments import COMMANDS as EXPERIMENT_COMMANDS
from bellnet.commands.explore import COMMANDS as EXPLORE_COMMANDS
from bellnet.commands.expressive import COMMANDS as EXPRESSIVE_COMMANDS
from bellnet.commands.models import COMMANDS as MODEL_COMMANDS
from bellnet.commands.names import harmless, harmless_lines
from bellnet.commands.runs import declare_folder
from bellnet.commands.search import COMMANDS as SEARCH_COMMANDS
from bellnet.commands.streams import Output, complain, own_streams

__all__ = [
    "BAD_INPUT",
    "CHECK_FAILED",
    "COUNTING_COMMANDS",
    "EXPERIMENT_COMMANDS",
    "EXPLORE_COMMANDS",
    "EXPRESSIVE_COMMANDS",
    "INTERRUPTED",
    "MODEL_COMMANDS",
    "OK",
    "SEARCH_COMMANDS",
    "Command",
    "Output",
    "complain",
    "count",
    "declare_folder",
    "from_zero",
    "harmless",
    "harmless_lines",
    "make_directory",
    "own_streams",
    "positive",
]
