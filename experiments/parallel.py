"""Several processes: for one cell each, or for training one network together by torch.distributed.

Processes that train together are those of torchrun, or are started here with the same environment. All of them run
`run_cells`; the one of rank 0 leads: it alone has records, display and checkpoints.
"""

import multiprocessing
import os
import signal
import socket
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import timedelta
from importlib import import_module
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TypeVar

import torch

from bellnet.errors import DataError
from experiments.cell import Cell
from experiments.display import Display
from experiments.records import Records

T = TypeVar("T")
MARK = "TORCHELASTIC_RUN_ID"
DAY = timedelta(days=1)


@dataclass(frozen=True)
class Worker:
    """One of the processes that train a network together.

    Attributes:
        rank: Its number; the first one, 0, leads.
        size: How many there are.
        local_size: How many there are on this machine.
    """

    rank: int = 0
    size: int = 1
    local_size: int = 1

    @property
    def is_leader(self) -> bool:
        return self.rank == 0

    @property
    def on_gpus(self) -> bool:
        """Whether each process has a GPU of its own. A single process never uses any."""
        return self.size > 1 and torch.cuda.device_count() >= self.local_size

    def share(self, batch: Sequence[T]) -> list[T]:
        """The share of a batch that this process takes: every example goes to exactly one of them."""
        return list(batch[self.rank :: self.size])

    def broadcast(self, value: Any = None) -> Any:
        """The value of the leader."""
        if self.size == 1:
            return value
        values = [value]
        torch.distributed.broadcast_object_list(values, src=0)
        return values[0]

    def total(self, number: int) -> int:
        """The sum of a number over all processes."""
        if self.size == 1:
            return number
        numbers = torch.tensor(number, device="cuda" if self.on_gpus else "cpu")
        torch.distributed.all_reduce(numbers)
        return int(numbers)

    def trainer_options(self) -> dict[str, Any]:
        """Arguments of Lightning's Trainer."""
        if self.size == 1:
            return {"accelerator": "cpu", "devices": 1}
        from lightning.fabric.plugins.environments.torchelastic import TorchElasticEnvironment
        from lightning.pytorch.strategies import DDPStrategy

        return {
            "accelerator": "gpu" if self.on_gpus else "cpu",
            "devices": self.local_size,
            "num_nodes": self.size // self.local_size,
            "strategy": DDPStrategy(cluster_environment=TorchElasticEnvironment()),
            "use_distributed_sampler": False,  # `share` distributes every batch
        }


def this_worker() -> Worker:
    """This process, from the environment variables of torchrun."""
    if MARK not in os.environ:
        return Worker()
    return Worker(*(int(os.environ[name]) for name in ("RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE")))


def worker_environment(rank: int, size: int) -> dict[str, str]:
    """The environment of one of several processes on this machine, which are connected by the loopback interface."""
    loopback = [name for _, name in socket.if_nameindex() if name in ("lo", "lo0")]
    ranks = {"RANK": rank, "LOCAL_RANK": rank, "GROUP_RANK": 0, "WORLD_SIZE": size, "LOCAL_WORLD_SIZE": size}
    named = {name: str(number) for name, number in ranks.items()}
    return {MARK: "bellnet", **named, **({"GLOO_SOCKET_IFNAME": loopback[0]} if loopback else {})}


@contextmanager
def process_group(store: Path | None = None) -> Iterator[Worker]:
    """This process, connected with the others for as long as the context lasts."""
    worker = this_worker()
    if worker.size == 1 or torch.distributed.is_initialized():
        yield worker
        return
    if worker.on_gpus:
        torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    # Imported later, by DDP, its functions would hold the group as a default argument: threads of gloo would outlive
    # the group, and one that is late kills a process that is about to end.
    import_module("torch.distributed.nn.functional")
    torch.distributed.init_process_group(
        "cpu:gloo,cuda:nccl" if worker.on_gpus else "gloo",
        init_method="env://" if store is None else store.as_uri(),
        rank=worker.rank,
        world_size=worker.size,
        timeout=DAY,  # the others wait while the leader evaluates
    )
    try:
        yield worker
    finally:
        torch.distributed.destroy_process_group()


