"""What is running, shown on the terminal: a bar for each running cell, how good it is so far, the time left."""

import sys
from collections.abc import Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any

from experiments.cell import Runnable

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID


class Display:
    """Progress of a list of cells; a context manager.

    Args:
        cells: What will run.
        done: How many more were finished before.
        show: Whether to show anything at all.
    """

    def __init__(self, cells: Sequence[Runnable], *, done: int = 0, show: bool = True) -> None:
        self.cells, self.done = cells, done
        self.progress: Progress | None = None
        self.bars: dict[Runnable, TaskID] = {}
        if show and cells:
            from rich import progress
            from rich.console import Console
            from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn

            self.progress = progress.Progress(
                TextColumn("{task.description}"),
                BarColumn(bar_width=24),
                MofNCompleteColumn(),
                TextColumn("{task.fields[said]}"),
                TimeRemainingColumn(),
                console=Console(stderr=True),
            )

    def __enter__(self) -> "Display":
        if self.progress is not None:
            self.progress.start()
            self.total = self.progress.add_task(
                "cells", total=len(self.cells) + self.done, completed=self.done, said=""
            )
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self.progress is not None:
            self.progress.stop()

    def begin(self, cell: Runnable) -> None:
        """A cell begins, or goes on, perhaps where another process has left it."""
        if self.progress is not None and cell not in self.bars:
            self.bars[cell] = self.progress.add_task(cell.title, total=cell.epochs, said="")

    def epoch(self, cell: Runnable, record: dict[str, Any]) -> None:
        """An epoch of a cell is over."""
        if self.progress is not None:
            self.progress.update(self.bars[cell], completed=record["epoch"] + 1, said=cell.say(record))

    def note(self, words: str) -> None:
        """Something that everybody should know, also where no progress is shown."""
        if self.progress is not None:
            self.progress.console.print(words, markup=False, highlight=False, soft_wrap=True)
        else:
            print(words, file=sys.stderr)

    def note_of(self, cell: Runnable, words: str) -> None:
        """Such a thing about a cell."""
        self.note(f"{cell.title}: {words}")

    def end(self, cell: Runnable, record: dict[str, Any]) -> None:
        """A cell is finished: its bar goes, a line stays."""
        if self.progress is not None:
            self.progress.remove_task(self.bars.pop(cell))
            said = (cell.say(record), f"{record['seconds']:.0f} s")
            self.progress.console.print(f"{cell.title}: {', '.join(filter(None, said))}")
            self.progress.advance(self.total)
