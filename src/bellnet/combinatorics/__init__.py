"""Set partitions: how many there are, which there are, and how they refine each other.

Standard library only. A partition of the slots 0, 1, ..., s-1 is written as its restricted growth string: slot by
slot the number of its block, blocks numbered in order of first appearance. `(0, 1, 0)` puts slots 0 and 2 together.
"""

from bellnet.combinatorics.counting import bell, partitions_of_number, stirling2
from bellnet.combinatorics.lattice import is_finer, moebius
from bellnet.combinatorics.orbits import first_of_orbit, orbit_size
from bellnet.combinatorics.partitions import Partition, blocks_of, canonical, partitions

__all__ = [
    "Partition",
    "bell",
    "blocks_of",
    "canonical",
    "first_of_orbit",
    "is_finer",
    "moebius",
    "orbit_size",
    "partitions",
    "partitions_of_number",
    "stirling2",
]