GRACE = 5
"""Seconds that a process has to end."""
FAILED = "failed"


def run_parallel(cells: Sequence[Cell], records: Records, display: Display, *, jobs: int, devices: int) -> None:
    """Run cells, so many at a time, each in so many processes that train together."""
    waiting = list(reversed(cells))
    with TemporaryDirectory(prefix="bellnet-", ignore_cleanup_errors=True) as folder:
        store = Path(folder) / "store"
        teams = [[_start(rank, devices, records.directory, store) for rank in range(devices)] for _ in range(jobs)]
        running: dict[Connection, tuple[int, Cell]] = {}

        def send_cell(team: int) -> None:
            cell = waiting.pop() if waiting else None
            if cell is not None:
                display.begin(cell)
            for line, _ in teams[team]:
                running.pop(line, None)
                if cell is not None:
                    running[line] = (team, cell)
                with suppress(BrokenPipeError):  # a process that is gone is noticed by its silence
                    line.send(cell)

        try:
            for team in range(jobs):
                send_cell(team)
            while running:
                for line in wait(list(running)):
                    if line in running:
                        team, cell = running[line]
                        what, value = _receive(line, cell, teams[team])
                        if what == "end":
                            records.add(value)
                        getattr(display, what)(cell, value)
                        if what == "end":
                            send_cell(team)
            for line, process in (each for team in teams for each in team):
                line.close()
                process.join()
        finally:
            _end([process for team in teams for _, process in team])


def _receive(line: Connection, cell: Cell, team: Sequence[tuple[Connection, BaseProcess]]) -> tuple[str, Any]:
    """What a process reports: the name of a method of the display, and its argument. Raises the error of a process."""
    try:
        what, value = line.recv()
    except (EOFError, OSError):
        what, value = FAILED, RuntimeError("the process is gone")
    if what != FAILED:
        return what, value
    if isinstance(value, RuntimeError):  # torch raises one where another process of the team is gone
        ending = wait([process.sentinel for _, process in team], GRACE)
        gone = [process for _, process in team if process.sentinel in ending]
        for process in gone:
            process.join()
        if gone:
            code = min(process.exitcode or 0 for process in gone)
            raise DataError(
                f"The process that ran {cell.title} ended with code {code} before it was done.\n"
                "What was done before is kept. Run the same command again to go on from there."
            )
    raise value


def _start(rank: int, size: int, directory: Path, store: Path) -> tuple[Connection, BaseProcess]:
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=_work, args=(theirs, rank, size, directory, store), daemon=True)
    process.start()
    theirs.close()
    return ours, process


def _work(line: Connection, rank: int, size: int, directory: Path, store: Path) -> None:
    """Runs in a process of its own: cells from the line, until it is closed."""
    from experiments.run import run_cell

    threading.Thread(target=_end_with_parent, daemon=True).start()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches every process; the main process ends the others
    torch.set_num_threads(1)
    if size > 1:
        os.environ.update(worker_environment(rank, size))
    with process_group(store):
        while (cell := line.recv()) is not None:
            try:
                done = run_cell(
                    cell,
                    directory,
                    lambda epoch: line.send(("epoch", epoch)),
                    note=lambda words: line.send(("note_of", words)),
                )
            except BrokenPipeError:
                return  # the main process is gone
            except Exception as reason:
                line.send((FAILED, reason))
                with suppress(EOFError):
                    line.recv()  # until the main process ends all workers, so that none fails because of another
                return
            if rank == 0:
                line.send(("end", done))


def _end_with_parent() -> None:
    """End with the main process, however that ends: a new run may begin the same cell at once."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def _end(processes: Sequence[BaseProcess]) -> None:
    for process in processes:
        process.terminate()
    for process in processes:
        process.join(GRACE)
        if process.is_alive():  # Lightning handles the signal, and a process that waits does not see it
            process.kill()
            process.join()
