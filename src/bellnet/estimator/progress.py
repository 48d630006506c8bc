"""Training, shown on the terminal: a bar, the losses so far, the time left. Gone when training is over."""

from types import TracebackType
from typing import Any


class Bar:
    """A bar of epochs; a context manager. In a file or a pipe, where nobody watches, nothing is shown.

    Args:
        title: What is being done.
        epochs: How many epochs there are at most.
        show: Whether to show anything at all.
    """

    def __init__(self, title: str, epochs: int, *, show: bool) -> None:
        self.title, self.epochs, self.show = title, epochs, show
        self.progress: Any = None

    def __enter__(self) -> "Bar":
        if self.show:
            from rich.console import Console
            from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

            console = Console(stderr=True)
            if console.is_terminal or console.is_jupyter:
                self.progress = Progress(
                    TextColumn("{task.description}"),
                    BarColumn(bar_width=24),
                    MofNCompleteColumn(),
                    TextColumn("{task.fields[said]}"),
                    TimeRemainingColumn(),
                    console=console,
                    transient=True,
                )
                self.progress.start()
                self.task = self.progress.add_task(self.title, total=self.epochs, said="")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self.progress is not None:
            self.progress.stop()

    def batch(self, epoch: int, share: float) -> None:
        """A batch is over; `share` is how much of the epoch is."""
        if self.progress is not None:
            self.progress.update(self.task, completed=epoch + share)

    def epoch(self, record: dict[str, Any]) -> None:
        """An epoch is over."""
        if self.progress is not None:
            said = f"loss {record['loss']:.3f}"
            if record["validation_loss"] is not None:
                said += f", held out {record['validation_loss']:.3f}"
            self.progress.update(self.task, completed=record["epoch"] + 1, said=said)
