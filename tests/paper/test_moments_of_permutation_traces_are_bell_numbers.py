"""Proposition 3 (appendix B): the mean of tr(P)^k over all permutation matrices is Bell(k).

The paper does not say so, but this needs n >= k. With fewer nodes the moment is the number of partitions of k things
into at most n blocks, which is the dimension of the solution space there.
"""

from fractions import Fraction
from itertools import permutations

import pytest

from tests.paper.kronecker import permutation_matrix
from tests.paper.layers import BELL, STIRLING, maps, of_orders, rank


def moment(n, k):
    traces = [int(permutation_matrix(permutation).trace()) for permutation in permutations(range(n))]
    return Fraction(sum(trace**k for trace in traces), len(traces))


@pytest.mark.parametrize("n", range(1, 7))
def test_the_kth_moment_is_bell_k_if_there_are_k_nodes(n):
    assert [moment(n, k) for k in range(n + 1)] == list(BELL[: n + 1])


@pytest.mark.parametrize(("n", "k"), [(n, k) for k in range(2, 7) for n in range(1, k)])
def test_with_fewer_nodes_the_moment_counts_partitions_into_so_few_blocks(n, k):
    assert moment(n, k) == sum(STIRLING[k][: n + 1])
    assert moment(n, k) < BELL[k]


@pytest.mark.parametrize(("k", "l"), [(1, 1), (2, 1), (2, 2)])
@pytest.mark.parametrize("n", [1, 2, 3, 4])
def test_the_moment_is_the_rank_of_the_layer_for_any_number_of_nodes(k, l, n):
    assert rank(maps(of_orders(k, l), n)) == moment(n, k + l)
