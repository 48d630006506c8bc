"""A cell, run: trained with Lightning from its last checkpoint on, tested once at the end, recorded as it goes."""

import logging
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch

from bellnet import data
from bellnet.experiments.config import Cell
from bellnet.experiments.machine import circumstances
from bellnet.experiments.nets import CellNet, examples, mean_error, unseen
from bellnet.experiments.records import EPOCH, FINISHED, Records

Report = Callable[[Cell, dict[str, Any]], None]


def checkpoints(directory: Path, cell: Cell) -> Path:
    """Where the checkpoints of a cell are: `last.ckpt` and `best.ckpt`."""
    return directory / "checkpoints" / cell.key


def run_cell(cell: Cell, directory: Path, report: Report | None = None) -> dict[str, Any]:
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
    if cell.method == "trivial":
        result = _trivial(cell)
    else:
        with _quiet():
            result = _learned(cell, records, report or (lambda cell, epoch: None))
    final = {"kind": FINISHED, "key": cell.key, "config": cell.to_json(), **result, **circumstances()}
    records.append(final)
    return final


def _trivial(cell: Cell) -> dict[str, Any]:
    errors = {}
    for n in cell.sizes:
        seen = data.synthetic.make(cell.task, cell.train, n, seed=2 * cell.seed)[1]
        errors[str(n)] = data.synthetic.trivial_error(cell.task, seen, unseen(cell, n)[1])
    return {"errors": errors, "validation": None, "best_epoch": None, "parameters": 0, "seconds": 0.0}


def _learned(cell: Cell, records: Records, report: Report) -> dict[str, Any]:
    from lightning.pytorch import Trainer
    from lightning.pytorch.callbacks import ModelCheckpoint

    from bellnet.experiments.module import CellModule, Epochs, loaders

    def record(epoch: dict[str, Any]) -> None:
        line = {"kind": EPOCH, "key": cell.key, **epoch}
        records.append(line)
        report(cell, line)

    place = checkpoints(records.directory, cell)
    torch.manual_seed(cell.seed)
    module = CellModule(cell)
    keep = ModelCheckpoint(
        place,
        "best",
        monitor="validation",
        save_last=True,
        save_on_train_epoch_end=True,
        enable_version_counter=False,
    )
    trainer = Trainer(
        accelerator="cpu",
        devices=1,
        max_epochs=cell.epochs,
        num_sanity_val_steps=0,
        callbacks=[Epochs(record), keep],
        logger=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        default_root_dir=records.directory,
    )
    last = place / "last.ckpt"
    epoch = torch.load(last, weights_only=True)["epoch"] + 1 if last.exists() else 0
    train, validation = loaders(cell, *examples(cell), epoch=epoch)
    trainer.fit(module, train, validation, ckpt_path=last if last.exists() else None)

    best = torch.load(place / "best.ckpt", weights_only=True)
    module.load_state_dict(best["state_dict"])
    module.eval()
    net = module.net
    epochs = records.epochs()[cell.key]
    errors = {str(n): mean_error(cell, net, *unseen(cell, n)) for n in cell.sizes}
    return {
        "errors": errors,
        "validation": min(epoch["validation"] for epoch in epochs),
        "best_epoch": best["epoch"],
        "parameters": sum(weight.numel() for weight in net.parameters()),
        "seconds": round(sum(epoch["seconds"] for epoch in epochs), 3),
        "said": _said_of_first(cell, net),
    }


@torch.no_grad()
def _said_of_first(cell: Cell, net: CellNet) -> Any:
    """What the network says of the first test matrix, in four digits: enough for a picture, small enough to keep."""
    return _four_digits(net(unseen(cell, cell.n)[0][:1])[0].squeeze(-1).tolist())


def _four_digits(values: Any) -> Any:
    return [_four_digits(value) for value in values] if isinstance(values, list) else float(f"{values:.4g}")


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
