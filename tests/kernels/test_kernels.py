"""Compiled kernels, compared with torch operations: every variant, any number of threads, tiles of every shape."""

import subprocess
import sys
from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.func import functional_call
from torch.testing import assert_close
from torch.testing._internal.two_tensor import TwoTensor
from torch.utils.flop_counter import FlopCounterMode

import bellnet as bn
from bellnet.backends import DenseLayout, Nodes, kernel_backend, pool_orbits
from bellnet.kernels import disabled, kernels
from tests.backends.subjects import randomise
from tests.kernels.layers import CASES, random_inputs, run, run_both

ROOT = Path(__file__).parents[2]

needs_kernels = pytest.mark.skipif(kernels() is None, reason="bellnet was built without kernels")


WIDE = [  # wide enough for zero rows to be skipped
    ("n n -> n n", {"n": 17}, (16, 160)),
    ("n n -> n n", {"n": 10}, (70, 48)),
    ("n n n -> n n n", {"n": 7}, (24, 36)),
    ("n n -> n", {"n": 30}, (33, 70)),
    ("u i -> u i", {"u": 9, "i": 21}, (48, 96)),
    ("n n ->", {"n": 13}, (64, 70)),
]


def _mostly_zeros(tensor, share):
    """The tensor with a share of zero rows, some with negative zeros, and others with one value."""
    width, kinds = tensor.shape[-1], torch.rand(tensor.shape[:-1]).unsqueeze(-1)
    single = torch.arange(width) == torch.randint(width, kinds.shape)
    stays = (kinds >= share) & (single | (kinds >= (1 + share) / 2))
    return torch.where(stays, tensor, torch.zeros_like(tensor).copysign(tensor)).detach()


@needs_kernels
@pytest.mark.parametrize("batch", [1, 2, 5])
@pytest.mark.parametrize(("spec", "sizes", "channels"), CASES)
def test_kernels_equal_torch_operations(spec, sizes, channels, batch, threads):
    layer = randomise(bn.EquivariantLinear(spec, *channels, dtype=torch.float64))
    for one, other in zip(*run_both(layer, *random_inputs(layer, sizes, batch)), strict=True):
        assert_close(one, other)


@needs_kernels
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.usefixtures("variant")
def test_every_supported_variant_equals_torch_operations(dtype):
    for spec, sizes, channels in [*CASES, *WIDE]:
        layer = bn.EquivariantLinear(spec, *channels, dtype=dtype)
        for share in (0, 0.9):
            given, gradient = (_mostly_zeros(one, share) for one in random_inputs(layer, sizes, 3, dtype))
            for one, other in zip(*run_both(layer, given.requires_grad_(), gradient), strict=True):
                assert_close(one, other, rtol=1e-4, atol=1e-4 * float(other.detach().abs().max()))


