"""What a picture is of and how many nodes it has, checked before anything is drawn."""

from collections.abc import Mapping

from bellnet.errors import SizesError, SpecError
from bellnet.spec import Spec


def refuse_several(call: str, spec: Spec) -> None:
    """Refuse a spec of several tensors."""
    if not spec.is_single:
        raise SpecError(
            f"{call}: a picture shows the maps from one tensor to one tensor.\n"
            f'Draw the pairs one by one, for instance "{spec.pair(0, 0)}".'
        )


def sizes_of_sets(call: str, spec: Spec, n: int | Mapping[str, int]) -> dict[str, int]:
    """The number of nodes of every node set, from one number for all or a number for each."""
    sizes = dict(n) if isinstance(n, Mapping) else dict.fromkeys(spec.node_sets, n)
    example = f"{{{', '.join(f'{name!r}: 4' for name in spec.node_sets)}}}"
    if missing := [name for name in spec.node_sets if name not in sizes]:
        raise SizesError(f"{call}: n has no entry for node set {missing[0]!r}.\nPass one number for all, or {example}.")
    if unknown := [name for name in sizes if name not in spec.node_sets]:
        known = ", ".join(map(repr, spec.node_sets)) or "none"
        raise SizesError(f"{call}: n has an entry for {unknown[0]!r}, but the node sets are {known}.")
    for name, size in sizes.items():
        if not _is_count(size):
            raise SizesError(f"{call}: the number of nodes of {name!r} must be a whole number from 1 up, not {size!r}.")
    return sizes


def _is_count(size: object) -> bool:
    return isinstance(size, int) and not isinstance(size, bool) and size >= 1
