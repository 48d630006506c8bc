from math import comb, factorial

import pytest

from bellnet.combinatorics import bell, partitions_of_number, stirling2

# The sequence A000110 of the On-Line Encyclopedia of Integer Sequences.
BELL = [1, 1, 2, 5, 15, 52, 203, 877, 4140, 21147, 115975, 678570, 4213597, 27644437]


def test_bell_numbers_are_the_published_ones():
    assert [bell(s) for s in range(len(BELL))] == BELL


def test_bell_numbers_satisfy_their_recurrence():
    for s in range(15):
        assert bell(s + 1) == sum(comb(s, others) * bell(others) for others in range(s + 1))


def test_stirling_numbers_are_the_published_ones():
    assert [stirling2(6, m) for m in range(8)] == [0, 1, 31, 90, 65, 15, 1, 0]
    assert [stirling2(0, m) for m in range(3)] == [1, 0, 0]
    assert stirling2(10, 5) == 42525


@pytest.mark.parametrize("s", range(10))
def test_stirling_numbers_count_surjections(s):
    for m in range(12):
        surjections = sum((-1) ** left_out * comb(m, left_out) * (m - left_out) ** s for left_out in range(m + 1))
        assert stirling2(s, m) * factorial(m) == surjections


def test_partitions_of_numbers_are_the_published_ones():
    # The sequence A000041 of the On-Line Encyclopedia of Integer Sequences.
    assert [partitions_of_number(k) for k in range(13)] == [1, 1, 2, 3, 5, 7, 11, 15, 22, 30, 42, 56, 77]
    assert partitions_of_number(100) == 190_569_292


def test_numbers_of_thousands_of_elements_are_computed():
    assert bell(1201 + 3) % 1201 == (bell(3) + bell(4)) % 1201  # Touchard: 1201 is a prime
    assert stirling2(1200, 2) == 2**1199 - 1


def test_there_are_no_partitions_into_negative_numbers_of_blocks():
    assert stirling2(3, -1) == 0
