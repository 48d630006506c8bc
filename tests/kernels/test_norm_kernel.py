"""The fused steps between two sparse layers, compared with torch operations, forward and backward."""

import copy
from contextlib import nullcontext

import pytest
import torch
from torch.testing import assert_close
from torch.utils._python_dispatch import TorchDispatchMode

import bellnet as bn
from bellnet.backends import fused_norm
from bellnet.errors import SupportError, TensorError
from bellnet.kernels import disabled, kernels

pytestmark = pytest.mark.skipif(kernels() is None, reason="bellnet was built without kernels")


@pytest.fixture(autouse=True)
def _kernels_for_few_values(monkeypatch):
    monkeypatch.setattr(fused_norm, "MANY_VALUES", 1)


def graphs_of(channels, *, n_graphs=3, n=9, dtype=torch.float64, seed=0):
    """A batch of random graphs with values on edges and nodes, or one graph alone."""
    draw = torch.Generator().manual_seed(seed)
    several = []
    for _ in range(n_graphs):
        index = (torch.rand(n, n, generator=draw) < 0.6).fill_diagonal_(True).nonzero().T
        several.append(bn.Sparse(index, torch.randn(index.shape[1], channels, generator=draw, dtype=dtype), n))
    return bn.Sparse.pack(several) if n_graphs > 1 else several[0]


def block_of(channels, *, dropout=0.3, residual=True, dtype=torch.float64, **options):
    """The first block of a network, with factors, shifts and running statistics that are not those of the beginning."""
    torch.manual_seed(1)
    net = bn.InvariantNet(
        "n n", [channels] * 3, 2, norm="batch", dropout=dropout, residual=residual, normalize="stored", **options
    )
    block = net.blocks[0].to(dtype)
    with torch.no_grad():
        for one in (block.norm.weight, block.norm.bias, block.norm.running_mean):
            one.normal_()
        block.norm.running_var.uniform_(0.5, 2)
    return block


def ran(block, x, *, fused):
    """The output of a block, all gradients, and the running statistics afterwards."""
    block, values = copy.deepcopy(block), x.values.detach().clone().requires_grad_()
    torch.manual_seed(7)
    with nullcontext() if fused else disabled():
        found = block(x.with_values(values)).values
        assert (type(found.grad_fn).__name__ == "_FusedNormBackward") == fused
        gradients = torch.autograd.grad(found, [values, *block.parameters()], torch.randn_like(found))
    return [found, *gradients, block.norm.running_mean, block.norm.running_var]


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("residual", [True, False])
@pytest.mark.parametrize("dropout", [0.0, 0.3])
@pytest.mark.parametrize("n_graphs", [1, 3])
@pytest.mark.parametrize("channels", [1, 3, 16, 48, 70])
def test_fused_block_equals_torch_operations(channels, n_graphs, dropout, residual, training, threads):
    block = block_of(channels, dropout=dropout, residual=residual).train(training)
    x = graphs_of(channels, n_graphs=n_graphs)
    found, wanted = (ran(block, x, fused=fused) for fused in (True, False))
    assert_close(found, wanted)


def test_float32_differs_by_rounding_only(threads):
    x = graphs_of(48, n=60, dtype=torch.float32)
    block = block_of(48, dtype=torch.float32)
    found, wanted = (ran(block, x, fused=fused) for fused in (True, False))
    exact = ran(block.double(), x.map(torch.Tensor.double), fused=False)
    for one, other, right in zip(found, wanted, exact, strict=True):
        scale = right.abs().max()
        assert (one - right).abs().max() / scale < 1e-5 + 2 * (other - right).abs().max() / scale


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_moments_far_from_zero_are_exact(dtype, threads):
    rows = (torch.randn(1000, 5, dtype=torch.float64) * torch.tensor([1, 2, 1e-3, 5, 0]) + 1000).to(dtype)
    found = fused_norm.moments_of(rows)
    assert_close(found.mean, rows.double().mean(0), rtol=1e-7, atol=0)
    assert_close(found.variance, rows.double().var(0, correction=0), rtol=1e-4, atol=1e-12)