@needs_kernels
@pytest.mark.parametrize("normalize", ["mean", "sum"])
@pytest.mark.parametrize("share", [0.5, 0.97, 1.0])
@pytest.mark.parametrize(("spec", "sizes", "channels"), WIDE)
def test_skipped_zero_rows_do_not_change_results(spec, sizes, channels, share, normalize, threads):
    layer = randomise(bn.EquivariantLinear(spec, *channels, normalize=normalize, dtype=torch.float64))
    given, gradient = (_mostly_zeros(one, share) for one in random_inputs(layer, sizes, 3))
    cut = {name: torch.tensor([length, length // 2, 0]) for name, length in sizes.items()}
    padded = bn.Padded(given.requires_grad_(), cut if len(cut) > 1 else next(iter(cut.values())))
    for kind in (given, padded):
        for one, other in zip(*run_both(layer, kind, gradient), strict=True):
            assert_close(one, other)


@needs_kernels
@pytest.mark.parametrize("share", [0.5, 0.97])
def test_skipped_zero_rows_of_several_tensors_do_not_change_results(share, threads):
    layer = randomise(bn.EquivariantLinear("n n, n -> n n, n", (48, 20), (96, 30), dtype=torch.float64))

    def some(*channels):
        shapes = zip(((3, 9, 9), (3, 9)), channels, strict=True)
        return [_mostly_zeros(torch.randn(*shape, width, dtype=torch.float64), share) for shape, width in shapes]

    given, gradient = [one.requires_grad_() for one in some(48, 20)], some(96, 30)

    def runs():
        layer._executor._last = None
        results = layer(tuple(given))
        return *results, *torch.autograd.grad(results, (*given, *layer.parameters()), gradient)

    found = runs()
    with disabled():
        for one, other in zip(found, runs(), strict=True):
            assert_close(one, other)


@needs_kernels
@pytest.mark.parametrize("is_sparse", [False, True])
def test_zero_rows_are_skipped_in_wide_layers(is_sparse):
    """Then NaN does not propagate; elsewhere it does."""
    for width, is_passed_over in ((64, True), (4, False)):
        layer, x = bn.EquivariantLinear("n n -> n n", width, width), torch.zeros(3, 3, width, requires_grad=True)
        given = bn.Sparse(torch.cartesian_prod(torch.arange(3), torch.arange(3)).T, x.reshape(9, width), 3)
        with torch.no_grad():
            layer.weight.fill_(torch.nan)
        result = layer(given).values if is_sparse else layer(x)
        assert bool(result.isfinite().all()) == is_passed_over
        (of_x,) = torch.autograd.grad(result, x, torch.zeros_like(result))
        assert bool(of_x.isfinite().all()) == is_passed_over


@needs_kernels
@pytest.mark.parametrize("normalize", ["mean", "sum", "stored"])
@pytest.mark.parametrize("shares", [(0, 1), (0.5, 0.5), (0.97, 0.97), (1, 0)], ids=str)
def test_skipped_zero_rows_of_sparse_tensors_do_not_change_results(shares, normalize, threads, monkeypatch):
    layer = randomise(bn.EquivariantLinear("n n -> n n", 40, 70, normalize=normalize, dtype=torch.float64))
    index = torch.randint(40, (2, 500)).unique(dim=1)
    values, gradient = (
        _mostly_zeros(torch.randn(index.shape[1], width, dtype=torch.float64), share)
        for width, share in zip((40, 70), shares, strict=True)
    )

    def runs():
        x = bn.Sparse(index, values.requires_grad_(), 40)
        result = layer(x).values
        return result, *torch.autograd.grad(result, (values, *layer.parameters()), gradient)

    found = runs()
    with disabled():
        wanted = runs()
    for one, other in zip(found, wanted, strict=True):
        assert_close(one, other)


@needs_kernels
@given(st.data())
def test_any_channels_sizes_and_padding_equal_torch_operations(data):
    spec = data.draw(st.sampled_from([spec for spec, _, _ in CASES if "n n n n" not in spec]))
    channels = data.draw(st.integers(1, 40)), data.draw(st.integers(1, 40))
    normalize = data.draw(st.sampled_from(["mean", "sum"]))
    layer = randomise(bn.EquivariantLinear(spec, *channels, normalize=normalize, dtype=torch.float64))
    lengths = {name: data.draw(st.integers(0, 12)) for name in layer.spec.node_sets}
    batch = data.draw(st.integers(0, 4))
    given, gradient = random_inputs(layer, lengths, batch)
    if data.draw(st.booleans()):
        sizes = {
            name: torch.tensor(data.draw(st.lists(st.integers(0, length), min_size=batch, max_size=batch)), dtype=int)
            for name, length in lengths.items()
        }
        given = bn.Padded(given, sizes if len(sizes) > 1 else next(iter(sizes.values())))
    for one, other in zip(*run_both(layer, given, gradient), strict=True):
        assert_close(one, other)


@needs_kernels
@pytest.mark.parametrize("options", [{"symmetric": True}, {"hollow": True}, {"bias": False}], ids=str)
def test_plans_with_gaps_and_layers_without_bias_equal_torch_operations(options):
    layer = randomise(bn.EquivariantLinear("n n n -> n n", 3, 5, dtype=torch.float64, **options))
    for one, other in zip(*run_both(layer, *random_inputs(layer, {"n": 7}, 2)), strict=True):
        assert_close(one, other)


@needs_kernels
def test_tensors_with_any_strides_are_read():
    layer = randomise(bn.EquivariantLinear("n n -> n n", 4, 4, dtype=torch.float64))
    given, gradient = (one.detach().transpose(1, 3).transpose(2, 3) for one in random_inputs(layer, {"n": 4}, 2))
    for one, other in zip(*run_both(layer, given.requires_grad_(), gradient.expand(2, 4, 4, 4)), strict=True):
        assert_close(one, other)


@needs_kernels
def test_lazily_negated_tensors_are_negated():
    layer = randomise(bn.EquivariantLinear("n n -> n n", 2, 3, dtype=torch.float64))
    negated = torch._neg_view(torch.randn(2, 4, 4, 2, dtype=torch.float64))
    assert negated.is_neg()
    assert_close(layer(negated), layer(negated.resolve_neg()))


@needs_kernels
def test_sums_over_many_rows_are_accurate():
    """Numbers added one after the other to one sum would lose a hundred times as much."""
    layer = bn.EquivariantLinear("n n -> n n", 4, 4)
    given, gradient = random_inputs(layer, {"n": 300}, 2, torch.float32)
    wanted = run(layer.double(), given.detach().double().requires_grad_(), gradient.double())
    found = run(layer.float(), given, gradient)
    for one, true in zip(found, wanted, strict=True):
        assert (one.double() - true).norm() <= 10 * torch.finfo(torch.float32).eps * true.norm()


WEIGHTS = {
    "weight too narrow": {"weight": torch.zeros(15, 4, 2)},
    "bias of another type": {"bias": torch.ones(2, 4, dtype=torch.float64)},
    "bias elsewhere": {"bias": torch.ones(2, 4, device="meta")},
    "weight of another class": {"weight": TwoTensor(torch.ones(15, 4, 4), torch.ones(15, 4, 4))},
}
OUTCOMES = {"weight too narrow": "must match the size of tensor b", "bias elsewhere": "not on the expected device"}
"""The errors of torch operations; the others are computed."""


@needs_kernels
@pytest.mark.parametrize("name_of_case", WEIGHTS)
def test_kernels_refuse_weights_that_do_not_fit(name_of_case):
    """Torch's operations take them, or raise."""
    parameters = WEIGHTS[name_of_case]
    layer, x = bn.EquivariantLinear("n n -> n n", 4, 4), torch.randn(2, 5, 5, 4)
    layer(x)
    (name, given), *_ = parameters.items()
    backend = layer._executor._last[1]
    weights, biases = ([given], None) if name == "weight" else ([layer.weight], [given])
    assert isinstance(backend, kernel_backend.KernelBackend)
    assert backend.accepts([x], [layer.weight], [layer.bias])
    assert not backend.accepts([x], weights, biases)
    if (expected := OUTCOMES.get(name_of_case)) is None:
        assert functional_call(layer, parameters, (x,)).shape == (2, 5, 5, 4)
    else:
        with pytest.raises(RuntimeError, match=expected):
            functional_call(layer, parameters, (x,))


@needs_kernels
def test_batched_gradients_and_other_tensor_classes_run_torch_operations():
    layer = bn.EquivariantLinear("n n -> n n, n", 4, 4)
    x = torch.randn(2, 5, 5, 4, requires_grad=True)
    edges, nodes = layer(x)
    gradient = torch.randn(3, *nodes.shape)
    together = torch.autograd.grad(nodes, x, gradient, is_grads_batched=True, retain_graph=True)[0]
    one_by_one = [torch.autograd.grad(nodes, x, one, retain_graph=True)[0] for one in gradient]
    assert_close(together, torch.stack(one_by_one))
    wanted = torch.autograd.grad(edges, x, torch.ones_like(edges), retain_graph=True)[0]
    edges.register_hook(lambda gradient: TwoTensor(gradient, gradient))
    found = torch.autograd.grad(edges.sum(), x)[0]
    assert_close(found.a if isinstance(found, TwoTensor) else found, wanted)


@needs_kernels
def test_default_device_has_no_effect():
    x = torch.randn(2, 6, 6, 3)
    with torch.device("meta"):
        found = bn.Product("n n, n n -> n n")(x, x)
    assert_close(found, torch.einsum("zabc,zbdc->zadc", x, x) / 6)


@needs_kernels
def test_negative_sizes_count_as_no_nodes():
    layer, pool = bn.EquivariantLinear("n n -> n n", 4, 4), bn.InvariantPool("n n", reduce="max")
    x, nodes = torch.randn(2, 5, 5, 4), Nodes((5,), torch.tensor([[-3, -3]]))
    (result,) = layer._executor(DenseLayout(nodes), [x], [layer.weight], [layer.bias])
    assert not result.any()
    assert not pool_orbits(x, nodes, pool._orbits[0], "max").any()


@needs_kernels
def test_zero_tensors_without_memory_are_read():
    layer = bn.EquivariantLinear("n n -> n n", 4, 4)
    assert_close(layer(torch._efficientzerotensor((2, 5, 5, 4))), layer(torch.zeros(2, 5, 5, 4)))


@needs_kernels
def test_flop_counter_runs_torch_operations():
    layer, x = bn.EquivariantLinear("n n -> n n", 4, 8), torch.randn(2, 6, 6, 4)
    layer(x)
    with FlopCounterMode(display=False) as counter:
        layer(x)
    assert counter.get_total_flops() > 0


CHANGED = """if True:
    import torch
    import bellnet as bn

    index = torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])
    x, layer = bn.Sparse(index, torch.randn(4, 2), 3, is_sorted=True), bn.EquivariantLinear("n n -> n n", 2, 2)
    before = layer(x).values
    index.add_(10**12)
    x.index.add_(10**12)
    print(torch.equal(layer(x).values, before))
"""


@needs_kernels
def test_index_changed_after_a_call_has_no_effect():
    done = subprocess.run([sys.executable, "-c", CHANGED], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "True\n"), done.stderr


@needs_kernels
@pytest.mark.parametrize("n_rows", [1, 3, 9])
def test_wrong_number_of_values_is_refused_by_torch(n_rows):
    x = bn.Sparse(torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]]), torch.randn(4, 2), 3)
    x._values = torch.randn(n_rows, 2)
    with pytest.raises(RuntimeError, match="Number of indices"):
        bn.EquivariantLinear("n n -> n n", 2, 2)(x)


def _with_wide_rows(tensor):
    """What was read, which has no axes, in another precision, and all else as it is."""
    return tensor.double() if tensor.ndim == 1 else tensor


@needs_kernels
def test_tensors_replaced_by_saved_tensor_hooks_are_converted():
    for x in (torch.randn(2, 3, 3, 2), bn.Sparse(torch.tensor([[0, 1], [1, 2]]), torch.randn(2, 2), 3)):
        layer = bn.EquivariantLinear("n n -> n n", 2, 2)
        gradients = []
        for change in (torch.Tensor.float, torch.Tensor.double, _with_wide_rows):
            with torch.autograd.graph.saved_tensors_hooks(lambda tensor: tensor, change):
                y = layer(x)
            (y.values if isinstance(y, bn.Sparse) else y).sum().backward()
            gradients.append(layer.weight.grad)
            layer.weight.grad = None
        assert_close(gradients[1], gradients[0])
        assert_close(gradients[2], gradients[0])
