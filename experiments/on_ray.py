"""Cells as tasks of a Ray cluster. The driver alone has records and checkpoints; workers send what they make.

A worker runs a cell in a folder that lasts as long as the task, and streams back every epoch's record and, now and
then, the checkpoints. So whatever happens to it, the driver can send the cell to another one, which goes on from there.
The package comes with the job and a data set by its digest, so workers need no folder that the driver has.
"""

import logging
import os
import platform
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
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
from experiments.cell import Runnable
from experiments.display import Display
from experiments.machine import circumstances, require
from experiments.records import Records, not_written
from experiments.train import checkpoints, run_cell

LOCAL = "local"
BEGUN, EPOCH, KEPT, NOTE, DONE, FAILED = "begun", "epoch", "kept", "note", "done", "failed"
Message = tuple[str, Any]
TRIES = 3
"""So many workers may die of a cell, one after the other, before an epoch is over."""
KEEP_EVERY = 20.0
"""Seconds between the checkpoints that a worker sends; what a death costs is at most what was done since."""
# What Ray prints of its workers would stand between the tables; whatever counts is said here.
_ENVIRONMENT = {"RAY_USAGE_STATS_ENABLED": "0", "RAY_DEDUP_LOGS_SKIP_REGEX": "."}
# Ray gives 127.0.0.1 the address of the machine, except where it is told that there is no cluster beyond it.
_LOCAL_ENVIRONMENT = {"RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0"}


@dataclass
class _Task:
    """A cell that was sent.

    Attributes:
        cell: What runs.
        deaths: How many workers have died of it since its last epoch.
    """

    cell: Runnable
    deaths: int = 0


@dataclass(frozen=True)
class Payload:
    """What a worker needs to run a cell as if it were where the records are.

    Attributes:
        cell: What to run, without the folder of its data set.
        lines: The records of its epochs so far.
        kept: Its checkpoints, by the names of their files.
        name: The name of its data set.
        digest: Of its data set; nothing if it has none.
        fetch: Gets the data set.
    """

    cell: Runnable
    lines: tuple[dict[str, Any], ...] = ()
    kept: dict[str, bytes] = field(default_factory=dict)
    name: str = ""
    digest: str = ""
    fetch: Callable[[], data.tu.Parcel] | None = None


@contextmanager
def connected(address: str) -> Iterator[None]:
    """A connection to a Ray cluster, for as long as the context lasts; one that is open already is used as it is."""
    if address.startswith("ray://"):
        raise OptionError(
            f"--ray {address}: a Ray client cannot stream records back.\n"
            "Run the command on a machine of the cluster, with --ray auto or with the address HOST:PORT of its head."
        )
    os.environ.update({**_ENVIRONMENT, **(_LOCAL_ENVIRONMENT if address == LOCAL else {}), **os.environ})
    require("ray", extra="ray", call=f"--ray {address}")
    import ray

    if ray.is_initialized():
        yield
        return
    logging.getLogger("ray").setLevel(logging.ERROR)  # how a cluster is started is not about the experiment
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
            f"--ray {address}: there is no Ray cluster: {_first_line(reason)}\n"
            "Start one with `ray start --head` on this machine and `ray start --address=HOST:PORT` on others, or use "
            "--ray local."
        ) from reason
    try:
        yield
    finally:
        ray.shutdown()


def run_on_ray(cells: Sequence[Runnable], records: Records, display: Display, *, jobs: int | None = None) -> None:
    """Run cells on the cluster that this process is connected to, and record what they give."""
    import ray

    resources: Callable[[], dict[str, float]] = ray.cluster_resources
    if resources().get("CPU", 0) < 1:
        display.note("The cluster has no processor. Cells wait until a machine with one joins it.")
    work: Any = ray.remote(num_cpus=1, max_retries=0, num_returns="streaming")(_work)
    parcels: dict[str, Any] = {}
    waiting = [_Task(cell) for cell in reversed(cells)]
    running: dict[Any, _Task] = {}
    lost: dict[str, str] = {}
    try:
        while waiting or running:
            while waiting and (jobs is None or len(running) < jobs):
                task = waiting.pop()
                running[work.remote(_packed(task.cell, records, parcels))] = task
            ready, _ = ray.wait(list(running), num_returns=1)
            stream: Any = ready[0]
            task = running[stream]
            try:
                message: Any = ray.get(next(stream))
                _take(message, task, records, display)
            except StopIteration:
                del running[stream]
            except (ray.exceptions.RayTaskError, ray.exceptions.RuntimeEnvSetupError) as reason:
                raise DataError(
                    f"{task.cell.title} cannot begin on the cluster: {_last_line(reason)}\n"
                    f"Its machines need Python {platform.python_version()} and the packages of "
                    "'bellnet[experiments,graphs,ray]'; bellnet itself and the experiments are sent to them."
                ) from reason
            except ray.exceptions.RayError as reason:
                del running[stream]
                task.deaths += 1
                if task.deaths < TRIES:
                    display.note_of(task.cell, "the worker that ran it has died; it is sent to another one.")
                    waiting.append(task)
                else:
                    lost[task.cell.title] = _first_line(reason)
    finally:
        for stream in running:
            with suppress(Exception):  # what cannot be stopped goes with the connection
                ray.cancel(stream, force=True)
    if lost:
        raise DataError(
            f"{TRIES} workers have died, one after the other, while they ran\n"
            + "".join(f"  - {title}: {reason}\n" for title, reason in lost.items())
            + "Everything else is done, and what these had recorded is kept. Mostly such a cell needs more memory than "
            "a machine has: run the same command again where there is more."
        )