def test_nan_stays_nan():
    rows, (weight, bias, mean) = torch.randn(20, 4), torch.randn(3, 4)
    rows[5, 2] = torch.nan
    rows.requires_grad_()
    moments = fused_norm.Moments(mean.double(), torch.ones(4).double())
    options = {"eps": 1e-5, "training": False, "dropout": None, "residual": None}
    found = fused_norm.fused_norm_relu(rows, (weight, bias), moments, **options)
    wanted = torch.relu((rows - mean) / (1 + 1e-5) ** 0.5 * weight + bias)
    gradients = [torch.autograd.grad(one, rows, torch.ones_like(one))[0] for one in (found, wanted)]
    assert found.isnan().nonzero().tolist() == [[5, 2]]
    assert_close(found, wanted, equal_nan=True)
    assert_close(*gradients, equal_nan=True)


def test_second_derivatives_equal_finite_differences(monkeypatch):
    x, block = graphs_of(2, n=4), block_of(2, dropout=0.0)
    weight = block.norm.weight

    def run(values, factor):
        own = copy.copy(block.norm)
        own._parameters = {**block.norm._parameters, "weight": factor}
        with monkeypatch.context() as patch:
            patch.setitem(block._modules, "norm", own)
            return block(x.with_values(values)).values

    given = (x.values.clone().requires_grad_(), weight.detach().clone().requires_grad_())
    assert torch.autograd.gradgradcheck(run, given, atol=1e-4)


def test_frozen_parameters_get_no_gradient():
    x, block = graphs_of(3), block_of(3)
    block.norm.weight.requires_grad_(False)
    found = block(x).values
    found.sum().backward()
    assert block.norm.weight.grad is None
    assert block.norm.bias.grad is not None


def test_forward_hooks_of_parts_are_called():
    block, x, seen = block_of(3), graphs_of(3), []
    for part in (block.norm, block.activation, block.activation.module, block.dropout):
        handle = part.register_forward_hook(lambda module, *_: seen.append(module))
        block(x)
        handle.remove()
        assert seen == [part]
        seen.clear()
    handle = torch.nn.modules.module.register_module_forward_hook(lambda module, *_: seen.append(module))
    block(x)
    handle.remove()
    assert {block.norm, block.activation, block.dropout} <= set(seen)


@pytest.mark.filterwarnings("ignore:For backward hooks to be called:UserWarning")
@pytest.mark.parametrize("kind", ["full_backward_hook", "full_backward_pre_hook"])
def test_global_backward_hooks_are_called(kind):
    block, x, seen = block_of(3), graphs_of(3), []
    register = getattr(torch.nn.modules.module, f"register_module_{kind}")
    handle = register(lambda module, *_: seen.append(module))
    try:
        block(x).values.sum().backward()
    finally:
        handle.remove()
    assert block.activation.module in seen


class Seen(TorchDispatchMode):
    """Counts batch normalisations."""

    count = 0

    def __torch_dispatch__(self, function, types, arguments=(), options=None):
        self.count += "batch_norm" in str(function)
        return function(*arguments, **(options or {}))


def test_dispatch_modes_run_torch_operations():
    block, x = block_of(3), graphs_of(3)
    with Seen() as seen:
        block(x)
    assert seen.count == 1


def test_other_activations_and_norms_run_torch_operations(monkeypatch):
    monkeypatch.setattr(fused_norm, "_call", None)
    x = graphs_of(3)
    for options in ({"activation": "gelu"}, {"activation": torch.nn.PReLU}):
        block_of(3, **options)(x)
    net = bn.InvariantNet("n n", [3, 3], 2, norm="graph", residual=True).double()
    net.blocks[0](x)


def test_few_values_run_torch_operations(monkeypatch):
    monkeypatch.setattr(fused_norm, "_call", None)
    monkeypatch.setattr(fused_norm, "MANY_VALUES", 10**6)
    block_of(3)(graphs_of(3))


