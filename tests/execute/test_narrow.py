"""Few channels: products with several rows taken for one give what plain products give."""

import pytest
import torch

from bellnet import EquivariantLinear
from bellnet.execute import narrow
from tests.execute.recording import Recording

MANY = 8192


@pytest.fixture(autouse=True)
def _no_grad():
    with torch.no_grad():
        yield


FINE = torch.zeros(1)


@pytest.mark.parametrize("outer", [1, 2, 3, 5, 8, 12, 15, 16, 40])
@pytest.mark.parametrize("inner", [1, 3, 8, 20])
@pytest.mark.parametrize("rows", [7, MANY, MANY + 1, MANY + 2, MANY + 4])
def test_products_are_those_of_plain_matrices(rows, inner, outer):
    x, g = torch.randn(rows, inner, dtype=torch.float64), torch.randn(rows, outer, dtype=torch.float64)
    weight = torch.randn(3, inner, outer, dtype=torch.float64)
    wide = narrow.widen(list(weight), rows, FINE)
    assert len(wide) == 3
    for matrix, plain in zip(wide, weight, strict=True):
        expected = x @ plain
        torch.testing.assert_close(narrow.product(x, matrix).reshape(rows, outer), expected)
        into = torch.empty(rows, outer, dtype=torch.float64)
        narrow.product(x, matrix, into)
        torch.testing.assert_close(into, expected)
        total = g.clone()
        narrow.add_product(total, x, matrix)
        torch.testing.assert_close(total, g + expected)
    total = torch.ones(inner, outer, dtype=torch.float64)
    narrow.add_columns_by_columns(total, x, g)
    torch.testing.assert_close(total, 1 + x.mT @ g)


def test_rows_that_do_not_lie_side_by_side_are_taken_as_they_are():
    x, g = torch.randn(MANY, 9)[:, 1:6], torch.randn(MANY, 9)[:, 2:7]
    weight = torch.randn(5, 5)
    product = narrow.product(x, narrow.widen([weight], MANY, FINE)[0]).reshape(MANY, 5)
    torch.testing.assert_close(product, x @ weight, rtol=1e-5, atol=1e-5)
    total = torch.zeros(5, 5)
    narrow.add_columns_by_columns(total, x, g)
    torch.testing.assert_close(total, x.mT @ g, rtol=1e-4, atol=1e-3)


@pytest.mark.parametrize(("outer", "together"), [(1, 1), (2, 8), (4, 4), (5, 4), (8, 2), (12, 2), (16, 1), (64, 1)])
def test_rows_are_taken_together_until_a_tile_is_full(outer, together):
    matrix = torch.randn(3, outer)
    assert narrow.widen([matrix], MANY, FINE)[0].shape == (3 * together, outer * together)
    assert narrow.widen([matrix], MANY - 1, FINE)[0] is matrix
    assert narrow.widen([matrix], MANY, torch.tensor([float("inf")]))[0] is matrix


@pytest.mark.parametrize("channels", [(3, 4), (4, 3), (8, 8)])
@pytest.mark.parametrize("spec", ["n n -> n n", "n n n -> n n n", "n n n -> n n"])
def test_a_layer_with_many_rows_gives_the_same_with_and_without(spec, channels, monkeypatch):
    torch.manual_seed(0)
    layer = EquivariantLinear(spec, *channels, dtype=torch.float64)
    n = {2: 66, 3: 22}[len(layer.spec.source)]
    x = torch.randn(2, *[n] * len(layer.spec.source), channels[0], dtype=torch.float64, requires_grad=True)

    def passes():
        with torch.enable_grad(), Recording() as seen:
            y = layer(x)
            found = torch.autograd.grad(y.square().sum(), (x, *layer.parameters()))
        return (y, *found), seen.products

    wide, wide_products = passes()
    monkeypatch.setattr(narrow, "MANY_ROWS", 10**9)
    plain, plain_products = passes()
    assert wide_products != plain_products or spec == "n n n -> n n"
    for one, other in zip(wide, plain, strict=True):
        torch.testing.assert_close(one, other)
