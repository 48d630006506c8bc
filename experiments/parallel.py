"""Cells in parallel, each in a process of its own, or one after the other by several workers that train together."""

import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, cast

import torch

from bellnet.errors import DataError
from experiments.cell import Runnable
from experiments.display import Display
from experiments.train import follow, run_cell
from experiments.workers import process_group, worker_environment

EPOCH, NOTE, DONE, FAILED = "epoch", "note", "done", "failed"
"""What a process says: a record, words for whoever looks on, the result of a cell, and why there is none."""


def work(line: Connection, directory: Path, devices: int, store: Path) -> None:
    """Runs in a process of its own: takes cells from the line until it is closed."""
    _begin(0, devices)
    with process_group(store) as worker:
        while True:
            try:
                cell = line.recv()
            except EOFError:
                worker.broadcast()
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
                if worker.size > 1:
                    _stay(line)
                return
            line.send((DONE, done))


def follow_cells(line: Connection, rank: int, size: int, store: Path) -> None:
    """Runs in a process of its own: trains what the first process of its workers names."""
    _begin(rank, size)
    with process_group(store) as worker:
        try:
            follow(worker)
        except (Exception, SystemExit) as reason:
            if isinstance(reason, Exception):  # otherwise the first process is gone, which tells for itself
                line.send((FAILED, reason))
            _stay(line)


def _begin(rank: int, size: int) -> None:
    threading.Thread(target=_end_with_parent, daemon=True).start()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches every process; the one that was asked ends the others
    torch.set_num_threads(1)
    if size > 1:
        os.environ.update(worker_environment(rank, size))


def _stay(line: Connection) -> None:
    """Wait until the main process ends all workers at once, so that none fails because another one has failed."""
    with suppress(EOFError):
        line.recv()


def _end_with_parent() -> None:
    """Leave when the process that asked is gone, however it went: a new run may begin the same cell at once."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


GRACE = 5
"""Seconds that a process has to end by itself."""


def run_parallel(cells: Sequence[Runnable], directory: Path, display: Display, *, jobs: int, devices: int) -> None:
    """Run cells in so many processes; with several devices in one, which leads others that train with it."""
    with TemporaryDirectory(prefix="bellnet-", ignore_cleanup_errors=True) as meeting:
        processes = _Processes(cells, display)
        try:
            processes.begin(directory, Path(meeting) / "store", jobs=jobs, devices=devices)
            processes.listen()
            processes.dismiss()
        finally:
            processes.end()


class _Processes:
    """Processes, those that have a cell and those that train with them, each at the end of a line."""

    def __init__(self, cells: Sequence[Runnable], display: Display) -> None:
        self._waiting = list(reversed(cells))
        self._display = display
        self._workers: dict[Connection, tuple[BaseProcess, Runnable]] = {}
        self._others: dict[Connection, BaseProcess] = {}

    def begin(self, directory: Path, store: Path, *, jobs: int, devices: int) -> None:
        """Start all processes and give each worker a cell."""
        for rank in range(1, devices if self._waiting else 1):
            line, process = _start(follow_cells, rank, devices, store)
            self._others[line] = process
        for _ in range(jobs):
            self._hand_out(*_start(work, directory, devices, store))

    def listen(self) -> None:
        """Hear what is said, and hand out cells, until no worker has one."""
        while self._workers:
            for line in cast(list[Connection], wait([*self._workers, *self._others])):
                if line in self._others and not self._workers:
                    break
                self._hear(line)

    def dismiss(self) -> None:
        """Wait for the followers, after the first worker has broadcast that this was all."""
        for line, other in self._others.items():
            line.close()
            other.join()

    def end(self) -> None:
        """End whoever is left."""
        left = [*self._others.values(), *(process for process, _ in self._workers.values())]
        for process in left:
            process.terminate()
        for process in left:
            process.join(GRACE)
            if process.is_alive():  # Lightning takes that signal for itself, and what waits does not see it
                process.kill()
                process.join()

    def _hand_out(self, line: Connection, process: BaseProcess) -> None:
        if self._waiting:
            cell = self._waiting.pop()
            self._workers[line] = (process, cell)
            self._display.begin(cell)
            with suppress(BrokenPipeError):  # if the process is gone already, the answer that never comes will tell
                line.send(cell)
        else:
            self._workers.pop(line, None)
            line.close()

    def _hear(self, line: Connection) -> None:
        # Several workers have one cell at a time.
        process, cell = self._workers[line] if line in self._workers else next(iter(self._workers.values()))
        workers = [process, *self._others.values()] if self._others else []
        try:
            what, value = line.recv()
        except (EOFError, OSError):
            gone = self._others.get(line, process)
            gone.join()
            raise _died(cell, _gone(workers, 0) or gone) from None
        if what == EPOCH:
            self._display.epoch(cell, value)
        elif what == NOTE:
            self._display.note_of(cell, value)
        elif what == FAILED:
            # What torch says of a connection that has ended is said for want of a process that is gone.
            lost = _gone(workers, GRACE) if workers and isinstance(value, RuntimeError) else None
            raise value if lost is None else _died(cell, lost)
        else:
            self._display.end(cell, value)
            self._hand_out(line, process)


def _start(target: Callable[..., None], *given: Any) -> tuple[Connection, BaseProcess]:
    """A process that runs this, and the line to it, which is the first thing that it is given."""
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=target, args=(theirs, *given), daemon=True)
    process.start()
    theirs.close()
    return ours, process


def _gone(workers: Sequence[BaseProcess], timeout: float) -> BaseProcess | None:
    """The worker that has ended, if there is one within the timeout; one that was killed comes first."""
    ending = wait([process.sentinel for process in workers], timeout)
    gone = [process for process in workers if process.sentinel in ending]
    for process in gone:
        process.join()  # what it had open is closed a moment before it has a code
    return min(gone, key=lambda process: process.exitcode or 0, default=None)


def _died(cell: Runnable, process: BaseProcess) -> DataError:
    process.join()
    return DataError(
        f"The process that ran {cell.title} ended with code {process.exitcode} before it was done.\n"
        "What it had recorded is kept. Run the same command again to go on from there."
    )
