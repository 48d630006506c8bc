"""The library's own classifier, `bellnet.estimator.GraphClassifier`, with its default arguments.

It keeps graphs of the training part aside by itself, to choose the epoch. Its options are all of its arguments, so
records of earlier defaults are never mixed with later ones.
"""

import time
from typing import Any

from experiments.cell import Record
from experiments.methods.base import Method, Options, Task

OURS = ("random_state", "verbose")
"""Arguments that come from the cell, or that say nothing about what is learned."""


class Classifier(Method):
    """One recipe for all data sets: what a user gets."""

    title = "GraphClassifier"
    packages = ("sklearn", "safetensors")
    epochs_option = "max_epochs"
    most_epochs = 60
    rate_option = "learning_rate"

    def usual(self) -> dict[str, Any]:
        """The default arguments."""
        from bellnet.estimator import GraphClassifier

        found = GraphClassifier().get_params(deep=False)
        return {name: value for name, value in found.items() if name not in OURS}

    def run(self, task: Task, options: Options, record: Record) -> dict[str, Any]:
        """Fit the training graphs, and classify the test graphs after every epoch, for the record alone."""
        from bellnet.estimator import GraphClassifier

        graphs, labels = task.graphs.graphs, task.graphs.labels.numpy()
        known = sorted([*task.parts.train, *task.parts.validation])
        train, test = ([graphs[place] for place in places] for places in (known, task.parts.test))
        classes = labels[list(task.parts.test)]
        began = last = time.process_time()
        looking = 0.0

        def look(model: Any, epoch: dict[str, Any]) -> None:
            nonlocal last, looking
            now = time.process_time()
            record(
                {
                    **{name: epoch[name] for name in ("epoch", "loss", "validation_loss")},
                    "train": epoch["accuracy"],
                    "validation": epoch["validation_accuracy"],
                    "test": float(model.score(test, classes)),
                    "seconds": round(now - last, 3),
                }
            )
            last = time.process_time()
            looking += last - now

        model = GraphClassifier(**options, random_state=task.seed, verbose=False)
        model.fit(train, labels[known], callback=look)
        accuracy = float(model.score(test, classes))
        return {
            "accuracy": accuracy,
            "validation": model.history_[model.best_epoch_]["validation_accuracy"],
            "best_epoch": model.best_epoch_,
            "parameters": sum(weight.numel() for weight in model.ensemble_.parameters()),
            "seconds": round(time.process_time() - began - looking, 3),
        }
