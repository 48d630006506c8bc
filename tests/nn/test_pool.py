"""Invariant pooling, against loops over all index tuples."""

from contextlib import nullcontext
from itertools import product

import pytest
import torch
from torch.testing import assert_close

from bellnet import InvariantPool, Sparse, bell
from bellnet.combinatorics import partitions
from bellnet.kernels import disabled, kernels
from tests.nn.test_linear import permuted

SHAPES = ["n", "n n", "n n n", "u i", "u u i", "i u u"]


@pytest.fixture(autouse=True, params=["compiled", "operations of torch"])
def _in_every_way(request):
    if request.param == "compiled" and kernels() is None:
        pytest.skip("bellnet was built without kernels")
    with nullcontext() if request.param == "compiled" else disabled():
        yield


def _by_loops(x, axes, reduce):
    """Pool a (node axes, channels) tensor entry by entry; an orbit without entries gives zero."""
    pooled = []
    for pattern in partitions(axes):
        entries = []
        for index in product(*map(range, x.shape[:-1])):
            nodes = list(zip(axes, index, strict=True))
            if all((nodes[a] == nodes[b]) == (pattern[a] == pattern[b]) for a in range(len(axes)) for b in range(a)):
                entries.append(x[index])
        if not entries:
            pooled.append(torch.zeros_like(x[..., :0].sum().expand(x.shape[-1])))
        else:
            stacked = torch.stack(entries)
            pooled.append({"max": stacked.amax, "sum": stacked.sum, "mean": stacked.mean}[reduce](0))
    return torch.cat(pooled)


@pytest.mark.parametrize("reduce", ["max", "sum", "mean"])
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("n", [0, 1, 2, 4])
def test_pooling_is_a_loop_over_all_entries_of_each_orbit(shape, reduce, n):
    axes = shape.split()
    x = torch.randn(*(n + (name == "i") for name in axes), 2, dtype=torch.float64)
    assert_close(InvariantPool(shape, reduce)(x), _by_loops(x, axes, reduce))


@pytest.mark.parametrize("reduce", ["max", "sum", "mean"])
@pytest.mark.parametrize("batch", [(), (3,), (2, 3), (0,), (2, 0)])
def test_batch_axes_are_unchanged(batch, reduce):
    pool, x = InvariantPool("n n", reduce), torch.randn(*batch, 3, 3, 2)
    y = pool(x)
    assert y.shape == (*batch, 4)
    for index in product(*map(range, batch)):
        assert_close(y[index], pool(x[index]))


@pytest.mark.parametrize("k", range(5))
def test_channels_are_multiplied_by_the_bell_number(k):
    pool = InvariantPool(" ".join("n" * k))
    assert pool.n_orbits == bell(k)
    assert pool(torch.zeros(3, *[2] * k, 5)).shape == (3, bell(k) * 5)


@pytest.mark.parametrize("reduce", ["max", "sum", "mean"])
@pytest.mark.parametrize(("shape", "n"), [("n n", 0), ("n n", 1), ("n n n", 1), ("n n n", 2), ("n", 0), ("u i i", 1)])
def test_an_orbit_without_entries_gives_zero_and_a_finite_gradient(shape, n, reduce):
    axes = shape.split()
    x = torch.full((*[n] * len(axes), 2), -5.0, requires_grad=True)
    y = InvariantPool(shape, reduce)(x)
    nothing_there = torch.tensor([max(pattern, default=-1) + 1 > n for pattern in partitions("n" * len(axes))])
    if set(axes) == {"n"}:
        assert torch.equal(y == 0, nothing_there.repeat_interleave(2))
    y.sum().backward()
    assert x.grad.isfinite().all()
    y_empty = InvariantPool(shape, reduce)(x)[y == 0]
    if y_empty.numel():
        (gradient,) = torch.autograd.grad(y_empty.sum(), x)
        assert not gradient.count_nonzero()


def test_equal_maxima_share_the_gradient():
    x = torch.tensor([[3.0, 7.0, 1.0], [7.0, 3.0, 7.0], [2.0, 0.0, 3.0]]).unsqueeze(-1).requires_grad_()
    y = InvariantPool("n n")(x)
    assert y.tolist() == [3, 7]
    (diagonal,) = torch.autograd.grad(y[0], x, retain_graph=True)
    assert_close(diagonal.squeeze(-1), torch.eye(3) / 3)
    (beside,) = torch.autograd.grad(y[1], x)
    assert_close(beside.squeeze(-1), (x.detach().squeeze(-1) == 7) / 3)


@pytest.mark.parametrize("reduce", ["max", "sum", "mean"])
@pytest.mark.parametrize("shape", SHAPES)
def test_pooling_is_invariant_and_its_gradient_equivariant_even_with_ties(shape, reduce):
    axes = shape.split()
    sizes = {"n": 4, "u": 4, "i": 3}
    pool = InvariantPool(shape, reduce)
    for _ in range(5):
        x = torch.randint(0, 3, (*(sizes[name] for name in axes), 2)).double().requires_grad_()
        order = {name: torch.randperm(size) for name, size in sizes.items()}
        moved = permuted(x.detach(), axes, order).requires_grad_()
        assert_close(pool(moved), pool(x))
        weights = torch.randn(pool.n_orbits * 2, dtype=torch.float64)
        (gradient,) = torch.autograd.grad(pool(x), x, weights)
        (of_moved,) = torch.autograd.grad(pool(moved), moved, weights)
        assert_close(of_moved, permuted(gradient, axes, order))


def test_orbits_are_ordered_with_coincident_indices_first():
    x = torch.tensor([[[1.0, -1.0], [2.0, -2.0]], [[3.0, -3.0], [4.0, -4.0]]])
    assert InvariantPool("n n", "sum")(x).tolist() == [5, -5, 5, -5]
    assert InvariantPool("n n", "max")(x).tolist() == [4, -1, 3, -2]
    assert InvariantPool("n n", "mean")(x).tolist() == [2.5, -2.5, 2.5, -2.5]


def test_rows_and_columns_of_different_sets_make_one_orbit():
    x = torch.tensor([[1.0, 7.0], [2.0, 5.0]]).unsqueeze(-1)
    assert InvariantPool("u i")(x).tolist() == [7]


def test_negative_infinity_is_pooled_like_any_value():
    x = torch.tensor([[-torch.inf, 1.0], [1.0, -torch.inf]]).unsqueeze(-1)
    assert InvariantPool("n n")(x).tolist() == [-torch.inf, 1]


@pytest.mark.parametrize("as_sparse", [False, True])
def test_several_reductions_are_concatenated(as_sparse):
    x = torch.randn(3, 4, 4, 2)
    given = Sparse.from_dense(x, "n n", keep_zeros=True) if as_sparse else x
    several = InvariantPool("n n", ("mean", "max", "sum"))
    expected = torch.cat([InvariantPool("n n", reduce)(given) for reduce in ("mean", "max", "sum")], -1)
    assert_close(several(given), expected)
    assert (several.growth, several.n_orbits) == (6, 2)
