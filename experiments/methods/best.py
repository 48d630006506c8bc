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
LATER: dict[str, Any] = {"node_channels": "diagonal", "degree_knots": 0, "networks": 1}
"""Arguments that came after records were written, and what was done before: with that value they are no options."""
ALONE = ("NCI1", "NCI109", "COLLAB")
"""Data sets of which networks="auto" learns one network alone, as it was before there could be several: their options
do not say how many there are."""
MEANT = {"norm": "batch"}
"""Arguments that became "auto" after records were written, and what that stands for here: options say that."""


class Best(Method):
    """One recipe for all data sets: what a user gets."""

    title = "best"
    unsaid = LATER
    packages = ("sklearn", "safetensors")
    epochs_option = "max_epochs"
    most_epochs = 60
    rate_option = "learning_rate"

    def usual(self) -> dict[str, Any]:
        """The default arguments."""
        from bellnet.estimator import GraphClassifier

        found = GraphClassifier().get_params(deep=False)
        found |= {name: meant for name, meant in MEANT.items() if found[name] == "auto"}
        later = {name for name, before in LATER.items() if found[name] == before}
        return {name: value for name, value in found.items() if name not in {*OURS, *later}}

    def usual_of(self, name: str) -> dict[str, Any]:
        """The default arguments, and for data sets that have one network in any case those from before."""
        return {option: value for option, value in self.usual().items() if option != "networks" or name not in ALONE}

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
            "validation": model.history_[model.kept_epoch_]["validation_accuracy"],
            "best_epoch": model.kept_epoch_,
            "parameters": sum(weight.numel() for weight in model.net_.parameters()),
            "seconds": round(time.process_time() - began - looking, 3),
        }