@pytest.mark.parametrize("wrong", [-1, 3, 10**6])
def test_missing_graphs_are_refused(wrong):
    rows, factors = torch.randn(5, 4), torch.ones(3, 4)
    graphs = torch.tensor([0, 0, 1, wrong, 2])
    options = {"eps": 1e-5, "training": True, "residual": None}
    with pytest.raises(SupportError, match="was changed after it was made"):
        fused_norm.fused_norm_relu(
            rows,
            (torch.ones(4), torch.zeros(4)),
            fused_norm.moments_of(rows),
            dropout=fused_norm.DropoutMask(factors, graphs),
            **options,
        )


def test_fused_network_trains_like_torch_operations():
    x = graphs_of(3, n_graphs=4)
    losses = []
    for context in (nullcontext(), disabled()):
        with context:
            torch.manual_seed(0)
            options = {"norm": "batch", "dropout": 0.2, "residual": True, "normalize": "stored"}
            net = bn.InvariantNet(
                "n n", [3, 8, 8, 8], 2, pool_over="stored", reduce=("mean", "max"), **options
            ).double()
            optimizer = torch.optim.AdamW(net.parameters(), lr=0.01)
            for _ in range(10):
                loss = net(x).square().sum()
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                losses.append(loss.item())
            losses.append(net.eval()(x).sum().item())
    assert_close(torch.tensor(losses[:11]), torch.tensor(losses[11:]))


def both(run):
    """The result of a function of a block by fused kernels, and by torch operations."""
    found = []
    for context in (nullcontext(), disabled()):
        with context:
            torch.manual_seed(3)
            found.append(run(block_of(4)))
    return found


def test_parts_in_different_modes_equal_torch_operations():
    x = graphs_of(4)

    def run(block, norm, dropout):
        block.norm.train(norm)
        block.dropout.train(dropout)
        values = x.values.clone().requires_grad_()
        found = block(x.with_values(values)).values
        found.square().sum().backward()
        return found, values.grad, block.norm.running_mean

    for norm, dropout in ((True, False), (False, True)):
        assert_close(*both(lambda block, n=norm, d=dropout: run(block, n, d)))


@pytest.mark.parametrize("eps", [0.0, 1e-3, 10.0])
def test_any_eps_equals_torch_operations(eps):
    x = graphs_of(4)

    def run(block):
        block.norm.eps = eps
        with torch.no_grad():
            block.layer.weight[..., 1] = 0  # a channel of one value, whose variance is zero
        values = x.values.clone().requires_grad_()
        block(x.with_values(values)).values.square().sum().backward()
        return values.grad, block.norm.weight.grad, block.norm.bias.grad

    assert_close(*both(run))


def test_gradients_may_have_any_strides():
    x = graphs_of(4)
    wide = torch.randn(4, len(x.values), dtype=torch.float64).T

    def run(block):
        values = x.values.clone().requires_grad_()
        found = block(x.with_values(values)).values
        return [
            torch.autograd.grad(found, values, pull, retain_graph=True) for pull in (wide, wide[:1].expand_as(wide))
        ]

    assert_close(*both(run))


def test_batched_gradients_and_transforms_equal_torch_operations():
    x = graphs_of(4)
    several = torch.randn(3, *x.values.shape, dtype=torch.float64)

    def run(block):
        block.dropout.p = 0.0
        values = x.values.clone().requires_grad_()
        found = block(x.with_values(values)).values
        batched = torch.autograd.grad(found, [values, block.norm.weight], several, is_grads_batched=True)
        block.eval()
        slope = torch.func.grad(lambda given: block(x.with_values(given)).values.square().sum())(x.values)
        _, tangent = torch.func.jvp(lambda given: block(x.with_values(given)).values, (x.values,), (several[0],))
        return *batched, slope, tangent

    assert_close(*both(run))


