"""Forward-mode derivatives of gradients: tensors saved for the backward pass carry tangents, too."""

import pytest
import torch
import torch.autograd.forward_ad as forward
from hypothesis import given, settings
from hypothesis import strategies as st

import bellnet as bn

SPECS = ["n n -> n n", "n n ->", "n n n -> n", "u i -> u i", "n -> n n"]


def inputs(spec, layout, seed):
    """A layer in double precision, a function of values that applies it, and values for it."""
    generator = torch.Generator().manual_seed(seed)
    layer = bn.EquivariantLinear(spec, 2, 3, dtype=torch.float64)
    with torch.no_grad():
        for parameter in layer.parameters():
            parameter.copy_(torch.randn(parameter.shape, generator=generator, dtype=torch.float64))
    axes = layer.spec.source
    dense = torch.randn(2, *[4] * len(axes), 2, generator=generator, dtype=torch.float64)
    if layout == "dense":
        return layer, layer, dense
    if layout == "padded":
        sizes = {name: torch.tensor([4, 2]) for name in dict.fromkeys(axes)}
        sizes = sizes if len(sizes) > 1 else next(iter(sizes.values()))
        return layer, lambda values: as_tensor(layer(bn.Padded(values, sizes))), dense
    stored = torch.rand(dense.shape[:-1], generator=generator) < 0.6
    sparse = bn.Sparse.from_dense(dense * stored.unsqueeze(-1), " ".join(axes))
    support = sparse if len(layer.spec.target) > 1 and layer.spec.target != axes else None
    if support is not None:
        support = bn.Sparse.from_dense(torch.ones(2, 4, 4, 1, dtype=torch.float64), "n n")
    return layer, lambda values: as_tensor(layer(sparse.with_values(values), support=support)), sparse.values


def as_tensor(result):
    return result if torch.is_tensor(result) else result.values


@settings(max_examples=40, deadline=None)
@given(st.sampled_from(SPECS), st.sampled_from(["dense", "padded", "sparse"]), st.integers(0, 2**31), st.booleans())
def test_tangents_of_gradients_are_those_of_double_backward(spec, layout, seed, also_along_weight):
    layer, function, x = inputs(spec, layout, seed)
    generator = torch.Generator().manual_seed(seed + 1)
    along = torch.randn(x.shape, generator=generator, dtype=torch.float64)
    direction = torch.randn(layer.weight.shape, generator=generator, dtype=torch.float64) * also_along_weight
    weight, bias = layer.weight.detach().clone(), layer.bias.detach().clone()

    def gradients(x, weight, bias, create_graph=False):
        called = torch.func.functional_call
        loss = called(Caller(layer, function), {"layer.weight": weight, "layer.bias": bias}, (x,)).pow(3).sum()
        return torch.autograd.grad(loss, [x, weight, bias], create_graph=create_graph)

    with forward.dual_level():
        dual = [
            forward.make_dual(x.clone().requires_grad_(), along),
            forward.make_dual(weight.clone().requires_grad_(), direction),
            bias.clone().requires_grad_(),
        ]
        found = [forward.unpack_dual(gradient).tangent for gradient in gradients(*dual)]
    plain = [x.clone().requires_grad_(), weight.clone().requires_grad_(), bias.clone().requires_grad_()]
    first = gradients(*plain, create_graph=True)
    for gradient, tangent in zip(first, found, strict=True):
        probe = torch.zeros_like(gradient, requires_grad=True)
        pulled = torch.autograd.grad(gradient, plain[:2], probe, create_graph=True, allow_unused=True)
        pairs = [(p, t) for p, t in zip(pulled, (along, direction), strict=True) if p is not None]
        expected = torch.autograd.grad(sum((p * t).sum() for p, t in pairs), probe)[0]
        torch.testing.assert_close(tangent, expected)


class Caller(torch.nn.Module):
    """A function of a layer, as a module whose parameters are those of the layer."""

    def __init__(self, layer, function):
        super().__init__()
        self.layer = layer
        self.function = function

    def forward(self, x):
        """Call the function."""
        return self.function(x)


@pytest.mark.parametrize("channels", [(2, 3), (3, 2)])
def test_the_weight_gradient_carries_a_tangent(channels):
    torch.manual_seed(0)
    layer = bn.EquivariantLinear("n n -> n n", *channels, dtype=torch.float64)
    x = torch.randn(2, 4, 4, channels[0], dtype=torch.float64)
    along = torch.randn_like(x)

    def gradient(x):
        return torch.autograd.grad(layer(x).pow(3).sum(), layer.weight)[0]

    with forward.dual_level():
        tangent = forward.unpack_dual(gradient(forward.make_dual(x, along))).tangent
    step = 1e-6
    torch.testing.assert_close(tangent, (gradient(x + step * along) - gradient(x - step * along)) / (2 * step))
