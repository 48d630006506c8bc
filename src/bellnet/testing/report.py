"""The words of a failed check."""

from collections.abc import Iterable, Mapping

from torch import Tensor

from bellnet.errors import EquivarianceError
from bellnet.testing.subject import Subject, name_of


def failure(subject: Subject, claim: str, facts: Iterable[tuple[str, str]]) -> EquivarianceError:
    """An error that names the module and what it was claimed to be, and lists the facts one a line."""
    rows = list(facts)
    width = max(len(label) for label, _ in rows)
    table = "\n".join(f"    {label.ljust(width)}  {text}" for label, text in rows)
    return EquivarianceError(f"{name_of(subject.module)} {claim}.\n\n{table}\n{subject.hint}".rstrip())


def show_renumbering(permutations: Mapping[str, Tensor]) -> str:
    """Permutations as they are passed to `relabel`."""
    return str({name: permutation.tolist() for name, permutation in permutations.items()})
