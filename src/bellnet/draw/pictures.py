"""The matrices that a picture of a basis shows, with their titles.

The row of a map's matrix is the output index and its column the input index; an index of several slots counts like a
number, the last slot fastest. A bias has its first slot in the rows and the others in the columns.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING

from bellnet.plan import Plan
from bellnet.plan.contraction import letters

if TYPE_CHECKING:
    from torch import Tensor


@dataclass(frozen=True)
class Picture:
    """A matrix of ones and zeros; `together` is how many rows, and columns, belong to one value of the first slot."""

    title: str
    matrix: "Tensor"
    together: tuple[int, int]


def pictures_of_maps(plan: Plan, sizes: Mapping[str, int], *, basis: str) -> list[Picture]:
    """One for every map, in canonical order."""
    from bellnet.backends.reference import basis_tensors

    source, target = ([sizes[name] for name in slots] for slots in (plan.spec.source, plan.spec.target))
    tensors = basis_tensors(plan, sizes, basis=basis).reshape(plan.n_maps, prod(source), prod(target)).mT
    together = (prod(target[1:]), prod(source[1:]))
    titles = [diagram.name for diagram in plan.diagrams]
    return [Picture(title, matrix, together) for title, matrix in zip(titles, tensors, strict=True)]


def pictures_of_biases(plan: Plan, sizes: Mapping[str, int], *, basis: str) -> list[Picture]:
    """One for every bias, in canonical order."""
    from bellnet.backends.reference import bias_tensors

    target = [sizes[name] for name in plan.spec.target]
    tensors = bias_tensors(plan, sizes, basis=basis).reshape(plan.n_biases, prod(target[:1]), prod(target[1:]))
    together = (1, prod(target[2:]))
    titles = [f"->{letters(partition)}" for partition in plan.biases]
    return [Picture(title, matrix, together) for title, matrix in zip(titles, tensors, strict=True)]
