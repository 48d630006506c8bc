"""What the seed changes in Table 3, from records of one set-up that was run with several."""

from collections.abc import Iterator
from statistics import fmean

from experiments.graph_cells import PROTOCOLS, SEED, SETS, SPLITS
from experiments.table3 import TITLES, Chosen, choose_setups, over_splits, percent, rows_here
from experiments.tables import Finished, Table


def seeds_table(finished: Finished) -> Table:
    """For every data set, method and protocol that was run with several seeds: each of them, and the mean of all."""
    chosen = choose_setups(finished)
    rows = [
        (title, f"{row}, {protocol}", *figures)
        for name, title in zip(SETS, TITLES, strict=True)
        for row in rows_here()
        for protocol in PROTOCOLS
        for figures in _by_seed(chosen.get((name, row, protocol)))
    ]
    notes = (
        f"The other tables show seed {SEED} where it was run. A seed decides whatever a method draws: initial weights, "
        "batches, graphs that are kept aside, parts of a cross-validation. Mean and population standard deviation, "
        "beside a seed over its splits, beside several over their means; a seed without all splits has no part "
        "in these.",
    )
    return Table(
        "Table 3: what the seed changes", ("data set", "method", "seed", "accuracy"), tuple(rows), notes, left=3
    )


def _by_seed(found: Chosen | None) -> Iterator[tuple[str, str]]:
    """Seeds and what they gave, if there is more than one."""
    if found is None or not found.reseeded:
        return
    by_seed = {found.cell.seed: found.records, **found.reseeded}
    for seed, records in sorted(by_seed.items()):
        yield str(seed), over_splits(records)
    whole = [records for records in by_seed.values() if len(records) == len(SPLITS)]
    if len(whole) > 1:
        yield f"mean of {len(whole)}", percent([fmean(record["accuracy"] for record in records) for records in whole])
