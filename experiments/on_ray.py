"""Cells as tasks of a Ray cluster. The driver alone has records and checkpoints; workers send what they make.

A worker runs a cell in a temporary folder, and streams back the record of every epoch and, from time to time, the
checkpoint. If it dies, the driver sends the cell to another worker, which goes on from there. The package comes with
the job and a data set by its digest, so workers need no folder that the driver has.
"""

import logging
import os
import platform
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from queue import SimpleQueue
from tempfile import TemporaryDirectory
from threading import Thread
from typing import Any

import torch

import bellnet as bn
from bellnet import data
from bellnet._utils.files import write_files
from bellnet.errors import DataError, OptionError
from experiments.cell import Cell
from experiments.display import Display
from experiments.machine import circumstances, require
from experiments.records import Records, not_written

LOCAL = "local"
BEGIN, EPOCH, CHECKPOINT, NOTE, END, FAILED = "begin", "epoch", "checkpoint", "note", "end", "failed"
Message = tuple[str, Any]
MAX_DEATHS = 3
"""So many workers may die of a cell, one after the other, before an epoch is over."""
SECONDS = 20.0
"""Between the checkpoints that a worker sends; if it dies, at most what was done since the last one is lost."""
# Ray gives 127.0.0.1 the address of the machine, except where it is told that there is no cluster beyond it.
ENVIRONMENT = {"RAY_USAGE_STATS_ENABLED": "0", "RAY_DEDUP_LOGS_SKIP_REGEX": "."}
LOCAL_ENVIRONMENT = {"RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0"}


@dataclass(frozen=True)
class Payload:
    """What a worker needs to run a cell.

    Attributes:
        cell: The cell, without the folder of its data set.
        checkpoint: The content of its checkpoint, if there is one.
        parcel: The name and the digest of its data set, and a function that fetches it, if it has one.
        seconds: The time between the checkpoints that it sends.
    """

    cell: Cell
    checkpoint: bytes | None = None
    parcel: tuple[str, str, Callable[[], data.tu.Parcel]] | None = None
    seconds: float = SECONDS


@contextmanager
def connected(address: str) -> Iterator[None]:
    """A connection to a Ray cluster, for as long as the context lasts; one that is open already is used as it is."""
    if address.startswith("ray://"):
        raise OptionError(
            f"--ray {address}: a Ray client cannot stream records back.\n"
            "Run the command on a machine of the cluster, with --ray auto or with the address HOST:PORT of its head."
        )
    os.environ.update({**ENVIRONMENT, **(LOCAL_ENVIRONMENT if address == LOCAL else {}), **os.environ})
    require("ray", extra="ray", call=f"--ray {address}")
    import ray

    if ray.is_initialized():
        yield
        return
    logging.getLogger("ray").setLevel(logging.ERROR)
    here: dict[str, Any] = {"include_dashboard": False} if address == LOCAL else {}
    try:
        ray.init(
            address=address,
            runtime_env={"py_modules": [str(Path(file).parent) for file in (bn.__file__, __file__)]},
            log_to_driver=False,
            configure_logging=False,
            **here,
        )
    except (ConnectionError, ValueError, RuntimeError) as reason:
        raise OptionError(
            f"--ray {address}: there is no Ray cluster: {_lines(reason)[0]}\n"
            "Start one with `ray start --head` on this machine and `ray start --address=HOST:PORT` on others, or use "
            "--ray local."
        ) from reason
    try:
        yield
    finally:
        ray.shutdown()


