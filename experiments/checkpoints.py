"""The checkpoints of a cell: each is whole or not there, and those that are sound say where the cell goes on.

This file needs lightning, which takes seconds to import; `train` imports it when a cell runs.
"""

import io
import os
import zipfile
from collections.abc import Container
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from lightning.pytorch import LightningModule
from lightning.pytorch.callbacks import ModelCheckpoint
from lightning.pytorch.plugins.io import TorchCheckpointIO

from bellnet._utils.files import write_files
from experiments.records import NAME as RECORDS
from experiments.records import listed, not_written
from experiments.workers import this_worker

Checkpoint = dict[str, Any]
PARTS = {"epoch", "state_dict", "optimizer_states", "lr_schedulers", "loops", "callbacks"}
"""What Lightning needs of a checkpoint to go on as if it had not stopped."""
PATHS = ("best_model_path", "kth_best_model_path", "last_model_path")
"""What a `ModelCheckpoint` knows of its files, besides their directory and their scores."""


class AtomicCheckpoints(TorchCheckpointIO):
    """How Lightning writes and reads the checkpoints of cells.

    Its own way is to write elsewhere and to move, which from one file system to another is to copy: whatever happens
    then leaves half a file. And it forgets which epoch was the best one where a directory has another name than before.
    """

    def save_checkpoint(self, checkpoint: Checkpoint, path: str | Path, storage_options: Any = None) -> None:
        """Replace a checkpoint by another; if that fails, the old one stays."""
        content = io.BytesIO()
        torch.save(checkpoint, content)
        try:
            Path(path).parent.mkdir(parents=True, exist_ok=True)
            write_files({Path(path): content.getvalue()})
        except OSError as reason:
            raise not_written(Path(path), reason) from reason

    def load_checkpoint(self, path: str | Path, *how: Any, **options: Any) -> Checkpoint:
        """A checkpoint, with the paths of where it is now. Of several workers only the first need have the file."""
        worker = this_worker()
        checkpoint: Checkpoint = worker.broadcast(
            super().load_checkpoint(path, *how, **options) if worker.is_leader else None
        )
        here = Path(os.path.realpath(path)).parent
        for state in checkpoint["callbacks"].values():
            if "dirpath" in state:
                state["dirpath"] = str(here)
                state.update({name: str(here / Path(state[name]).name) for name in PATHS if state.get(name)})
                scores = state["best_k_models"]
                state["best_k_models"] = {str(here / Path(name).name): score for name, score in scores.items()}
        return checkpoint


@dataclass(frozen=True)
class Start:
    """Where a cell begins.

    Attributes:
        path: The checkpoint from which it goes on; None if it begins from the beginning.
        epoch: Its first epoch.
        wrong: Why that is no later epoch, if anything was lost.
    """

    path: Path | None
    epoch: int
    wrong: tuple[str, ...] = ()

    def said(self) -> str:
        """What was lost and what follows, in words; nothing if nothing was."""
        if not self.wrong:
            return ""
        where = f"goes on after epoch {self.epoch}" if self.epoch else "starts again from the beginning"
        return f"{', '.join(dict.fromkeys(self.wrong))}; it {where}."


def find_start(place: Path, learner: LightningModule, best: ModelCheckpoint | None, recorded: Container[int]) -> Start:
    """The latest epoch after which a cell can go on and end with the figures it would have had.

    That takes a sound checkpoint, the records of all epochs before it and, where the best epoch counts, that one too.
    """
    wrong = []
    kept = {name: _read(place / f"{name}.ckpt", learner) for name in (["last"] if best is None else ["last", "best"])}
    reached = max((checkpoint["epoch"] for checkpoint in kept.values() if checkpoint is not None), default=-1)
    lacking = [epoch for epoch in range(reached + 1) if epoch not in recorded]
    for name, checkpoint in kept.items():
        path = place / f"{name}.ckpt"
        if checkpoint is None:
            if path.exists():
                wrong.append(f"{path} is cut off or damaged")
            continue
        lost = "" if best is None or name == "best" else _lost_best(checkpoint, kept["best"], place, best)
        if lost:
            wrong.append(lost)
        elif lacking and lacking[0] <= checkpoint["epoch"]:
            records = place.parent.parent / RECORDS
            wrong.append(f"{records} lacks its epoch{'s' * (len(lacking) > 1)} {listed(lacking)}")
        else:
            return Start(path, checkpoint["epoch"] + 1, tuple(wrong))
    return Start(None, 0, tuple(wrong))


def _lost_best(last: Checkpoint, kept: Checkpoint | None, place: Path, best: ModelCheckpoint) -> str:
    """What has become of the best epoch that the last one knows of; nothing if it is there."""
    path = place / "best.ckpt"
    if kept is None:
        return f"{path} is {'cut off or damaged' if path.exists() else 'missing'}"
    # A best epoch is kept before the same epoch as the last one, and may be all that was kept of it.
    if kept["epoch"] == last["epoch"] + 1:
        return ""
    scores = [checkpoint["callbacks"].get(best.state_key, {}).get("best_model_score") for checkpoint in (last, kept)]
    if all(isinstance(score, torch.Tensor) for score in scores) and torch.equal(*scores):
        return ""
    return f"{path} is not the best epoch that last.ckpt knows of"


def _read(path: Path, learner: LightningModule) -> Checkpoint | None:
    """A checkpoint of a learner; None if there is none, or none that is sound."""
    try:
        content = path.read_bytes()
        with zipfile.ZipFile(io.BytesIO(content)) as members:
            if members.testzip() is not None:  # torch itself does not look at the check sums
                return None
        found = torch.load(io.BytesIO(content), weights_only=True)
        shapes = {name: value.shape for name, value in found["state_dict"].items()}
        is_sound = found.keys() >= PARTS and type(found["epoch"]) is int and found["epoch"] >= 0
    except Exception:  # there is no list of what a damaged file may do to those who read it
        return None
    return found if is_sound and shapes == {name: value.shape for name, value in learner.state_dict().items()} else None
