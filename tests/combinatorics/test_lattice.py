import pytest

from bellnet.combinatorics import is_finer, moebius, partitions

KINDS = ["", "n", "nn", "nnn", "nnnn", "nnnnn", "ui", "uiu", "uuii", "uiuiu", "uuuii", "abcab"]


def _as_sets(partition):
    return [{slot for slot, block in enumerate(partition) if block == number} for number in set(partition)]


@pytest.mark.parametrize("kinds", KINDS)
def test_finer_means_that_every_block_lies_inside_a_block(kinds):
    for fine in partitions(kinds):
        for coarse in partitions(kinds):
            inside = all(any(block <= holder for holder in _as_sets(coarse)) for block in _as_sets(fine))
            assert is_finer(fine, coarse) is inside


@pytest.mark.parametrize("kinds", KINDS)
def test_finer_is_a_partial_order(kinds):
    everything = partitions(kinds)
    above = {fine: {coarse for coarse in everything if is_finer(fine, coarse)} for fine in everything}
    for fine in everything:
        assert fine in above[fine]
        for middle in above[fine]:
            assert above[middle] <= above[fine]
            assert middle == fine or fine not in above[middle]


@pytest.mark.parametrize("kinds", KINDS)
def test_moebius_is_the_inverse_of_zeta(kinds):
    everything = partitions(kinds)
    mu = {(a, b): moebius(a, b) for a in everything for b in everything}
    assert all((entry != 0) == is_finer(*pair) for pair, entry in mu.items())
    for a in everything:
        for b in everything:
            between = [c for c in everything if is_finer(a, c) and is_finer(c, b)]
            assert sum(mu[a, c] for c in between) == (a == b)
            assert sum(mu[c, b] for c in between) == (a == b)
