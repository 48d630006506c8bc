"""Many cells, run: in this process, side by side in processes of one thread each, or on a cluster.

Nothing is lost when a run is stopped, however it is stopped: what was measured is in the records, and a half-run cell
goes on from its last checkpoint the next time.
"""

import multiprocessing
import signal
import threading
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import torch

from bellnet._utils.files import check_directory, locked
from bellnet.errors import DataError, OptionError
from experiments.cell import Runnable
from experiments.display import Display
from experiments.machine import require
from experiments.on_ray import connected, run_on_ray
from experiments.parallel import run_parallel
from experiments.records import Records
from experiments.train import checkpoints, follow, run_cell
from experiments.workers import process_group, this_worker

NAME = ".lock"


@contextmanager
def exclusive(directory: Path) -> Iterator[bool]:
    """Keep other runs out of a directory, which is made; whether that is so, for not every file system has locks."""
    make_usable(directory)
    path = directory / NAME
    with ExitStack() as stack:
        try:
            is_locked = stack.enter_context(locked(path, wait=False))
        except TimeoutError as reason:
            raise OptionError(
                f"{directory} is in use by another process: a second run there would record everything twice.\n"
                "Wait until that one is done, or stop it and run the same command again: it goes on from there. Or "
                "choose another directory with --out."
            ) from reason
        except OSError as reason:
            raise _unusable(path, reason) from reason
        yield is_locked


def make_usable(directory: Path) -> None:
    """Make a directory of a run, or say why there can be none, or nothing in it."""
    try:
        directory.mkdir(parents=True, exist_ok=True)
        check_directory(directory)
    except OSError as reason:
        raise _unusable(directory, reason) from reason


def _unusable(path: Path, reason: OSError) -> OptionError:
    return OptionError(
        f"{path} cannot be written: {reason.strerror or reason}.\n"
        "Records and checkpoints go there. Mend that, or choose another directory with --out."
    )


def check_extra(call: str) -> None:
    """Raise `MissingExtraError` if one of the packages for experiments is missing."""
    require("lightning", "torchmetrics", "rich", "matplotlib", extra="experiments", call=call)


def run_cells(
    cells: Sequence[Runnable],
    directory: Path,
    *,
    jobs: int | None = None,
    devices: int = 1,
    ray: str | None = None,
    show: bool = True,
) -> list[dict[str, Any]]:
    """Run the cells that are not finished, and return the final records of all, in order.

    While this goes on, the directory is refused to other calls and other processes. Under torchrun all processes call
    this, and train each cell together; the first of them records.

    Args:
        cells: What to run.
        directory: Where everything goes.
        jobs: How many cells run at a time, each in a process of its own with one thread; one if None, or with Ray as
            many as the cluster has processors.
        devices: How many processes train each cell together, on a GPU each where there are so many.
        ray: The address of a Ray cluster on which cells run, or "local" for one of this process.
        show: Whether to show what is running, its error so far and the time left.
    """
    check_extra("run_cells")
    check_ways(jobs=jobs, devices=devices, ray=ray)
    with process_group() as worker, ExitStack() as opened:
        if not worker.is_leader:
            follow(worker)
            records: list[dict[str, Any]] = worker.broadcast()
            return records
        if ray is not None:
            opened.enter_context(connected(ray))
        records = _led(cells, Records(Path(directory)), jobs=jobs, devices=devices, ray=ray, show=show)
        worker.broadcast()
        worker.broadcast(records)
        return records


def check_ways(*, jobs: int | None, devices: int, ray: str | None) -> None:
    """Refuse ways to run cells that do not go together."""
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


def _led(
    cells: Sequence[Runnable], records: Records, *, jobs: int | None, devices: int, ray: str | None, show: bool
) -> list[dict[str, Any]]:
    """The same, by the process that records."""
    with exclusive(records.directory) as is_locked:
        records.repair()
        finished = records.finished()
        waiting = [cell for cell in dict.fromkeys(cells) if cell.key not in finished]
        # What is quick comes first: the trivial predictors fill their rows at once.
        waiting.sort(key=lambda cell: cell.is_learned)
        if waiting and waiting[-1].is_learned:
            make_usable(checkpoints(records.directory, waiting[-1]).parent)
        with Display(waiting, done=len(cells) - len(waiting), show=show) as display:
            if not is_locked:
                display.note(
                    f"{records.directory}: this file system has no locks. Run no second command there before this one "
                    "is done."
                )
            if ray is not None:
                run_on_ray(waiting, records, display, jobs=jobs)
            elif this_worker().size == 1 and (devices > 1 or ((jobs or 1) > 1 and len(waiting) > 1)):
                run_parallel(waiting, records.directory, display, jobs=min(jobs or 1, len(waiting)), devices=devices)
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


def merge_records(sources: Sequence[Path], directory: Path) -> dict[Path, int]:
    """Take finished cells of other directories, with their epochs; how many of each.

    A cell that is finished here already stays as it is, and one that is not finished there is not taken: its checkpoint
    is there. Nothing is written twice, so merging again changes nothing.
    """
    missing = [source for source in sources if not Records(source).path.is_file()]
    if missing:
        raise DataError(
            f"{', '.join(map(str, missing))}: there is no {Records(missing[0]).path.name}.\nName directories that "
            "table1, table2 or table3 has written with --out."
        )
    found = {}
    with exclusive(directory):
        records = Records(directory)
        records.repair()
        for source in sources:
            found[source] = records.take(Records(source))
    return found
