"""A contraction of dense tensors by a compiled kernel (`kernels/contract.h`): on a CPU, in single or double precision.

Channels come last and stay there: nothing is copied but what the kernel packs for a moment.
"""

from functools import lru_cache
from math import prod
from typing import NamedTuple

import torch
from torch import Tensor

from bellnet.kernels.calling import address, call, function, n_threads, pointer
from bellnet.kernels.structs import ContractCall
from bellnet.plan import split_letters
from bellnet.spec import Letters
from bellnet.tensors.tracing import no_transforms


def shape_of_product(letters: Letters, x: Tensor, y: Tensor) -> tuple[int, ...]:
    """That of the contraction of two (batch, *axes, channels) tensors."""
    lengths = dict(zip(letters[0], x.shape[1:], strict=False)) | dict(zip(letters[1], y.shape[1:], strict=False))
    return x.shape[0], *[lengths[letter] for letter in letters[2]], x.shape[-1]


def contract(letters: Letters, x: Tensor, y: Tensor, factor: float) -> Tensor:
    """The contraction of two (batch, *axes, channels) tensors times a number, for tensors that nobody tracks."""
    if set(letters[0]) <= set(letters[2]):
        return _without_sums(letters, x, y, factor)
    prepared = _prepared(letters, tuple(x.shape[1:-1]), tuple(y.shape[1:-1]))
    n_graphs, n_channels = x.shape[0], x.shape[-1] * prepared.n_folded
    shape, n_multiplications = shape_of_product(letters, x, y), n_graphs * n_channels * prepared.n_terms
    if not n_multiplications:
        return x.new_zeros(shape)
    dtype, keep, result = x.dtype, list[object](), x.new_empty(shape)
    arguments = ContractCall(
        tables=address(prepared.tables, keep),
        n_graphs=n_graphs,
        n_channels=n_channels,
        n_threads=n_threads(n_multiplications),
        x=pointer("the first factor", x, x.shape, dtype, keep),
        y=pointer("the second factor", y, (n_graphs, *y.shape[1:-1], x.shape[-1]), dtype, keep),
        result=address(result, keep),
        factor=factor,
    )
    call(function("contract", dtype), arguments)
    return result


def _without_sums(letters: Letters, x: Tensor, y: Tensor, factor: float) -> Tensor:
    """Every number of the result is one product, which torch has no slower."""
    views = []
    for one, tensor in zip(letters, (x, y), strict=False):
        there = [letter for letter in letters[2] if letter in one]
        inner = tensor.permute(0, *[1 + one.index(letter) for letter in there], -1)
        views.append(inner[(slice(None), *[slice(None) if letter in one else None for letter in letters[2]])])
    result = torch.mul(*views, out=x.new_empty(shape_of_product(letters, x, y)))
    return result if factor == 1 else result.mul_(factor)


class _Prepared(NamedTuple):
    """What the kernel has to know of a contraction of tensors with such axes.

    Attributes:
        tables: How many tuples of shared, left, right and summed nodes there are, how many rows x, y and the product
            have, and for every tuple its row in each of the tensors that have its letters.
        n_folded: How many tuples the last letters of all three have, whose nodes are taken for channels.
        n_terms: How many multiplications there are for each graph and channel, such channels included.
    """

    tables: Tensor
    n_folded: int
    n_terms: int


@lru_cache(maxsize=256)
def _prepared(letters: Letters, x_axes: tuple[int, ...], y_axes: tuple[int, ...]) -> _Prepared:
    lengths = dict(zip(letters[0], x_axes, strict=True)) | dict(zip(letters[1], y_axes, strict=True))
    n_folded = 1
    while all(letters) and len({one[-1] for one in letters}) == 1:
        n_folded *= lengths[letters[0][-1]]
        x, y, product = (one[:-1] for one in letters)
        letters = x, y, product
    x, y, product = letters
    groups = split_letters(letters)
    sizes = [prod(lengths[letter] for letter in group) for group in groups]
    n_rows = [prod(lengths[letter] for letter in one) for one in letters]
    owners = ((x, y, product), (x, product), (y, product), (x, y))
    with no_transforms():
        tables = [torch.tensor([*sizes, *n_rows], device="cpu")]
        for group, several in zip(groups, owners, strict=True):
            tables += [_rows(group, owner, lengths) for owner in several]
        return _Prepared(torch.cat(tables), n_folded, prod(sizes))


def _rows(group: str, owner: str, lengths: dict[str, int]) -> Tensor:
    """For every tuple of nodes of some letters its row in a tensor, beside those of the other letters of the tensor."""
    rows = torch.zeros(1, dtype=torch.int64, device="cpu")
    for letter in group:
        stride = prod(lengths[one] for one in owner[owner.index(letter) + 1 :])
        rows = (rows.unsqueeze(1) + torch.arange(lengths[letter], device="cpu") * stride).flatten()
    return rows
