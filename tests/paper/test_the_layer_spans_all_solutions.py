"""Proposition 2: the basis spans *all* solutions of the fixed-point equations, found here without a basis."""

import pytest
import torch

from tests.paper.kronecker import acting_on_layers, generators, vec
from tests.paper.layers import EVERY_BASIS, maps

CASES = [
    ("n ->", {"n": 3}),
    ("n -> n", {"n": 4}),
    ("n n ->", {"n": 4}),
    ("-> n n", {"n": 4}),
    ("n n -> n", {"n": 5}),
    ("n n -> n n", {"n": 2}),
    ("n n -> n n", {"n": 3}),
    ("n n -> n n", {"n": 4}),
    ("n n n -> n", {"n": 4}),
    ("n n n -> n n", {"n": 3}),
    ("u i -> u i", {"u": 3, "i": 4}),
    ("u u i -> i u", {"u": 3, "i": 2}),
    ("u i -> v", {"u": 3, "i": 2, "v": 4}),
]


def solutions(spec, sizes):
    """An orthonormal basis, as columns, of everything that the generators of the group fix."""
    equations = [acting_on_layers(spec, permutations) for permutations in generators(sizes)]
    equations = torch.cat([equation - torch.eye(len(equation), dtype=torch.float64) for equation in equations])
    _, values, vectors = torch.linalg.svd(equations)
    is_solution = torch.ones(len(vectors), dtype=torch.bool)
    is_solution[: len(values)] = values < 1e-9
    return vectors[is_solution].T


@pytest.mark.parametrize("options", EVERY_BASIS)
@pytest.mark.parametrize(("spec", "sizes"), CASES)
def test_the_null_space_of_the_equations_is_the_span_of_the_maps(spec, sizes, options):
    theirs = solutions(spec, sizes)
    ours = torch.stack([vec(matrix) for matrix in maps(spec, sizes, **options)], 1)
    assert torch.linalg.matrix_rank(ours) == theirs.shape[1]
    # Ours are in the space of the solutions, and the principal angles between the two spaces are all zero.
    torch.testing.assert_close(theirs @ (theirs.T @ ours), ours, rtol=0, atol=1e-9)
    left, values, _ = torch.linalg.svd(ours, full_matrices=False)
    cosines = torch.linalg.svdvals(left[:, values > 1e-9].T @ theirs)
    torch.testing.assert_close(cosines, torch.ones(theirs.shape[1], dtype=torch.float64), rtol=0, atol=1e-9)
