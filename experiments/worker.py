"""What runs in a process of its own: cells that come over a line, and what is said of them in answer."""

import multiprocessing
import os
import signal
import threading
from contextlib import suppress
from multiprocessing.connection import Connection
from pathlib import Path

import torch

from experiments.team import joined, membership
from experiments.train import follow, run_cell

EPOCH, NOTE, DONE, FAILED = "epoch", "note", "done", "failed"
"""What a process says: a record, words for whoever looks on, the result of a cell, and why there is none."""


def work(line: Connection, directory: Path, devices: int, store: Path) -> None:
    """Runs in a process of its own: takes cells from the line until it is closed."""
    _begin(0, devices)
    with joined(store) as team:
        while True:
            try:
                cell = line.recv()
            except EOFError:
                team.tell()
                return
            try:
                done = run_cell(
                    cell,
                    directory,
                    lambda cell, epoch: line.send((EPOCH, epoch)),
                    note=lambda cell, words: line.send((NOTE, words)),
                )
            except BrokenPipeError:
                return  # whoever wanted this is gone; the records and the last checkpoint are there
            except Exception as reason:
                line.send((FAILED, reason))
                if team.size > 1:
                    _stay(line)
                return
            line.send((DONE, done))


def follow_cells(line: Connection, rank: int, size: int, store: Path) -> None:
    """Runs in a process of its own: trains what the first process of its team names."""
    _begin(rank, size)
    with joined(store) as team:
        try:
            follow(team)
        except (Exception, SystemExit) as reason:
            if isinstance(reason, Exception):  # otherwise the first process is gone, which tells for itself
                line.send((FAILED, reason))
            _stay(line)


def _begin(rank: int, size: int) -> None:
    threading.Thread(target=_end_with_parent, daemon=True).start()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches every process; the one that was asked ends the others
    torch.set_num_threads(1)
    if size > 1:
        os.environ.update(membership(rank, size))


def _stay(line: Connection) -> None:
    """Wait for the end that all of a team are brought to at once: none of them fails because another one has failed."""
    with suppress(EOFError):
        line.recv()


def _end_with_parent() -> None:
    """Leave when the process that asked is gone, however it went: a new run may begin the same cell at once."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)
