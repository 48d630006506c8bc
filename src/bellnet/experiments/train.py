"""A cell, run: trained with Lightning from its last checkpoint on, tested once at the end, recorded as it goes."""

import logging
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch

from bellnet.experiments.cell import Runnable
from bellnet.experiments.machine import circumstances
from bellnet.experiments.records import EPOCH, FINISHED, Records

Report = Callable[[Runnable, dict[str, Any]], None]


def checkpoints(directory: Path, cell: Runnable) -> Path:
    """Where the checkpoints of a cell are: `last.ckpt` and `best.ckpt`."""
    return directory / "checkpoints" / cell.key


def run_cell(cell: Runnable, directory: Path, report: Report | None = None) -> dict[str, Any]:
    """Run a cell unless it is finished, and return its final record.

    Args:
        cell: What to run.
        directory: Where records and checkpoints go.
        report: Called after every epoch with its record.
    """
    records = Records(directory)
    done = records.finished().get(cell.key)
    if done is not None:
        return done
    result = cell.compute()
    if result is None:
        with _quiet():
            result = _learned(cell, records, report or (lambda cell, epoch: None))
    final = {"kind": FINISHED, "key": cell.key, "config": cell.to_json(), **result, **circumstances()}
    records.append(final)
    return final


def _learned(cell: Runnable, records: Records, report: Report) -> dict[str, Any]:
    from lightning.pytorch import Trainer
    from lightning.pytorch.callbacks import ModelCheckpoint

    from bellnet.experiments.learner import Epochs

    def record(epoch: dict[str, Any]) -> None:
        line = {"kind": EPOCH, "key": cell.key, **epoch}
        records.append(line)
        report(cell, line)

    place = checkpoints(records.directory, cell)
    torch.manual_seed(cell.seed)
    learner = cell.learner()
    # Each epoch is kept in last.ckpt. Lightning's save_last would do so only where an epoch is also the best one.
    keep = [ModelCheckpoint(place, "last", enable_version_counter=False, save_on_train_epoch_end=True)]
    if learner.monitor is not None:
        # Before the last one, which also stores what the best one knows.
        name, mode = learner.monitor
        best = ModelCheckpoint(
            place, "best", monitor=name, mode=mode, enable_version_counter=False, save_on_train_epoch_end=True
        )
        keep.insert(0, best)
    trainer = Trainer(
        accelerator="cpu",
        devices=1,
        max_epochs=cell.epochs,
        num_sanity_val_steps=0,
        callbacks=[Epochs(record), *keep],
        logger=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        default_root_dir=records.directory,
    )
    last = place / "last.ckpt"
    epoch = torch.load(last, weights_only=True)["epoch"] + 1 if last.exists() else 0
    train, checked = learner.loaders(epoch=epoch)
    trainer.fit(learner, train, checked, ckpt_path=last if last.exists() else None)

    counts = torch.load(place / ("last.ckpt" if learner.monitor is None else "best.ckpt"), weights_only=True)
    learner.load_state_dict(counts["state_dict"])
    learner.eval()
    epochs = records.epochs()[cell.key]
    return {
        **learner.result(epochs),
        "best_epoch": None if learner.monitor is None else counts["epoch"],
        "parameters": sum(weight.numel() for weight in learner.net.parameters()),
        "seconds": round(sum(epoch["seconds"] for epoch in epochs), 3),
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