def test_tensors_replaced_by_saved_tensor_hooks_are_checked(monkeypatch):
    x, block = graphs_of(4), block_of(4, dropout=0.0)

    def gradient(unpack, *, without_kernels=False):
        values = x.values.clone().requires_grad_()
        with torch.autograd.graph.saved_tensors_hooks(lambda saved: saved, unpack):
            found = fused_norm.fused_norm_relu(
                values,
                (block.norm.weight, block.norm.bias),
                fused_norm.moments_of(values),
                eps=1e-5,
                training=True,
                dropout=None,
                residual=None,
            )
        if without_kernels:
            monkeypatch.setattr(fused_norm, "_call", None)
        return torch.autograd.grad(found.sum(), values)[0]

    assert_close(gradient(torch.Tensor.float), gradient(torch.clone), atol=1e-5, rtol=1e-4)
    with pytest.raises(TensorError, match="saved-tensor hook"):  # and not by a kernel
        gradient(lambda saved: torch.cat([saved, saved]) if saved.ndim == 2 else saved, without_kernels=True)


def test_bias_may_change_before_backward():
    x = graphs_of(4)

    def run(block):
        block.dropout.p = 0.0
        found = block(x).values
        with torch.no_grad():
            block.norm.bias.add_(100)
        found.sum().backward()
        return block.norm.bias.grad

    assert_close(*both(run))


def test_supports_made_in_inference_mode_serve_training():
    with torch.inference_mode():
        made = graphs_of(4)

    def run(block):
        found = block(bn.Sparse.on(made.support, made.values.clone())).values
        found.sum().backward()
        return found, block.norm.weight.grad

    assert_close(*both(run))


def test_running_statistics_do_not_depend_on_the_default_dtype():
    x = graphs_of(4, n=200, n_graphs=2)  # more rows than half precision can count

    def run(block):
        torch.set_default_dtype(torch.float16)
        try:
            block(x)
        finally:
            torch.set_default_dtype(torch.float32)
        return block.norm.running_mean, block.norm.running_var

    assert_close(*both(run))


@pytest.mark.filterwarnings("ignore:.torch.jit.trace:DeprecationWarning", "ignore::torch.jit.TracerWarning")
def test_unsupported_blocks_run_torch_operations(monkeypatch):
    monkeypatch.setattr(fused_norm, "_call", None)

    class Other(bn.ChannelDropout):
        pass

    x, block = graphs_of(4), block_of(4)
    block.dropout = Other(0.1, "n n")
    block(x)
    block = block_of(4)
    block.norm.running_mean = block.norm.running_var = None
    block(x)
    block = block_of(4, dropout=0.0).eval().requires_grad_(False)
    torch.jit.trace(lambda values: block(x.with_values(values)).values.detach(), x.values, check_trace=False)
    one = bn.Sparse(torch.tensor([[0], [1]]), torch.ones(1, 4, dtype=torch.float64), 3)
    block(one)


def test_gradient_of_relu_is_zero_at_zero():
    x = graphs_of(4)

    def run(block):
        torch.nn.init.zeros_(block.norm.weight)
        torch.nn.init.zeros_(block.norm.bias)
        block(x).values.sum().backward()
        return block.norm.weight.grad, block.norm.bias.grad

    found, wanted = both(run)
    assert not found[1].any()
    assert_close(found, wanted)


def test_default_device_has_no_effect():
    x = graphs_of(4)

    def run(block):
        values = x.values.clone().requires_grad_()
        with torch.device("meta"):
            found = block(x.with_values(values)).values
            gradient = torch.autograd.grad(found, values, torch.ones_like(found))[0]
        return found, gradient, block.norm.running_mean

    assert_close(*both(run))


def test_running_statistics_may_change_before_backward():
    x, block = graphs_of(4), block_of(4).eval()
    gradients = []
    for factor in (1, 4):
        found = block(x).values
        block.norm.running_var.mul_(factor)
        gradients.append(torch.autograd.grad(found.square().sum(), block.norm.weight)[0])
    assert_close(*gradients)


def test_gradients_have_a_graph_only_with_create_graph():
    x, block = graphs_of(4), block_of(4)
    found = block(x).values
    several = torch.ones(2, *found.shape, dtype=found.dtype)
    (gradient,) = torch.autograd.grad(found, [block.norm.weight], several, is_grads_batched=True, retain_graph=True)
    assert not gradient.requires_grad
    (gradient,) = torch.autograd.grad(found, [block.norm.weight], several[0], create_graph=True)
    assert gradient.requires_grad
