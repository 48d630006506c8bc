"""Layers that are run by kernels and by torch operations."""

import torch

import bellnet as bn
from bellnet.kernels import disabled

CASES = [
    ("n n -> n n", {"n": 17}, (16, 32)),
    ("n n -> n n", {"n": 8}, (3, 1)),
    ("n n -> n n", {"n": 40}, (8, 8)),
    ("n n n -> n n n", {"n": 9}, (4, 8)),
    ("n n n n -> n n n n", {"n": 4}, (2, 2)),
    ("n n -> n", {"n": 70}, (5, 33)),
    ("n -> n n n", {"n": 11}, (20, 4)),
    ("n n ->", {"n": 13}, (64, 70)),
    ("u i -> u i", {"u": 9, "i": 21}, (7, 48)),
    ("u u i -> i u", {"u": 6, "i": 10}, (12, 17)),
]


def run(layer, x, gradient, **options):
    """The result of a layer, and the gradients of its input and parameters."""
    result = layer(x, **options)
    values = result.values if isinstance(result, bn.Padded) else result
    inside = x.values if isinstance(x, bn.Padded) else x
    return values, *torch.autograd.grad(values, (inside, *layer.parameters()), gradient)


def run_both(layer, x, gradient, **options):
    """The same by kernels, and by torch operations."""
    found = run(layer, x, gradient, **options)
    with disabled():
        layer._executor._last = None
        wanted = run(layer, x, gradient, **options)
    layer._executor._last = None
    return found, wanted


def random_inputs(layer, sizes, batch, dtype=torch.float64):
    """A random input and a gradient of the output of a layer, for node sets of these sizes."""
    x, gradient = (
        torch.randn(batch, *[sizes[name] for name in shape], channels, dtype=dtype)
        for shape, channels in ((layer.spec.source, layer.in_channels), (layer.spec.target, layer.out_channels))
    )
    return x.requires_grad_(), gradient
