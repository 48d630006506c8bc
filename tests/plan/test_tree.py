"""Trees of folds."""

import pytest

from bellnet import plan


@pytest.mark.parametrize("spec", ["n n -> n n", "n n n -> n n n", "u i -> u i"])
def test_both_sides_of_a_layer_share_a_tree_where_they_are_alike(spec):
    """Then what is found out about a support for reading serves writing as well."""
    assert plan(spec).source is plan(spec).target
