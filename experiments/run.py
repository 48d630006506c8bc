"""Many cells, run: in this process, in several processes, or on a cluster.

Nothing is lost when a run is stopped: what was measured is in the records, and an unfinished cell goes on from its last
checkpoint the next time.
"""

import multiprocessing
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import torch

from bellnet import keep_freed_memory
from bellnet._utils.files import check_directory, locked
from bellnet.errors import DataError, OptionError
from experiments.cell import Cell
from experiments.display import Display
from experiments.machine import circumstances, require
from experiments.on_ray import connected, run_on_ray
from experiments.parallel import process_group, run_parallel, this_worker
from experiments.records import Records

LOCK = ".lock"


def run_cells(
    cells: Sequence[Cell],
    directory: Path,
    *,
    jobs: int | None = None,
    devices: int = 1,
    ray: str | None = None,
    show: bool = True,
) -> list[dict[str, Any]]:
    """Run the cells that are not finished, and return the final records of all, in order.

    Meanwhile the directory is locked against other calls and other processes. Under torchrun all processes call this
    and train each cell together; the first of them records.

    Args:
        cells: The cells.
        directory: The directory of records and checkpoints.
        jobs: How many cells run at a time, each in a process with one thread; one if None, or with Ray as many as the
            cluster has processors.
        devices: How many processes train each cell together, on a GPU each where there are so many.
        ray: The address of a Ray cluster on which cells run, or "local" for one of this process.
        show: Whether to show progress.
    """
    check_extra("run_cells")
    check_ways(jobs=jobs, devices=devices, ray=ray)
    records = Records(Path(directory))
    with process_group() as worker, ExitStack() as opened:
        if not worker.is_leader:
            for cell in worker.broadcast():
                run_cell(cell, records.directory)
            return []
        if ray is not None:
            opened.enter_context(connected(ray))
        is_locked = opened.enter_context(exclusive(records.directory))
        finished = records.read()
        waiting = [cell for cell in dict.fromkeys(cells) if cell.key not in finished]
        if any(cell.is_learned for cell in waiting):
            make_usable(records.checkpoint("").parent)
        display = opened.enter_context(Display(waiting, done=len(cells) - len(waiting), show=show))
        if not is_locked:
            display.note(f"{directory}: this file system has no locks. Run no second command there before this ends.")
        worker.broadcast(waiting)
        if ray is not None:
            run_on_ray(waiting, records, display, jobs=jobs)
        elif worker.size == 1 and waiting and (devices > 1 or min(jobs or 1, len(waiting)) > 1):
            run_parallel(waiting, records, display, jobs=min(jobs or 1, len(waiting)), devices=devices)
        else:
            _run_in_turn(waiting, records, display)
        finished = records.read()
        return [finished[cell.key] for cell in cells]


def check_extra(call: str) -> None:
    """Raise `MissingExtraError` if one of the packages for experiments is missing."""
    require("lightning", "torchmetrics", "rich", "matplotlib", extra="experiments", call=call)


def check_ways(*, jobs: int | None, devices: int, ray: str | None) -> None:
    """Refuse ways to run cells that exclude each other."""
    worker = this_worker()
    if devices > 1 and ray is not None:
        raise OptionError(
            f"--devices {devices} --ray {ray}: a cell runs on one processor of a cluster.\n"
            "Leave --devices out: many cells at a time need less time than one on many processors."
        )
    if (devices > 1 or worker.size > 1) and jobs is not None and jobs > 1:
        raise OptionError(
            f"--jobs {jobs}: with --devices, or under torchrun, cells run one after the other, on all processes.\n"
            "Leave --jobs out, or the others: many cells at a time need less time than one on many processes."
        )
    if worker.size > 1 and (ray is not None or devices not in (1, worker.local_size)):
        given = f"--ray {ray}" if ray is not None else f"--devices {devices}"
        raise OptionError(
            f"{given}: torchrun has started {worker.local_size} processes on this machine, which train together.\n"
            "Leave the option out, or start the command without torchrun."
        )


