"""Pooling by compiled kernels, compared with torch operations: the same values, and the same gradients."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.testing import assert_close
from torch.utils._python_dispatch import TorchDispatchMode

import bellnet as bn
from bellnet.backends import Nodes, pool_orbits, pooling
from bellnet.kernels import disabled, kernels

pytestmark = pytest.mark.skipif(kernels() is None, reason="bellnet was built without kernels")

REDUCTIONS = ("max", "sum", "mean")
SIZES = {"n": 6, "u": 5, "i": 3}
SHAPES = ["n", "n n", "n n n", "n n n n", "u i", "u u i", "i u u", "u i u i", "i u i"]


def _pooled(pool, x, gradient):
    """What comes of a tensor or a Padded, and the gradient of its values."""
    values = x.values if isinstance(x, bn.Padded) else x
    pooled = pool(x)
    return pooled, *torch.autograd.grad(pooled, values, gradient)


def _compare(pool, x, **options):
    """Pool by kernels and by torch operations: a maximum is the same to the last bit."""
    if pool.reduce == "max":
        options = {"rtol": 0, "atol": 0}
    gradient = torch.randn_like(pool(x))
    found = _pooled(pool, x, gradient)
    with disabled():
        wanted = _pooled(pool, x, gradient)
    for one, other in zip(found, wanted, strict=True):
        assert_close(one, other, equal_nan=True, **options)


def _tensor(pool, channels, batch=3, **options):
    return torch.randn(batch, *[SIZES[name] for name in pool.shapes[0]], channels, **options).requires_grad_()


def test_dense_and_padded_tensors_are_pooled_by_kernels(monkeypatch):
    for name in ("_pool_functional", "_write_gradient"):
        monkeypatch.setattr(pooling, name, None)
    for reduce in REDUCTIONS:
        pool = bn.InvariantPool("n n", reduce)
        x = _tensor(pool, 2)
        for one in (x, bn.Padded(x, torch.tensor([2, 6, 0]))):
            assert pool(one).sum().backward() is None


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("reduce", REDUCTIONS)
@pytest.mark.parametrize("shape", SHAPES)
def test_every_shape_equals_torch_operations(shape, reduce, dtype, threads):
    pool = bn.InvariantPool(shape, reduce)
    for channels in (1, 5, 16):
        for batch in (1, 2, 5):
            _compare(pool, _tensor(pool, channels, batch, dtype=dtype))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("reduce", REDUCTIONS)
@pytest.mark.parametrize("channels", [0, 1, 2, 3, 7, 8, 15, 16, 17, 33, 64, 127, 130, 256])
def test_any_number_of_channels_equals_torch_operations(channels, reduce, dtype):
    pool = bn.InvariantPool("n n", reduce)
    options = {"rtol": 1e-5, "atol": 1e-4} if dtype == torch.float32 else {}  # sums of 5000 numbers of either sign
    for n in (1, 2, 21, 70):
        _compare(pool, torch.randn(2, n, n, channels, dtype=dtype, requires_grad=True), **options)


@pytest.mark.parametrize("reduce", REDUCTIONS)
@pytest.mark.parametrize("shape", ["n", "n n", "n n n", "u i"])
def test_empty_tensors_are_pooled_to_zeros(shape, reduce):
    pool = bn.InvariantPool(shape, reduce)
    for batch, n, channels in ((0, 3, 2), (2, 0, 3), (0, 0, 1), (2, 0, 0), (1, 2, 0)):
        x = torch.randn(batch, *[n] * len(pool.shapes[0]), channels, requires_grad=True)
        _compare(pool, x)
        if n == 0:
            assert not pool(x).count_nonzero()


def test_tensor_without_axes_is_its_own_orbit():
    x = torch.randn(3, 4, requires_grad=True)
    for reduce in REDUCTIONS:
        _compare(bn.InvariantPool("", reduce), x)
        assert torch.equal(bn.InvariantPool("", reduce)(x), x)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("reduce", REDUCTIONS)
@pytest.mark.parametrize("shape", ["n", "n n", "u u i"])
def test_infinity_and_nan_equal_torch_operations(shape, reduce, dtype, threads):
    pool = bn.InvariantPool(shape, reduce)
    for value in (torch.nan, torch.inf, -torch.inf):
        for channels in (3, 16, 40):
            for share in (0.02, 0.5, 1):
                x = _tensor(pool, channels, dtype=dtype).detach()
                _compare(pool, x.masked_fill(torch.rand_like(x) < share, value).requires_grad_())


@given(st.data())
def test_any_sizes_padding_ties_and_nan_equal_torch_operations(data):
    pool = bn.InvariantPool(data.draw(st.sampled_from(SHAPES)), data.draw(st.sampled_from(REDUCTIONS)))
    channels, batch = data.draw(st.integers(1, 40)), data.draw(st.integers(0, 4))
    most = 5 if len(pool.shapes[0]) > 2 else 20
    lengths = {name: data.draw(st.integers(0, most)) for name in dict.fromkeys(pool.shapes[0])}
    dtype = data.draw(st.sampled_from([torch.float32, torch.float64]))
    shape = (batch, *[lengths[name] for name in pool.shapes[0]], channels)
    x = torch.randint(-2, 3, shape).to(dtype)
    special = data.draw(st.lists(st.sampled_from([torch.nan, torch.inf, -torch.inf]), max_size=3))
    for value in special:
        x = x.masked_fill(torch.rand(shape) < data.draw(st.sampled_from([0.01, 0.5, 1])), value)
    x.requires_grad_()
    if data.draw(st.booleans()):
        sizes = {
            name: torch.tensor(data.draw(st.lists(st.integers(0, length), min_size=batch, max_size=batch)), dtype=int)
            for name, length in lengths.items()
        }
        x = bn.Padded(x, sizes if len(sizes) > 1 else next(iter(sizes.values())))
    _compare(pool, x)


@pytest.mark.parametrize("reduce", REDUCTIONS)
def test_padded_graphs_equal_torch_operations_on_any_number_of_threads(reduce, threads):
    for shape in ("n", "n n", "n n n"):
        pool = bn.InvariantPool(shape, reduce)
        for sizes in ([4], [6, 1], [3, 0, 6, 2, 5]):
            x = _tensor(pool, 3, len(sizes), dtype=torch.float64)
            _compare(pool, bn.Padded(x, torch.tensor(sizes)))


@pytest.mark.parametrize("reduce", REDUCTIONS)
def test_padding_is_not_read_and_its_gradient_is_zero(reduce, threads):
    pool, sizes = bn.InvariantPool("n n", reduce), [4, 0, 1]
    nodes, clean = Nodes((6,), torch.tensor([sizes])), torch.zeros(3, 6, 6, 5)
    for graph, size in enumerate(sizes):
        clean[graph, :size, :size] = torch.randn(size, size, 5)
    inside = nodes.inside((0, 0)).expand_as(clean)
    dirty = clean.masked_fill(~inside, torch.nan).requires_grad_()
    pooled = pool_orbits(dirty, nodes, pool._orbits[0], reduce)
    assert torch.equal(pooled, pool_orbits(clean, nodes, pool._orbits[0], reduce))
    (gradient,) = torch.autograd.grad(pooled.sum(), dirty)
    assert gradient[inside].isfinite().all()
    assert not gradient[~inside].count_nonzero()


@pytest.mark.parametrize("channels", [1, 3, 16, 70])
def test_nan_affects_only_its_orbit_and_channel(channels, threads):
    for position in ((2, 2), (2, 3), (5, 0)):
        x = torch.randn(1, 6, 6, channels)
        x[0, *position, 0] = torch.nan
        x.requires_grad_()
        pooled = bn.InvariantPool("n n")(x)
        orbit = int(position[0] != position[1])
        assert pooled.isnan().nonzero().tolist() == [[0, orbit * channels]]
        (gradient,) = torch.autograd.grad(pooled.sum(), x)
        spoilt = torch.zeros_like(gradient, dtype=torch.bool)
        spoilt[..., 0] = torch.eye(6, dtype=torch.bool) ^ bool(orbit)
        assert torch.equal(gradient.isnan(), spoilt)


@pytest.mark.parametrize("channels", [1, 3, 16, 33])
def test_equal_maxima_share_the_gradient_among_all_threads(channels, threads):
    x = torch.zeros(1, 7, 7, channels, requires_grad=True)
    bn.InvariantPool("n n")(x).sum().backward()
    expected = torch.eye(7) / 7 + (1 - torch.eye(7)) / 42
    assert_close(x.grad, expected[None, :, :, None].expand_as(x))


@pytest.mark.parametrize("reduce", REDUCTIONS)
def test_tensors_with_any_strides_are_read(reduce):
    x = torch.randn(2, 5, 4, 4).movedim(1, -1).requires_grad_()
    _compare(bn.InvariantPool("n n", reduce), x)
    pooled = bn.InvariantPool("n n", reduce)(x)
    (gradient,) = torch.autograd.grad(pooled, x, torch.ones(1).expand_as(pooled), retain_graph=True)
    assert torch.equal(gradient, torch.autograd.grad(pooled, x, torch.ones_like(pooled))[0])


@pytest.mark.usefixtures("variant")
def test_every_supported_variant_equals_torch_operations():
    for shape in ("n n", "u u i"):
        for reduce in REDUCTIONS:
            pool = bn.InvariantPool(shape, reduce)
            for channels in (3, 16, 71):
                for dtype in (torch.float32, torch.float64):
                    _compare(pool, _tensor(pool, channels, dtype=dtype))


@pytest.mark.parametrize("reduce", ["sum", "mean"])
@pytest.mark.parametrize("channels", [1, 3, 16])
def test_sums_of_many_values_are_accurate(channels, reduce):
    """Numbers added one after the other to one sum would lose a hundred times as much."""
    x, pool = torch.rand(1, 700, 700, channels), bn.InvariantPool("n n", reduce)
    true = pool(x.double())
    assert (pool(x) - true).norm() <= 3 * torch.finfo(torch.float32).eps * true.norm()


@pytest.mark.parametrize("reduce", REDUCTIONS)
def test_second_derivatives_equal_finite_differences(reduce):
    x = torch.randn(2, 3, 3, 2, dtype=torch.float64, requires_grad=True)
    pool = bn.InvariantPool("n n", reduce)
    assert torch.autograd.gradcheck(pool, x)
    assert torch.autograd.gradgradcheck(lambda x: pool(x * x), x)


class _Seen(TorchDispatchMode):
    """Lists the operations that run."""

    def __init__(self):
        super().__init__()
        self.names = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.names.append(func.name())
        return func(*args, **(kwargs or {}))


@pytest.mark.parametrize("backward_too", [False, True])
def test_dispatch_modes_run_torch_operations(backward_too):
    x = torch.randn(2, 4, 4, 3, requires_grad=True)
    pool = bn.InvariantPool("n n")
    wanted = _pooled(pool, x, torch.ones(2, 6))
    with _Seen() as forward:
        pooled = pool(x)
    assert "aten::amax" in forward.names
    found = pooled if backward_too else pool(x)
    with _Seen() as backward:
        (gradient,) = torch.autograd.grad(found, x, torch.ones(2, 6))
    assert "aten::eq_.Tensor" in backward.names
    assert_close((found, gradient), wanted)
