"""Appendix A: fifteen operations span the equivariant layers from matrices to matrices."""

import pytest
import torch

from bellnet import plan
from tests.paper.layers import EVERY_BASIS, assert_same_space, maps, rank, written


def ones(a):
    return torch.ones(len(a), 1, dtype=a.dtype)


def identity(a):
    return torch.eye(len(a), dtype=a.dtype)


def diagonal(a):
    return (a * identity(a)) @ ones(a)


def total(a):
    return ones(a).T @ a @ ones(a)


def trace(a):
    return ones(a).T @ diagonal(a)


def on_diagonal(column):
    return torch.diag(column.squeeze(1))


# Under the name of the diagram that each of them is, in the order of the paper.
FIFTEEN = {
    "ab->ab": lambda a: a,
    "ab->ba": lambda a: a.T,
    "aa->aa": lambda a: on_diagonal(diagonal(a)),
    "ab->ac": lambda a: a @ ones(a) @ ones(a).T,
    "ab->ca": lambda a: ones(a) @ (a @ ones(a)).T,
    "ab->aa": lambda a: on_diagonal(a @ ones(a)),
    "ab->bc": lambda a: a.T @ ones(a) @ ones(a).T,
    "ab->cb": lambda a: ones(a) @ (a.T @ ones(a)).T,
    "ab->bb": lambda a: on_diagonal(a.T @ ones(a)),
    "ab->cd": lambda a: total(a) * ones(a) @ ones(a).T,
    "ab->cc": lambda a: total(a) * identity(a),
    "aa->bc": lambda a: trace(a) * ones(a) @ ones(a).T,
    "aa->bb": lambda a: trace(a) * identity(a),
    "aa->ab": lambda a: diagonal(a) @ ones(a).T,
    "aa->ba": lambda a: ones(a) @ diagonal(a).T,
}


@pytest.mark.parametrize("options", EVERY_BASIS)
@pytest.mark.parametrize("n", [1, 2, 3, 4, 6])
def test_the_fifteen_operations_and_the_layer_span_one_space(n, options):
    assert_same_space(maps("n n -> n n", n, **options), written(FIFTEEN.values(), "n n -> n n", n))


def test_the_fifteen_operations_are_independent():
    assert rank(written(FIFTEEN.values(), "n n -> n n", 4)) == 15


def test_each_operation_is_the_diagram_of_that_name():
    diagrams = maps("n n -> n n", 4, normalize="sum")
    names = [diagram.name for diagram in plan("n n -> n n").diagrams]
    assert sorted(names) == sorted(FIFTEEN)
    assert torch.equal(written([FIFTEEN[name] for name in names], "n n -> n n", 4), diagrams)


def test_without_one_of_the_operations_the_space_is_smaller():
    fourteen = [operation for name, operation in FIFTEEN.items() if name != "aa->bb"]
    with pytest.raises(AssertionError):
        assert_same_space(maps("n n -> n n", 4), written(fourteen, "n n -> n n", 4))
