"""Permutation matrices and their Kronecker products, as the paper writes them."""

from functools import reduce

import torch

from bellnet.spec import parse_spec


def permutation_matrix(permutation):
    """The matrix that takes the i-th unit vector to the permutation[i]-th."""
    matrix = torch.zeros(len(permutation), len(permutation), dtype=torch.float64)
    for start, end in enumerate(permutation):
        matrix[end, start] = 1
    return matrix


def kronecker_product(matrices):
    return reduce(torch.kron, matrices, torch.ones(1, 1, dtype=torch.float64))


def generators(sizes):
    """For each node set a cycle through its nodes and an exchange of two, the other sets left as they are."""
    identity = {name: list(range(size)) for name, size in sizes.items()}
    for name, size in sizes.items():
        if size > 1:
            yield {**identity, name: [*range(1, size), 0]}
            yield {**identity, name: [1, 0, *range(2, size)]}


def acting_on_layers(spec, permutations):
    """The matrix that acts on vec(L): one factor for each slot, source slots first."""
    by_name = {name: permutation_matrix(permutation) for name, permutation in permutations.items()}
    return kronecker_product([by_name[name] for name in parse_spec(spec).slots])


def vec(matrix):
    """The columns of a matrix, stacked: source indices slow, target indices fast."""
    return matrix.T.reshape(-1)
