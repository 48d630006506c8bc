"""The result for a graph does not depend on other graphs of its batch, whatever their values."""

import pytest
import torch

import bellnet as bn

# Odd numbers of rows: the last of one graph and the first of the next are the ones that are likely to be mixed up.
CASES = [("n n -> n n", 1000, 5), ("n n -> n n", 4000, 3), ("u i -> u i", 1000, 5), ("n n n -> n n n", 400, 3)]


def non_finite(value, spec, batch, n):
    """A batch with a bad number in its first graph, the same with a good one, and a layer with few channels."""
    torch.manual_seed(0)
    layer = bn.EquivariantLinear(spec, 2, 3)
    good = torch.randn(batch, *[n] * len(layer.spec.source), 2)
    bad = good.clone()
    bad.view(batch, -1)[0, -1] = value
    return layer, good, bad


@pytest.mark.parametrize("value", [float("inf"), float("nan"), -float("inf")])
@pytest.mark.parametrize(("spec", "batch", "n"), CASES)
def test_nan_and_infinity_stay_in_their_graph(spec, batch, n, value):
    layer, good, bad = non_finite(value, spec, batch, n)
    with torch.no_grad():
        expected, found = layer(good), layer(bad)
    torch.testing.assert_close(found[1:], expected[1:])
    assert not found[0].isfinite().any()


@pytest.mark.parametrize("value", [float("inf"), float("nan")])
@pytest.mark.parametrize(("spec", "batch", "n"), CASES)
def test_gradients_of_nan_and_infinity_stay_in_their_graph(spec, batch, n, value):
    layer, good, bad = non_finite(value, spec, batch, n)
    pulled = []
    for outer in (good, bad):
        x = torch.randn(good.shape, generator=torch.Generator().manual_seed(1)).requires_grad_()
        layer(x).mul(outer[..., :1]).sum().backward()
        pulled.append(x.grad)
    torch.testing.assert_close(pulled[1][1:], pulled[0][1:])


@pytest.mark.parametrize("value", [float("inf"), float("nan")])
def test_nan_and_infinity_stay_in_their_graph_of_a_sparse_batch(value):
    layer, good, bad = non_finite(value, "n n -> n n", 1000, 5)
    sparse = bn.Sparse.from_dense(good, "n n", keep_zeros=True)
    with torch.no_grad():
        expected = layer(sparse).values
        found = layer(sparse.with_values(bad.reshape(-1, 2))).values
    torch.testing.assert_close(found[25:], expected[25:])
    assert not found[:25].isfinite().any()


def test_overflowing_sums_stay_in_their_graph():
    torch.manual_seed(0)
    layer = bn.EquivariantLinear("n n -> n n", 2, 3, normalize="sum")
    x = torch.randn(1000, 5, 5, 2)
    with torch.no_grad():
        expected = layer(x)
        x[0] = 3e38
        torch.testing.assert_close(layer(x)[1:], expected[1:])
