"""Processes that are killed or limited: real ones, but what they import is imported once for all of them."""

import multiprocessing
import os
from dataclasses import replace

from experiments.run import run_cells

_CONTEXT = multiprocessing.get_context("forkserver")
_CONTEXT.set_forkserver_preload(["lightning.pytorch", "experiments.run", "tests.experiments.processes"])


def started(target, *given):
    """A process of its own in which a function of a module of tests runs, and the end of a pipe with its errors."""
    ours, theirs = _CONTEXT.Pipe(duplex=False)
    process = _CONTEXT.Process(target=_run, args=(theirs, target, given), daemon=True)
    process.start()
    theirs.close()
    return process, ours


def ended(process, errors):
    """The code with which a process ends, and what it has said of errors."""
    with os.fdopen(os.dup(errors.fileno())) as file:
        said = file.read()
    process.join()
    return process.exitcode, said


def killed(process):
    """End a process as the system does when there is no memory left."""
    process.kill()
    process.join()


def run_one(cell, directory, data=None):
    """What most of them do: run a cell."""
    run_cells([cell if data is None else replace(cell, data=data)], directory, show=False)


def _run(errors, target, given):
    os.dup2(errors.fileno(), 2)
    errors.close()
    target(*given)
