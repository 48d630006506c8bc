"""The search for the classifier's defaults: one recipe for all data sets, compared inside training graphs alone.

A recipe is trained on four fifths of some training graphs of the first published split of each of a few data sets, and
measured on the last fifth; no test graph is looked at. Every training is a cell, recorded like those of the tables.
Optuna keeps the study: first come the recipes that differ from a beginning in one answer to one question, then those
that its sampler proposes.
"""

from collections.abc import Mapping, Sequence
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
from experiments.run import run_cells

if TYPE_CHECKING:
    from optuna import Study
    from optuna.trial import FrozenTrial

SETS = {"MUTAG": 170, "PTC_MR": 309, "PROTEINS": 300, "IMDB-BINARY": 300, "NCI1": 500}
"""The data sets, and how many of the training graphs of the first split are used, drawn at random."""
EPOCHS = 40
MEASURED = 0.2
"""The share of those graphs that a recipe is measured on."""
STORED = "study.jsonl"
JUDGED = "misses"
"""What chooses the epoch that a fit keeps; trials of which something else chose cannot be compared."""
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
"""The open questions, and for each its answers; the search begins with the first of each."""


@dataclass(frozen=True, kw_only=True)
class SearchCell(FromDataSet):
    """One training of one recipe.

    Args:
        name: The data set.
        repeat: Which draw of graphs, and of those that are measured on; also the seed of the fit.
        recipe: The answers to the questions of `SPACE`, in their order.
        graphs: How many training graphs are used.
        judged: What chooses the epoch of a fit: the "misses" on its validation set. Records of another criterion, as
            the "loss", are kept apart and cannot be run again.
        epochs: Passes over them.
        table: Always "search".
        data: Where the data set is, as in `bellnet.data.tu.load`. No part of the key, nor of records.
    """

    name: str
    repeat: int
    recipe: tuple[Any, ...]
    graphs: int
    judged: str = JUDGED
    epochs: int = EPOCHS
    table: str = "search"
    data: Path | None = field(default=None, compare=False)
    seed: int = field(default=0, init=False, compare=False)
    is_learned = False  # the estimator trains itself, in `compute`

    def __post_init__(self) -> None:
        object.__setattr__(self, "seed", self.repeat)

    @property
    def key_parts(self) -> tuple[object, ...]:
        """The readable parts of the key."""
        return self.table, self.name, self.repeat

    @property
    def title(self) -> str:
        """A name for people."""
        return f"{self.name}, draw {self.repeat}, {words(answers_of(self.recipe))}"

    def compute(self, record: Record) -> dict[str, Any]:
        """Train and measure: accuracies with the weights that the fit kept, and with those of its last epoch."""
        import numpy as np
        from sklearn.model_selection import train_test_split

        from bellnet.estimator import GraphClassifier

        found = sets.tu.load(self.name, data=self.data)
        if found.splits is None:
            raise DataError(f"search needs the splits of {self.name}: splits/{self.name}.json.")
        places = np.random.default_rng(self.repeat).permutation(found.splits[0][0])[: self.graphs]
        graphs, given = found.part(places.tolist())
        assert given is not None
        labels = given.numpy()
        learned, measured = train_test_split(
            np.arange(len(graphs)), test_size=MEASURED, stratify=labels, random_state=self.repeat
        )
        asked, answers = [graphs[place] for place in measured], labels[measured]
        last: list[float] = []

        def after_epoch(model: GraphClassifier, epoch: Mapping[str, Any]) -> None:
            if epoch["epoch"] == self.epochs - 1:
                last.append(model.score(asked, answers))

        model = GraphClassifier(
            **options(answers_of(self.recipe)),
            max_epochs=self.epochs,
            patience=self.epochs,
            random_state=self.repeat,
            device="cpu",
            verbose=False,
        )
        start = process_time()
        model.fit([graphs[place] for place in learned], labels[learned], callback=after_epoch)
        return {
            "accuracy": model.score(asked, answers),
            "last": last[0],
            "best_epoch": model.best_epoch_,
            "parameters": sum(weight.numel() for weight in model.ensemble_.parameters()),
            "seconds": round(process_time() - start, 1),
        }

    def describe(self, record: Mapping[str, Any]) -> str:
        """The accuracy."""
        return f"accuracy {100 * record['accuracy']:.1f} %"


