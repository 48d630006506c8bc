"""The search for the classifier's defaults: one recipe for all data sets, compared within training graphs alone.

A recipe is trained on four fifths of some training graphs of the first published split of each of a few data sets, and
measured on the last fifth; no test graph is used. Every training is a cell, recorded like those of the tables. First
come the recipes that differ from a baseline in one parameter, then those that the sampler of Optuna proposes.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from math import prod
from pathlib import Path
from statistics import fmean
from time import process_time
from typing import TYPE_CHECKING, Any

from bellnet import data as sets
from bellnet.errors import DataError
from experiments.cell import FromDataSet, Record
from experiments.machine import require
from experiments.on_ray import connected
from experiments.page import Table
from experiments.run import run_cells

if TYPE_CHECKING:
    from optuna import Study

SETS = {"MUTAG": 170, "PTC_MR": 309, "PROTEINS": 300, "IMDB-BINARY": 300, "NCI1": 500}
"""The data sets, and how many of the training graphs of the first split are used, drawn at random."""
EPOCHS = 40
TEST_SIZE = 0.2
"""The share of those graphs that a recipe is measured on."""
STORED = "study.jsonl"
CRITERION = "error"
"""What selects the epoch of a fit; trials with another criterion cannot be compared."""
SPACE: dict[str, tuple[Any, ...]] = {
    "jumping_knowledge": (False, True),
    "pool": ("mean max", "mean", "max", "mean sum"),
    "label_smoothing": (0.0, 0.1),
    "width": (48, 32, 64),
    "depth": (4, 3, 5),
    "size_feature": (True, False),
    "dropout": (0.1, 0.0, 0.3),
    "learning_rate": (0.004, 0.002, 0.008),
    "batch_size": (32, 64),
    "degree_bins": (0, 16, 32),
    "n_estimators": (1, 3),
}
"""The parameters and their values; the baseline has the first of each."""
BASELINE = {name: values[0] for name, values in SPACE.items()}
Recipe = Mapping[str, Any]


@dataclass(frozen=True, kw_only=True)
class SearchCell(FromDataSet):
    """One training of one recipe.

    Args:
        name: The data set.
        repeat: The number of the draw of graphs, and of those that are measured; also the seed of the fit.
        recipe: The values of the parameters of `SPACE`, in their order.
        graphs: How many training graphs are used.
        criterion: What selects the epoch of a fit: the classification "error" on its validation set. Records with the
            criterion "loss" are from earlier versions.
        epochs: The number of epochs.
        table: Always "search".
        data: The folder of the data set, as in `bellnet.data.tu.load`.
    """

    name: str
    repeat: int
    recipe: tuple[Any, ...]
    graphs: int
    criterion: str = CRITERION
    epochs: int = EPOCHS
    table: str = "search"
    data: Path | None = field(default=None, compare=False)
    seed: int = field(default=0, init=False, compare=False)
    is_learned = False  # the estimator trains itself, in `compute`

    def __post_init__(self) -> None:
        object.__setattr__(self, "seed", self.repeat)

    @property
    def key_parts(self) -> tuple[object, ...]:
        return self.table, self.name, self.repeat

    @property
    def title(self) -> str:
        return f"{self.name}, draw {self.repeat}, {changes(self.recipe)}"

    def compute(self, record: Record) -> dict[str, Any]:
        """Train and measure: the accuracy with the weights of the selected epoch, and with those of the last one."""
        import numpy as np
        from sklearn.model_selection import train_test_split

        from bellnet.estimator import GraphClassifier

        found = sets.tu.load(self.name, data=self.data)
        if found.splits is None:
            raise DataError(f"search needs the splits of {self.name}: splits/{self.name}.json.")
        indices = np.random.default_rng(self.repeat).permutation(found.splits[0][0])[: self.graphs]
        graphs, given = found.part(indices.tolist())
        assert given is not None
        labels = given.numpy()
        train, test = train_test_split(
            np.arange(len(graphs)), test_size=TEST_SIZE, stratify=labels, random_state=self.repeat
        )
        test_graphs, test_labels = [graphs[index] for index in test], labels[test]
        last: list[float] = []

        def after_epoch(model: GraphClassifier, epoch: Mapping[str, Any]) -> None:
            if epoch["epoch"] == self.epochs - 1:
                last.append(model.score(test_graphs, test_labels))

        model = GraphClassifier(
            **options(dict(zip(SPACE, self.recipe, strict=True))),
            max_epochs=self.epochs,
            patience=self.epochs,
            random_state=self.repeat,
            device="cpu",
            verbose=False,
        )
        start = process_time()
        model.fit([graphs[index] for index in train], labels[train], callback=after_epoch)
        return {
            "accuracy": model.score(test_graphs, test_labels),
            "last": last[0],
            "best_epoch": model.best_epoch_,
            "parameters": sum(weight.numel() for weight in model.ensemble_.parameters()),
            "seconds": round(process_time() - start, 1),
        }

    def describe(self, record: Mapping[str, Any]) -> str:
        return f"accuracy {100 * record['accuracy']:.1f} %"


def options(recipe: Recipe) -> dict[str, Any]:
    """A recipe as options of `GraphClassifier`."""
    found = dict(recipe)
    pool = tuple(found.pop("pool").split())
    found["channels"] = (found.pop("width"),) * found.pop("depth")
    return {**found, "pool": pool if len(pool) > 1 else pool[0], "norm": "batch", "residual": True, "layout": "sparse"}


def changes(values: Sequence[Any]) -> str:
    """How a recipe differs from the baseline."""
    named = zip(SPACE, values, strict=True)
    return ", ".join(f"{name} {value}" for name, value in named if value != BASELINE[name]) or "baseline"


def one_change_each(parameters: Sequence[str] = tuple(SPACE)) -> list[Recipe]:
    """The baseline, and all recipes that differ from it in one parameter: first the second values, then the third."""
    most = max(map(len, SPACE.values()))
    found = [(name, SPACE[name][at]) for at in range(1, most) for name in parameters if at < len(SPACE[name])]
    return [BASELINE, *(BASELINE | {name: value} for name, value in found)]


@dataclass(frozen=True, kw_only=True)
class SearchPlan:
    """What is compared.

    Args:
        trials: The total number of recipes; None for all that change one parameter.
        repeats: The number of draws of graphs on which each recipe is measured.
        names: Some of `SETS`.
        parameters: Some of `SPACE`; the others have the values of the baseline.
        data: The folder of the data sets.
    """

    trials: int | None = None
    repeats: int = 1
    names: tuple[str, ...] = tuple(SETS)
    parameters: tuple[str, ...] = tuple(SPACE)
    data: Path | None = None

    @property
    def title(self) -> str:
        """The name of the study, whose trials can be compared with each other."""
        parameters = [name for name in SPACE if name in self.parameters]
        varied = "" if parameters == list(SPACE) else f", {' '.join(parameters)}"
        return f"{' '.join(self.names)}, {self.repeats} draw{'s' * (self.repeats > 1)}{varied}, selected by {CRITERION}"

    @property
    def n_recipes(self) -> int:
        """The number of recipes to compare."""
        wanted = len(one_change_each(self.parameters)) if self.trials is None else self.trials
        return min(wanted, prod(len(SPACE[name]) for name in set(self.parameters)))

    def cells(self, recipe: Recipe) -> list[SearchCell]:
        """All trainings of a recipe."""
        values = tuple(recipe.values())
        return [
            SearchCell(name=name, repeat=repeat, recipe=values, graphs=SETS[name], data=self.data)
            for name in self.names
            for repeat in range(self.repeats)
        ]


def run_search(
    directory: Path, plan: SearchPlan, *, jobs: int | None = None, ray: str | None = None, show: bool = True
) -> "Study":
    """Run a study from where it was stopped until it has all of its trials."""
    require("optuna", extra="search", call="search")
    import optuna
    from optuna.distributions import CategoricalDistribution
    from optuna.storages.journal import JournalFileBackend

    optuna.logging.set_verbosity(optuna.logging.WARNING)
    directory.mkdir(parents=True, exist_ok=True)
    study = optuna.create_study(
        storage=optuna.storages.JournalStorage(JournalFileBackend(str(directory / STORED))),
        sampler=optuna.samplers.TPESampler(seed=0),
        study_name=plan.title,
        direction="maximize",
        load_if_exists=True,
    )
    space: Any = {
        name: CategoricalDistribution(values if name in plan.parameters else values[:1])
        for name, values in SPACE.items()
    }
    with nullcontext() if ray is None else connected(ray):  # once for all trials
        while (
            len(done := _distinct(trial.params for trial in study.trials if trial.value is not None)) < plan.n_recipes
        ):
            proposed = [trial.params for trial in study.trials if trial.value is None]
            waiting = (recipe for recipe in [*one_change_each(plan.parameters), *proposed] if recipe not in done)
            # A proposal is stored before it is computed, and computed the next time if this is stopped.
            recipe = next(waiting, None) or study.ask(space).params
            found = run_cells(plan.cells(recipe), directory, jobs=jobs, ray=ray, show=show)
            means = {name: _mean(found, name, "accuracy") for name in plan.names}
            study.add_trial(
                optuna.create_trial(
                    params=dict(recipe), distributions=space, user_attrs=means, value=fmean(means.values())
                )
            )
    return study


def _distinct(recipes: Iterable[Recipe]) -> list[Recipe]:
    found: list[Recipe] = []
    for recipe in recipes:
        if recipe not in found:
            found.append(recipe)
    return found


def _mean(records: Sequence[Mapping[str, Any]], name: str, figure: str) -> float:
    return fmean(record[figure] for record in records if record["config"]["name"] == name)


def search_table(records: Sequence[Mapping[str, Any]]) -> Table:
    """All recipes that were measured on all data sets, the best first."""
    criteria = {record["config"]["criterion"] for record in records}
    groups: dict[str, list[Mapping[str, Any]]] = {}
    for record in records:
        suffix = f", selected by {record['config']['criterion']}" if len(criteria) > 1 else ""
        groups.setdefault(changes(record["config"]["recipe"]) + suffix, []).append(record)
    names = [name for name in SETS if any(record["config"]["name"] == name for record in records)]
    rows = []
    for title, found in groups.items():
        counts = Counter(record["config"]["name"] for record in found)
        if set(counts) == set(names):
            means = {
                figure: [_mean(found, name, figure) for name in names] for figure in ("accuracy", "last", "seconds")
            }
            shown = [
                f"{100 * mean:.1f}" + f" ({counts[name]})" * (counts[name] > 1)
                for name, mean in zip(names, means["accuracy"], strict=True)
            ]
            row = (
                title,
                *shown,
                f"{100 * fmean(means['accuracy']):.1f}",
                f"{100 * fmean(means['last']):.1f}",
                f"{sum(means['seconds']):.0f}",
            )
            rows.append((fmean(means["accuracy"]), row))
    head = ("recipe", *names, "mean", "mean of last epochs", "processor time, s")
    return Table("Recipes", head, tuple(row for _, row in sorted(rows, reverse=True)))
