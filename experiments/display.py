"""The progress of running cells on the terminal: a bar for each, its error or accuracy so far, the time left."""

from collections.abc import Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any

from experiments.cell import Cell

if TYPE_CHECKING:
    from rich.progress import TaskID


class Display:
    """Progress of a list of cells; a context manager.

    Args:
        cells: What will run.
        done: How many more were finished before.
        show: Whether to show progress; notes are shown in any case.
    """

    def __init__(self, cells: Sequence[Cell], *, done: int = 0, show: bool = True) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

        columns = (
            TextColumn("{task.description}"),
            BarColumn(bar_width=24),
            MofNCompleteColumn(),
            TextColumn("{task.fields[said]}"),
            TimeRemainingColumn(),
        )
        self.progress = Progress(*columns, console=Console(stderr=True), disable=not (show and cells))
        self.total = self.progress.add_task("cells", total=len(cells) + done, completed=done, said="")
        self.bars: dict[Cell, TaskID] = {}

    def __enter__(self) -> "Display":
        self.progress.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.progress.stop()

    def begin(self, cell: Cell) -> None:
        """Add the bar of a cell that begins, or goes on, perhaps where another process has left it."""
        if cell not in self.bars:
            self.bars[cell] = self.progress.add_task(cell.title, total=cell.epochs, said="")

    def epoch(self, cell: Cell, record: dict[str, Any]) -> None:
        """Advance the bar of a cell by an epoch."""
        self.progress.update(self.bars[cell], completed=record["epoch"] + 1, said=cell.describe(record))

    def note(self, words: str) -> None:
        """Print a warning to standard error, also where no progress is shown."""
        self.progress.console.print(words, markup=False, highlight=False, soft_wrap=True)

    def note_of(self, cell: Cell, words: str) -> None:
        """Print a warning about a cell."""
        self.note(f"{cell.title}: {words}")

    def end(self, cell: Cell, record: dict[str, Any]) -> None:
        """Replace the bar of a finished cell by a line."""
        self.progress.remove_task(self.bars.pop(cell))
        if not self.progress.disable:
            said = (cell.describe(record), f"{record['seconds']:.0f} s")
            self.progress.console.print(f"{cell.title}: {', '.join(filter(None, said))}")
        self.progress.advance(self.total)