@contextmanager
def exclusive(directory: Path) -> Iterator[bool]:
    """Make a directory and lock it; yields whether it is locked, since some file systems have no locks."""
    make_usable(directory)
    path = directory / LOCK
    with ExitStack() as stack:
        try:
            is_locked = stack.enter_context(locked(path, wait=False))
        except TimeoutError as reason:
            raise OptionError(
                f"{directory} is in use by another process.\nWait until that one has ended, or stop it and run the "
                "same command again: it goes on from there. Or choose another directory with --out."
            ) from reason
        except OSError as reason:
            raise _unusable(path, reason) from reason
        yield is_locked


def make_usable(directory: Path) -> None:
    """Make a directory; an `OptionError` if that, or a file in it, is impossible."""
    try:
        directory.mkdir(parents=True, exist_ok=True)
        check_directory(directory)
    except OSError as reason:
        raise _unusable(directory, reason) from reason


def _unusable(path: Path, reason: OSError) -> OptionError:
    return OptionError(
        f"{path} cannot be written: {reason.strerror or reason}.\n"
        "Records and checkpoints go there. Fix that, or choose another directory with --out."
    )


def _run_in_turn(cells: Sequence[Cell], records: Records, display: Display) -> None:
    threads = torch.get_num_threads()
    interrupt = signal.getsignal(signal.SIGINT)
    torch.set_num_threads(1)
    try:
        for cell in cells:
            display.begin(cell)
            report, note = (partial(method, cell) for method in (display.epoch, display.note_of))
            done = run_cell(cell, records.directory, report, note=note)
            records.add(done)
            display.end(cell, done)
    except SystemExit as stop:  # Lightning turns Ctrl-C into an exit of the program
        raise KeyboardInterrupt from stop
    finally:
        torch.set_num_threads(threads)
        is_main = multiprocessing.parent_process() is None and threading.current_thread() is threading.main_thread()
        if interrupt is not None and is_main:
            signal.signal(signal.SIGINT, interrupt)


def run_cell(
    cell: Cell,
    directory: Path,
    report: Callable[[dict[str, Any]], None] = lambda epoch: None,
    *,
    note: Callable[[str], None] = lambda words: None,
) -> dict[str, Any]:
    """Run a cell and return its record; an empty one if this process trains with another one, which leads.

    Args:
        cell: The cell.
        directory: The directory of the checkpoints.
        report: Receives the figures of every epoch.
        note: Receives warnings.
    """
    keep_freed_memory()
    epochs: list[dict[str, Any]] = []

    def record(epoch: dict[str, Any]) -> None:
        epochs.append(epoch)
        report(epoch)

    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(cell.seed)
        if cell.is_learned:
            from experiments.learner import train

            learner = cell.learner()
            if not (this_worker().is_leader or learner.is_distributed):
                return {}
            path = Records(directory).checkpoint(cell.key)
            result = train(learner, path, cell.epochs, report=report, note=note)
            epochs = learner.epochs
        elif this_worker().is_leader:
            result = cell.compute(record)
    if not this_worker().is_leader:
        return {}
    curves = {name: [epoch[name] for epoch in epochs] for name in (epochs[0] if epochs else ()) if name != "epoch"}
    return {"key": cell.key, "config": cell.to_json(), **result, "curves": curves, **circumstances()}


def merge_records(sources: Sequence[Path], directory: Path) -> dict[Path, int]:
    """Append the records of other directories whose cells are not finished here; returns how many of each."""
    missing = [source for source in sources if not Records(source).path.is_file()]
    if missing:
        raise DataError(
            f"{', '.join(map(str, missing))}: there is no {Records(missing[0]).path.name}.\nName directories that "
            "table1, table2 or table3 has written with --out."
        )
    taken, records = {}, Records(directory)
    with exclusive(directory):
        for source in sources:
            here = records.read()
            new = [record for key, record in Records(source).read().items() if key not in here]
            taken[source] = len(new)
            if new:
                records.add(*new)
    return taken