def answers_of(recipe: Sequence[Any]) -> dict[str, Any]:
    """The answers by the names of the questions."""
    return dict(zip(SPACE, recipe, strict=True))


def options(recipe: Mapping[str, Any]) -> dict[str, Any]:
    """A recipe as options of `GraphClassifier`."""
    found = dict(recipe)
    pool = tuple(found.pop("pool").split())
    found["channels"] = (found.pop("width"),) * found.pop("depth")
    return {**found, "pool": pool if len(pool) > 1 else pool[0], "norm": "batch", "residual": True, "layout": "sparse"}


def words(recipe: Mapping[str, Any]) -> str:
    """What a recipe has other than the beginning."""
    changed = [f"{name} {value}" for name, value in recipe.items() if value != SPACE[name][0]]
    return ", ".join(changed) or "the beginning"


def beginning() -> dict[str, Any]:
    """The recipe that all questions are asked of."""
    return {name: answers[0] for name, answers in SPACE.items()}


def one_change_each(questions: Sequence[str] = tuple(SPACE)) -> list[dict[str, Any]]:
    """The beginning, and all recipes that differ from it in one answer: first the second answers, then the third."""
    most = max(map(len, SPACE.values()))
    changes = [{name: SPACE[name][place]} for place in range(1, most) for name in questions if place < len(SPACE[name])]
    return [beginning(), *(beginning() | change for change in changes)]


@dataclass(frozen=True, kw_only=True)
class SearchPlan:
    """What is compared.

    Args:
        trials: How many recipes are tried altogether, if there are as many; None for all that change one answer.
        repeats: How many draws of graphs each recipe is measured on.
        names: Some of `SETS`.
        questions: Some of `SPACE`; all others are answered as in the beginning.
        data: Where the data sets are.
    """

    trials: int | None = None
    repeats: int = 1
    names: tuple[str, ...] = tuple(SETS)
    questions: tuple[str, ...] = tuple(SPACE)
    data: Path | None = None

    @property
    def title(self) -> str:
        """The name of the study: its trials can be compared with each other."""
        questions = [name for name in SPACE if name in self.questions]
        asked = "" if questions == list(SPACE) else f", {' '.join(questions)}"
        return f"{' '.join(self.names)}, {self.repeats} draw{'s' * (self.repeats > 1)}{asked}, judged by {JUDGED}"

    @property
    def n_recipes(self) -> int:
        """How many recipes are to be tried."""
        wanted = len(one_change_each(self.questions)) if self.trials is None else self.trials
        return min(wanted, prod(len(SPACE[name]) for name in set(self.questions)))

    def cells(self, recipe: Mapping[str, Any]) -> list[SearchCell]:
        """All trainings of a recipe."""
        answers = tuple(recipe.values())
        return [
            SearchCell(name=name, repeat=repeat, recipe=answers, graphs=SETS[name], data=self.data)
            for name in self.names
            for repeat in range(self.repeats)
        ]


def run_search(
    directory: Path, plan: SearchPlan, *, jobs: int | None = None, ray: str | None = None, show: bool = True
) -> "Study":
    """Run a study until it has so many trials, from where it was stopped."""
    study = _study(directory, plan)
    with nullcontext() if ray is None else connected(ray):  # once for all trials
        while len(_done(study)) < plan.n_recipes:
            recipe = _waiting(study, plan)
            if recipe is None:
                recipe = study.ask(_distributions(plan)).params  # it is waiting from now on, even if this is stopped
            found = run_cells(plan.cells(recipe), directory, jobs=jobs, ray=ray, show=show)
            study.add_trial(_trial(plan, recipe, {name: fmean(_of(found, name, "accuracy")) for name in plan.names}))
    return study


