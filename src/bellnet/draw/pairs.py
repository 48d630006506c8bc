"""The pairs of tensors that a spec has maps between; there is a picture of each."""

from collections.abc import Mapping
from typing import NamedTuple

from bellnet.spec import parse_spec


class Pair(NamedTuple):
    """One picture: what its name ends in, its spec, and how many nodes it has."""

    end: str
    spec: str
    n: int | Mapping[str, int]


def pairs_of(text: str, n: int | Mapping[str, int]) -> list[Pair]:
    """All pairs of a source and a target; of a spec from one tensor to one tensor that alone.

    >>> [(pair.end, pair.spec) for pair in pairs_of("n n, n -> n", 5)]
    [('-0-to-0', 'n n -> n'), ('-1-to-0', 'n -> n')]
    """
    spec = parse_spec(text)
    if spec.is_single:
        return [Pair("", text, n)]
    found = []
    for source in range(len(spec.sources)):
        for target in range(len(spec.targets)):
            pair = spec.pair(source, target)
            elsewhere = set(spec.node_sets) - set(pair.node_sets)
            own = {name: size for name, size in n.items() if name not in elsewhere} if isinstance(n, Mapping) else n
            found.append(Pair(f"-{source}-to-{target}", str(pair), own))
    return found
