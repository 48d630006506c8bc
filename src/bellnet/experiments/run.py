"""Many cells, run: in this process, or side by side in processes of one thread each.

Nothing is lost when a run is stopped, however it is stopped: what was measured is in the records, and a half-run cell
goes on from its last checkpoint the next time.
"""

import multiprocessing
import os
import signal
import threading
from collections.abc import Sequence
from contextlib import suppress
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

import torch

from bellnet.errors import DataError, MissingExtraError
from bellnet.experiments.alone import alone, make_usable
from bellnet.experiments.cell import Runnable
from bellnet.experiments.display import Display
from bellnet.experiments.records import Records
from bellnet.experiments.train import checkpoints, run_cell

EPOCH, NOTE, DONE, FAILED = "epoch", "note", "done", "failed"


def check_extra(call: str) -> None:
    """Stop at once, and say how to install them, where the packages for experiments are missing."""
    from importlib.util import find_spec

    for package in ("lightning", "torchmetrics", "rich", "matplotlib"):
        if find_spec(package) is None:
            raise MissingExtraError(
                f"{call} needs {package}, which is not installed.\nInstall it: pip install 'bellnet[experiments]'"
            )


def run_cells(cells: Sequence[Runnable], directory: Path, *, jobs: int = 1, show: bool = True) -> list[dict[str, Any]]:
    """Run the cells that are not finished, and return the final records of all, in order.

    While this goes on, the directory is refused to other calls and other processes.

    Args:
        cells: What to run.
        directory: Where everything goes.
        jobs: How many cells run at a time, each in a process of its own with one thread.
        show: Whether to show what is running, its error so far and the time left.
    """
    check_extra("bellnet.experiments.run_cells")
    records = Records(Path(directory))
    with alone(records.directory) as is_alone:
        records.repair()
        finished = records.finished()
        waiting = [cell for cell in dict.fromkeys(cells) if cell.key not in finished]
        # What is quick comes first: the trivial predictors fill their rows at once.
        waiting.sort(key=lambda cell: cell.is_learned)
        if waiting and waiting[-1].is_learned:
            make_usable(checkpoints(records.directory, waiting[-1]).parent)
        with Display(waiting, done=len(cells) - len(waiting), show=show) as display:
            if not is_alone:
                display.note(
                    f"{directory}: this file system has no locks. Run no second command there before this one is done."
                )
            if jobs > 1 and len(waiting) > 1:
                _side_by_side(waiting, records.directory, min(jobs, len(waiting)), display)
            else:
                _in_turn(waiting, records.directory, display)
        finished = records.finished()
    lost = [cell.title for cell in cells if cell.key not in finished]
    if lost:
        raise DataError(
            f"{records.path} has lost what was recorded while this ran: {'; '.join(lost)}.\n"
            "Leave that file alone and run the same command again: what is lost is run again."
        )
    return [finished[cell.key] for cell in cells]


def _in_turn(cells: Sequence[Runnable], directory: Path, display: Display) -> None:
    threads = torch.get_num_threads()
    interrupt = signal.getsignal(signal.SIGINT)
    torch.set_num_threads(1)
    try:
        for cell in cells:
            display.begin(cell)
            display.end(cell, run_cell(cell, directory, display.epoch, note=display.note_of))
    except SystemExit as stop:
        # Lightning turns Ctrl-C into an exit of the whole program; what runs cells may have other things to do.
        raise KeyboardInterrupt from stop
    finally:
        torch.set_num_threads(threads)
        if interrupt is not None and multiprocessing.parent_process() is None:
            _restore(interrupt)


def _restore(handler: Any) -> None:
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, handler)


def _side_by_side(cells: Sequence[Runnable], directory: Path, jobs: int, display: Display) -> None:
    context = multiprocessing.get_context("spawn")
    waiting = list(reversed(cells))
    workers: dict[Connection, tuple[BaseProcess, Runnable]] = {}

    def hand_out(line: Connection, process: BaseProcess) -> None:
        if waiting:
            cell = waiting.pop()
            workers[line] = (process, cell)
            display.begin(cell)
            with suppress(BrokenPipeError):  # if the process is gone already, the answer that never comes will tell
                line.send(cell)
        else:
            workers.pop(line, None)
            line.close()

    try:
        for _ in range(jobs):
            ours, theirs = context.Pipe()
            worker = context.Process(target=_work, args=(theirs, directory), daemon=True)
            worker.start()
            theirs.close()
            hand_out(ours, worker)
        while workers:
            for line in wait(list(workers)):
                assert isinstance(line, Connection)
                process, cell = workers[line]
                try:
                    what, value = line.recv()
                except (EOFError, OSError):
                    process.join()
                    raise DataError(
                        f"The process that ran {cell.title} ended with code {process.exitcode} before it was done.\n"
                        "What it had recorded is kept. Run the same command again to go on from there."
                    ) from None
                if what == EPOCH:
                    display.epoch(cell, value)
                elif what == NOTE:
                    display.note_of(cell, value)
                elif what == FAILED:
                    raise value
                else:
                    display.end(cell, value)
                    hand_out(line, process)
    finally:
        for process, _ in workers.values():
            process.terminate()
        for process, _ in workers.values():
            process.join()


def _end_with_parent() -> None:
    """Leave when the process that asked is gone, however it went: a new run may begin the same cell at once."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def _work(line: Connection, directory: Path) -> None:
    """Runs in a process of its own: takes cells from the line until it is closed."""
    threading.Thread(target=_end_with_parent, daemon=True).start()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches every process; the one that was asked ends the others
    torch.set_num_threads(1)
    while True:
        try:
            cell = line.recv()
        except EOFError:
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
            return
        line.send((DONE, done))
