"""What is running, shown on the terminal: a bar for each running cell, the error so far, the time left."""

from collections.abc import Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any

from bellnet.experiments.config import Cell

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID


class Display:
    """Progress of a list of cells; a context manager.

    Args:
        cells: What will run.
        done: How many more were finished before.
        show: Whether to show anything at all.
    """

    def __init__(self, cells: Sequence[Cell], *, done: int = 0, show: bool = True) -> None:
        self.cells, self.done = cells, done
        self.progress: Progress | None = None
        self.bars: dict[Cell, TaskID] = {}
        if show and cells:
            from rich import progress
            from rich.console import Console
            from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn

            self.progress = progress.Progress(
                TextColumn("{task.description}"),
                BarColumn(bar_width=24),
                MofNCompleteColumn(),
                TextColumn("{task.fields[error]}"),
                TimeRemainingColumn(),
                console=Console(stderr=True),
            )

    def __enter__(self) -> "Display":
        if self.progress is not None:
            self.progress.start()
            self.total = self.progress.add_task(
                "cells", total=len(self.cells) + self.done, completed=self.done, error=""
            )
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self.progress is not None:
            self.progress.stop()

    def begin(self, cell: Cell) -> None:
        """A cell begins, or goes on."""
        if self.progress is not None:
            self.bars[cell] = self.progress.add_task(cell.title, total=cell.epochs, error="")

    def epoch(self, cell: Cell, record: dict[str, Any]) -> None:
        """An epoch of a cell is over."""
        if self.progress is not None:
            said = f"error {record['validation']:.2g}"
            self.progress.update(self.bars[cell], completed=record["epoch"] + 1, error=said)

    def end(self, cell: Cell, record: dict[str, Any]) -> None:
        """A cell is finished: its bar goes, a line stays."""
        if self.progress is not None:
            self.progress.remove_task(self.bars.pop(cell))
            error = next(iter(record["errors"].values())) if len(record["errors"]) == 1 else record["validation"]
            said = "" if error is None else f"error {error:.3g}, "
            self.progress.console.print(f"{cell.title}: {said}{record['seconds']:.0f} s")
            self.progress.advance(self.total)
