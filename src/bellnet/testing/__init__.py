"""Checks that users can run on their own modules.

Each check calls a module on small random inputs and raises `errors.EquivarianceError`, which is also an
`AssertionError`, if the module does not act as its spec requires. Strategies for hypothesis are in
`bellnet.testing.strategies`, which is imported by name: it needs `pip install bellnet[testing]`.
"""

from bellnet.testing.equivariance import assert_equivariant, assert_invariant, permute_nodes
from bellnet.testing.matrix import matrix_of
from bellnet.testing.padding import assert_padding_invariant

__all__ = ["assert_equivariant", "assert_invariant", "assert_padding_invariant", "matrix_of", "permute_nodes"]