def _packed(cell: Runnable, records: Records, parcels: dict[str, Any]) -> Payload:
    """A cell, ready to be sent, as far as it has come. A data set is handed to the cluster once."""
    import ray

    place = checkpoints(records.directory, cell)
    kept = _read(place)
    lines = tuple(records.epochs().get(cell.key, ()))
    parcel = cell.parcel()
    if parcel is None:
        return Payload(cell, lines, kept)
    if parcel.digest not in parcels:
        parcels[parcel.digest] = ray.put(parcel)
    get: Callable[..., Any] = ray.get
    return Payload(cell.sent(None), lines, kept, parcel.name, parcel.digest, partial(get, parcels[parcel.digest]))


def _take(message: Message, task: _Task, records: Records, display: Display) -> None:
    """Record and show what a worker has sent."""
    what, value = message
    if what == BEGUN:
        display.begin(task.cell)
    elif what == EPOCH:
        records.append(value)
        display.epoch(task.cell, value)
        task.deaths = 0
    elif what == KEPT:
        _keep(checkpoints(records.directory, task.cell), value)
    elif what == NOTE:
        display.note_of(task.cell, value)
    elif what == FAILED:
        raise value
    else:
        # The code that ran came from here, so that commit and version are those of this machine.
        ours = circumstances()
        value = {**value, "commit": ours["commit"]}
        value["versions"] = {**value["versions"], "bellnet": ours["versions"]["bellnet"]}
        records.append(value)
        display.end(task.cell, value)


def _keep(place: Path, files: dict[str, bytes]) -> None:
    """Write the checkpoints of a cell, the last one after the best one, as they were made."""
    try:
        place.mkdir(parents=True, exist_ok=True)
        write_files({place / name: files[name] for name in sorted(files)})
    except OSError as reason:
        raise not_written(place, reason) from reason


def _work(payload: Payload) -> Iterator[Message]:
    """Runs on a worker: a cell, and everything that the driver should know of it, as it happens."""
    yield BEGUN, None
    messages: SimpleQueue[Message] = SimpleQueue()
    Thread(target=_run, args=(payload, messages.put), daemon=True).start()
    while True:
        message = messages.get()
        yield message
        if message[0] in (DONE, FAILED):
            return


def _run(payload: Payload, send: Callable[[Message], None]) -> None:
    torch.set_num_threads(1)  # which counts for the thread that says so
    cell = payload.cell
    try:
        if payload.fetch is not None:
            cell = cell.sent(data.tu.receive(payload.name, payload.digest, payload.fetch))
        with TemporaryDirectory(prefix="bellnet-") as directory:
            records = Records(Path(directory))
            place = checkpoints(records.directory, cell)
            for line in payload.lines:
                records.append(line)
            _keep(place, payload.kept)
            sent = time.monotonic()

            def report(cell: Runnable, epoch: dict[str, Any]) -> None:
                nonlocal sent
                send((EPOCH, epoch))
                if time.monotonic() - sent >= KEEP_EVERY:
                    sent = time.monotonic()
                    send((KEPT, _read(place)))

            done = run_cell(cell, records.directory, report, note=lambda cell, words: send((NOTE, words)))
            send((KEPT, _read(place)))
            send((DONE, done))
    except Exception as reason:
        send((FAILED, reason))


def _read(place: Path) -> dict[str, bytes]:
    """The checkpoints of a cell that there are."""
    return {path.name: path.read_bytes() for path in sorted(place.glob("*.ckpt"))}


def _first_line(reason: BaseException) -> str:
    return next(iter(str(reason).strip().splitlines()), type(reason).__name__)


def _last_line(reason: BaseException) -> str:
    return next(reversed(str(reason).strip().splitlines()), type(reason).__name__)
