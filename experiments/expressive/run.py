"""One run: ask all networks for all graphs, train some, write the report."""

import os
from collections.abc import Callable, Sequence
from pathlib import Path

from experiments.expressive import page
from experiments.expressive.show import learned_table, lines, told_table
from experiments.expressive.skip_links import NETWORKS, SPLITS, Learned, learn
from experiments.expressive.suite import ask, from_brec, from_graph6, made_here, models

QUICK = ("order 2", "order 2 with products")
"""The networks that a quick run trains; order 3 takes half a minute for each test set."""


def run_expressive(
    directory: Path,
    *,
    quick: bool = False,
    seed: int = 0,
    graph6: Sequence[str | os.PathLike[str]] = (),
    brec: str | os.PathLike[str] | None = None,
    train: bool = True,
    say: Callable[[str], None] = print,
    progress: Callable[[str], None] = print,
) -> bool:
    """Compare networks with theory, train some on circular skip links, write the report; whether all is as expected."""
    given = [*map(from_graph6, graph6), *(() if brec is None else from_brec(brec))]  # what cannot be read is said first
    asked, rows = models(quick=quick), []
    for family in (*made_here(quick=quick, seed=seed), *given):
        progress(f"{family.name}: {family.n_pairs} pairs")
        rows.append(ask(family, asked, seed=seed, progress=progress))
    say("\n".join(lines(told_table(rows, asked))))
    learned: list[Learned] = []
    setup = {"seed": seed, "quick": quick, "graph6": [Path(path).name for path in graph6], "brec": brec is not None}
    written = page.write(directory, rows, asked, learned, setup=setup)  # and again with whatever is learned
    for name in (QUICK if quick else tuple(NETWORKS)) if train else ():
        progress(f"circular skip links, learned by {name}")
        learned.append(learn(name, splits=1 if quick else SPLITS, seed=seed))
        written = page.write(directory, rows, asked, learned, setup=setup)
    if learned:
        say("\n" + "\n".join(lines(learned_table(learned))))
    say("\n" + "\n".join(f"wrote {path}" for path in written))
    return all(row.agrees for row in rows)