def run_on_ray(cells: Sequence[Cell], records: Records, display: Display, *, jobs: int | None = None) -> None:
    """Run cells on the cluster that this process is connected to, and record their results."""
    import ray

    resources: Callable[[], dict[str, float]] = ray.cluster_resources
    if resources().get("CPU", 0) < 1:
        display.note("The cluster has no processor. Cells wait until a machine with one joins it.")
    work: Any = ray.remote(num_cpus=1, max_retries=0, num_returns="streaming")(_work)
    parcels: dict[str, Any] = {}
    waiting, deaths = list(reversed(cells)), Counter[Cell]()
    running: dict[Any, Cell] = {}
    lost: dict[str, str] = {}
    try:
        while waiting or running:
            while waiting and (jobs is None or len(running) < jobs):
                cell = waiting.pop()
                running[work.remote(_packed(cell, records, parcels))] = cell
            ready, _ = ray.wait(list(running), num_returns=1)
            stream: Any = ready[0]
            cell = running[stream]
            try:
                message: Any = ray.get(next(stream))
                _receive(message, cell, records, display)
                if message[0] == EPOCH:
                    deaths[cell] = 0
            except StopIteration:
                del running[stream]
            except (ray.exceptions.RayTaskError, ray.exceptions.RuntimeEnvSetupError) as reason:
                raise DataError(
                    f"{cell.title} cannot begin on the cluster: {_lines(reason)[-1]}\n"
                    f"Its machines need Python {platform.python_version()} and the packages of "
                    "'bellnet[experiments,graphs,ray]'; bellnet itself and the experiments are sent to them."
                ) from reason
            except ray.exceptions.RayError as reason:
                del running[stream]
                deaths[cell] += 1
                if deaths[cell] < MAX_DEATHS:
                    display.note_of(cell, "its worker has died; it is sent to another one.")
                    waiting.append(cell)
                else:
                    lost[cell.title] = _lines(reason)[0]
    finally:
        for stream in running:
            with suppress(Exception):  # what cannot be stopped ends with the connection
                ray.cancel(stream, force=True)
    if lost:
        raise DataError(
            f"{MAX_DEATHS} workers have died, one after the other, while they ran\n"
            + "".join(f"  - {title}: {reason}\n" for title, reason in lost.items())
            + "Everything else is done, and what these had recorded is kept. Mostly such a cell needs more memory than "
            "a machine has: run the same command again where there is more."
        )


def _packed(cell: Cell, records: Records, parcels: dict[str, Any]) -> Payload:
    """A cell with its checkpoint and its data set, which is sent to the cluster once."""
    import ray

    path = records.checkpoint(cell.key)
    checkpoint = path.read_bytes() if path.exists() else None
    parcel = cell.parcel()
    if parcel is None:
        return Payload(cell, checkpoint, None, SECONDS)
    if parcel.digest not in parcels:
        parcels[parcel.digest] = ray.put(parcel)
    get: Callable[..., Any] = ray.get
    fetch = partial(get, parcels[parcel.digest])
    return Payload(cell.sent(None), checkpoint, (parcel.name, parcel.digest, fetch), SECONDS)


def _receive(message: Message, cell: Cell, records: Records, display: Display) -> None:
    """Record and show what a worker has sent."""
    what, value = message
    if what == BEGIN:
        display.begin(cell)
    elif what == EPOCH:
        display.epoch(cell, value)
    elif what == CHECKPOINT:
        _write(records.checkpoint(cell.key), value)
    elif what == NOTE:
        display.note_of(cell, value)
    elif what == FAILED:
        raise value
    else:
        # The code came from here, so commit and version are those of this machine.
        ours = circumstances()
        versions = {**value["versions"], "bellnet": ours["versions"]["bellnet"]}
        value = {**value, "commit": ours["commit"], "versions": versions}
        records.add(value)
        display.end(cell, value)


def _write(path: Path, content: bytes) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_files({path: content})
    except OSError as reason:
        raise not_written(path, reason) from reason


def _work(payload: Payload) -> Iterator[Message]:
    """Runs on a worker: a cell, and everything that the driver records of it, as it happens."""
    yield BEGIN, None
    messages: SimpleQueue[Message] = SimpleQueue()
    Thread(target=_run, args=(payload, messages.put), daemon=True).start()
    while True:
        message = messages.get()
        yield message
        if message[0] in (END, FAILED):
            return


def _run(payload: Payload, send: Callable[[Message], None]) -> None:
    from experiments.run import run_cell

    torch.set_num_threads(1)  # of this thread
    cell, sent = payload.cell, time.monotonic()
    try:
        if payload.parcel is not None:
            cell = cell.sent(data.tu.receive(*payload.parcel))
        with TemporaryDirectory(prefix="bellnet-") as directory:
            records = Records(Path(directory))
            path = records.checkpoint(cell.key)
            if payload.checkpoint is not None:
                _write(path, payload.checkpoint)

            def report(epoch: dict[str, Any]) -> None:
                nonlocal sent
                send((EPOCH, epoch))
                if time.monotonic() - sent >= payload.seconds and path.exists():
                    sent = time.monotonic()
                    send((CHECKPOINT, path.read_bytes()))

            done = run_cell(cell, records.directory, report, note=lambda words: send((NOTE, words)))
            if path.exists():
                send((CHECKPOINT, path.read_bytes()))
            send((END, done))
    except Exception as reason:
        send((FAILED, reason))


def _lines(reason: BaseException) -> list[str]:
    return str(reason).strip().splitlines() or [type(reason).__name__]
