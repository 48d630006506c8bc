"""A cell, run: trained with Lightning from its last checkpoint on, tested once at the end, recorded as it goes."""

import logging
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from bellnet import keep_freed_memory
from bellnet.errors import DataError
from experiments.cell import Record, Runnable
from experiments.machine import circumstances
from experiments.records import EPOCH, FINISHED, Records, is_number, listed
from experiments.workers import Worker, this_worker

if TYPE_CHECKING:
    from lightning.pytorch import Trainer
    from lightning.pytorch.callbacks import ModelCheckpoint

    from experiments.learner import Learner

Report = Callable[[Runnable, dict[str, Any]], None]
Note = Callable[[Runnable, str], None]


def checkpoints(directory: Path, cell: Runnable) -> Path:
    """Where the checkpoints of a cell are: `last.ckpt` and `best.ckpt`."""
    return directory / "checkpoints" / cell.key


def run_cell(
    cell: Runnable, directory: Path, report: Report | None = None, *, note: Note | None = None
) -> dict[str, Any]:
    """Run a cell unless it is finished, and return its final record."""
    records = Records(directory)
    done = records.finished().get(cell.key)
    if done is not None:
        return done

    def record(epoch: dict[str, Any]) -> None:
        line = {"kind": EPOCH, "key": cell.key, **epoch}
        records.append(line)
        if report is not None:
            report(cell, line)

    keep_freed_memory()
    result = cell.compute(record)
    if result is None:
        with _quiet():
            result = _learned(cell, records, record, note or (lambda cell, words: None))
    final = {"kind": FINISHED, "key": cell.key, "config": cell.to_json(), **result, **circumstances()}
    records.append(final)
    return final


def follow(worker: Worker) -> None:
    """Train with the first worker the cells that it broadcasts, until it broadcasts none."""
    while True:
        try:
            named = worker.broadcast()
        except RuntimeError:
            raise SystemExit(1) from None  # the first process is gone, and has said why
        if named is None:
            return
        cell, place = named
        with _quiet():
            torch.manual_seed(cell.seed)
            learner = cell.learner()
            trainer, _ = _trainer(cell, learner, place, lambda epoch: None)
            _fit(trainer, learner, *worker.broadcast())


def _learned(cell: Runnable, records: Records, record: Record, note: Note) -> dict[str, Any]:
    from experiments.checkpoints import find_start

    place = checkpoints(records.directory, cell)
    torch.manual_seed(cell.seed)
    learner = cell.learner()
    worker = this_worker()
    worker.broadcast((cell, place))  # not before here: what cannot be learned is said once, by this process
    trainer, best = _trainer(cell, learner, place, record)
    start = find_start(place, learner, best, _recorded(cell, records, learner))
    if start.wrong:
        note(cell, start.said())
    _fit(trainer, learner, *worker.broadcast((start.path, start.epoch)))

    counts = torch.load(place / ("last.ckpt" if best is None else "best.ckpt"), weights_only=True)
    learner.load_state_dict(counts["state_dict"])
    learner.eval()
    recorded = _recorded(cell, records, learner)
    lost = [number for number in range(cell.epochs) if number not in recorded]
    if lost:
        raise DataError(
            f"{cell.title}: {records.path} has lost its epoch{'s' * (len(lost) > 1)} {listed(lost)} while it ran.\n"
            "Leave that file alone and run the same command again: the cell starts again."
        )
    epochs = list(recorded.values())
    return {
        **learner.result(epochs),
        "best_epoch": None if best is None else counts["epoch"],
        "parameters": sum(weight.numel() for weight in learner.net.parameters()),
        "seconds": round(sum(epoch["seconds"] for epoch in epochs), 3),
    }


def _trainer(
    cell: Runnable, learner: "Learner", place: Path, record: Record
) -> "tuple[Trainer, ModelCheckpoint | None]":
    """What trains a cell, and what keeps its best epoch, if that counts."""
    from lightning.pytorch import Trainer
    from lightning.pytorch.callbacks import ModelCheckpoint

    from experiments.checkpoints import AtomicCheckpoints
    from experiments.learner import Epochs

    best = None
    if learner.monitor is not None:
        name, mode = learner.monitor
        best = ModelCheckpoint(
            place, "best", monitor=name, mode=mode, enable_version_counter=False, save_on_train_epoch_end=True
        )
    # Each epoch is kept in last.ckpt. Lightning's save_last would do so only where an epoch is also the best one.
    last = ModelCheckpoint(place, "last", enable_version_counter=False, save_on_train_epoch_end=True)
    trainer = Trainer(
        **this_worker().trainer_options(),
        max_epochs=cell.epochs,
        num_sanity_val_steps=0,
        # The last one comes after the best one, since it also stores what that one knows.
        callbacks=[Epochs(record), *([] if best is None else [best]), last],
        plugins=[AtomicCheckpoints()],
        logger=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        default_root_dir=place.parent.parent,
    )
    return trainer, best


def _fit(trainer: "Trainer", learner: "Learner", path: Path | None, epoch: int) -> None:
    """Train, from the checkpoint of the epoch before or from the beginning."""
    train, checked = learner.loaders(epoch=epoch)
    keep_freed_memory()
    trainer.fit(learner, train, checked, ckpt_path=path)


def _recorded(cell: Runnable, records: Records, learner: "Learner") -> dict[int, dict[str, Any]]:
    """The epochs of a cell that have been recorded with the figures that its result is made of."""
    needed = ["seconds"] if learner.monitor is None else ["seconds", learner.monitor[0]]
    return {
        epoch["epoch"]: epoch
        for epoch in records.epochs().get(cell.key, ())
        if all(is_number(epoch.get(name)) for name in needed)
    }


@contextmanager
def _quiet() -> Iterator[None]:
    """Lightning's remarks on hardware, loaders and its own services are not about the experiment."""
    import lightning.pytorch  # noqa: F401  (it chooses its own loudness when it is imported)

    loud = [logging.getLogger(name) for name in ("lightning.pytorch", "lightning.fabric", "lightning")]
    before = [logger.level for logger in loud]
    for logger in loud:
        logger.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        for logger, level in zip(loud, before, strict=True):
            logger.setLevel(level)
