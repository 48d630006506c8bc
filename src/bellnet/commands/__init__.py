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
from bellnet.commands.experiments import COMMANDS as EXPERIMENT_COMMANDS
from bellnet.commands.models import COMMANDS as MODEL_COMMANDS

__all__ = [
    "BAD_INPUT",
    "CHECK_FAILED",
    "EXPERIMENT_COMMANDS",
    "INTERRUPTED",
    "MODEL_COMMANDS",
    "OK",
    "Command",
    "count",
    "from_zero",
    "make_directory",
    "positive",
]
