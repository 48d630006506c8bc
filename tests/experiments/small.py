"""Cells that run in a second."""

from dataclasses import replace

import torch

from experiments.matrix_cell import MatrixCell

SMALL = MatrixCell(
    table="table1",
    task="diagonal",
    layers=1,
    method="bellnet",
    n=4,
    train=60,
    validation=20,
    test=20,
    sizes=(4,),
    channels=2,
    epochs=3,
    batch_size=10,
)


def small(**changes):
    """A small cell with some fields changed."""
    return replace(SMALL, **changes)


def finished(cell, error, *, validation=1.0, errors=None, curves=None):
    """A final record of a cell, as if it had been run."""
    return {
        "key": cell.key,
        "config": cell.to_json(),
        "errors": errors or {str(cell.n): error},
        "validation": validation,
        "best_epoch": 0,
        "parameters": 1,
        "seconds": 1.0,
        "curves": curves or {},
        "versions": {"torch": "2"},
        "commit": None,
        "machine": {"cores": 1},
    }


def epochs_done(directory, cell):
    """The number of epochs in the checkpoint of a cell."""
    path = directory / "checkpoints" / f"{cell.key}.ckpt"
    return len(torch.load(path, weights_only=True)["experiments"]["epochs"]) if path.exists() else 0


def timeless(record):
    """A record without the times in it."""
    curves = {name: values for name, values in record["curves"].items() if name != "seconds"}
    return {name: value for name, value in {**record, "curves": curves}.items() if not name.endswith("seconds")}
