"""The library's own classifier, `bellnet.estimator.GraphClassifier`, with its default arguments.

It selects the epoch on a validation set of its own. Its options are all of its arguments, so that records of earlier
defaults are never mixed with later ones.
"""

import time
from typing import Any

from experiments.cell import Record
from experiments.methods.base import Method, Options, Task

NOT_OPTIONS = ("random_state", "verbose")
"""Arguments that come from the cell, or that do not change what is trained."""


class Classifier(Method):
    """One recipe for all data sets."""

    title = "GraphClassifier"
    packages = ("sklearn", "safetensors")
    epochs_option = "max_epochs"
    auto_epochs = 60

    def usual(self, name: str, options: Options | None = None) -> dict[str, Any]:
        from bellnet.estimator import GraphClassifier

        arguments = GraphClassifier().get_params(deep=False)
        return {name: value for name, value in arguments.items() if name not in NOT_OPTIONS}

    def run(self, task: Task, options: Options, record: Record) -> dict[str, Any]:
        """Fit the training graphs; the test graphs are classified after every epoch, for the record alone."""
        from bellnet.estimator import GraphClassifier

        graphs, labels = task.graphs.graphs, task.graphs.labels.numpy()
        known = sorted([*task.parts.train, *task.parts.validation])
        train, test = ([graphs[index] for index in indices] for indices in (known, task.parts.test))
        classes = labels[list(task.parts.test)]
        began = last = time.process_time()
        evaluating = 0.0

        def after_epoch(model: Any, epoch: dict[str, Any]) -> None:
            nonlocal last, evaluating
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
            evaluating += last - now

        model = GraphClassifier(**options, random_state=task.seed, verbose=False)
        model.fit(train, labels[known], callback=after_epoch)
        return {
            "accuracy": float(model.score(test, classes)),
            "validation": model.history_[model.best_epoch_]["validation_accuracy"],
            "best_epoch": model.best_epoch_,
            "parameters": sum(weight.numel() for weight in model.ensemble_.parameters()),
            "seconds": round(time.process_time() - began - evaluating, 3),
        }


bellnet = Classifier()
