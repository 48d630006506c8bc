"""Training, shown on the terminal: a bar, the losses so far, the time left; when it is over, a line that stays."""

from types import TracebackType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from bellnet.estimator.base import GraphEstimator


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
            if (right := record.get("validation_accuracy")) is not None:
                said += f", right {right:.3f}"
            self.progress.update(self.task, completed=record["epoch"] + 1, said=said)


def told(model: "GraphEstimator", *, n_graphs: int, max_epochs: int, seconds: float) -> str:
    """What happened in a fit, in a line: how long it took, which epoch was kept and how good it was."""
    kept, name = model.history_[model.best_epoch_], model._measure_name
    classes = getattr(model, "classes_", None)
    what = "numbers" if classes is None else f"{len(classes)} classes"
    of = "" if model.target == "graph" else f" of {model.target}s"
    graphs = f"{n_graphs} graph{'s' if n_graphs > 1 else ''}"
    by = f" by {model.n_estimators_} networks" if model.n_estimators_ > 1 else ""
    epochs = f"{len(model.history_)} of {max_epochs} epochs"
    parts = [_figures(kept["loss"], kept[name], name)]
    if kept["validation_loss"] is not None:
        parts.append("held out " + _figures(kept["validation_loss"], kept[f"validation_{name}"], name))
    return (
        f"learned {what}{of} from {graphs}{by} in {seconds:.0f} s: {epochs}, kept number {model.best_epoch_} with "
        f"{', '.join(parts)}"
    )


def _figures(loss: float, score: float | None, name: str) -> str:
    return f"loss {loss:.3f}" + ("" if score is None else f" and {name} {score:.3f}")