def _study(directory: Path, plan: SearchPlan) -> "Study":
    """The study of a directory, begun if there is none."""
    require("optuna", extra="search", call="search")
    import optuna
    from optuna.storages.journal import JournalFileBackend

    optuna.logging.set_verbosity(optuna.logging.WARNING)
    directory.mkdir(parents=True, exist_ok=True)
    return optuna.create_study(
        storage=optuna.storages.JournalStorage(JournalFileBackend(str(directory / STORED))),
        sampler=optuna.samplers.TPESampler(seed=0),
        study_name=plan.title,
        direction="maximize",
        load_if_exists=True,
    )


def _waiting(study: "Study", plan: SearchPlan) -> dict[str, Any] | None:
    """The next recipe that has no value yet: one of those that ask a question, or one that was proposed."""
    done = _done(study)
    proposed = [trial.params for trial in study.trials if trial.value is None]
    return next((recipe for recipe in [*one_change_each(plan.questions), *proposed] if recipe not in done), None)


def _done(study: "Study") -> list[dict[str, Any]]:
    """All recipes that have a value, each once."""
    found: list[dict[str, Any]] = []
    for trial in study.trials:
        if trial.value is not None and trial.params not in found:
            found.append(trial.params)
    return found


def _distributions(plan: SearchPlan) -> dict[str, Any]:
    from optuna.distributions import CategoricalDistribution

    return {
        name: CategoricalDistribution(answers if name in plan.questions else answers[:1])
        for name, answers in SPACE.items()
    }


def _trial(plan: SearchPlan, recipe: dict[str, Any], accuracies: dict[str, float]) -> "FrozenTrial":
    """A trial that is done: its value is the mean over the data sets."""
    from optuna.trial import create_trial

    return create_trial(
        params=recipe, distributions=_distributions(plan), user_attrs=accuracies, value=fmean(accuracies.values())
    )


def _of(found: Sequence[Mapping[str, Any]], name: str, what: str) -> list[float]:
    return [each[what] for each in found if each["config"]["name"] == name]


def search_table(records: Sequence[Mapping[str, Any]]) -> str:
    """All recipes that were measured, the best first, as a table in markdown."""
    by_recipe: dict[tuple[Any, ...], list[Mapping[str, Any]]] = {}
    several = len({record["config"]["judged"] for record in records}) > 1
    for record in records:
        told = (f", judged by {record['config']['judged']}",) if several else ("",)
        by_recipe.setdefault((*told, *answers_of(record["config"]["recipe"]).values()), []).append(record)
    names = [name for name in SETS if any(record["config"]["name"] == name for record in records)]
    whole = {recipe: found for recipe, found in by_recipe.items() if all(_of(found, name, "last") for name in names)}
    rows = [
        (
            fmean(fmean(_of(found, name, "accuracy")) for name in names),
            f"| {words(answers_of(recipe[1:]))}{recipe[0]} | "
            + " | ".join(_percent(_of(found, name, "accuracy")) for name in names)
            + f" | {100 * fmean(fmean(_of(found, name, 'accuracy')) for name in names):.1f}"
            + f" | {100 * fmean(fmean(_of(found, name, 'last')) for name in names):.1f}"
            + f" | {sum(fmean(_of(found, name, 'seconds')) for name in names):.0f} |",
        )
        for recipe, found in whole.items()
    ]
    heads = ["recipe", *names, "mean", "mean of last epochs", "processor time, s"]
    lines = [f"| {' | '.join(heads)} |", "|---" * len(heads) + "|"]
    return "\n".join([*lines, *(line for _, line in sorted(rows, reverse=True))])


def _percent(values: Sequence[float]) -> str:
    return f"{100 * fmean(values):.1f}" + (f" ({len(values)})" if len(values) > 1 else "")
