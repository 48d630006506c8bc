"""Records of several directories, gathered in one: what was run in different places becomes one table."""

from collections.abc import Sequence
from pathlib import Path

from bellnet.errors import DataError
from experiments.alone import alone
from experiments.records import Records


def merge_records(sources: Sequence[Path], directory: Path) -> dict[Path, int]:
    """Take finished cells of other directories, with their epochs; how many of each.

    A cell that is finished here already stays as it is, and one that is not finished there is not taken: its checkpoint
    is there. Nothing is written twice, so merging again changes nothing.
    """
    missing = [source for source in sources if not Records(source).path.is_file()]
    if missing:
        raise DataError(
            f"{', '.join(map(str, missing))}: there is no {Records(missing[0]).path.name}.\nName directories that "
            "table1, table2 or table3 has written with --out."
        )
    found = {}
    with alone(directory):
        records = Records(directory)
        records.repair()
        for source in sources:
            found[source] = records.take(Records(source))
    return found
