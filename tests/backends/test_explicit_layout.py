"""Layers run on a layout that is one file, `tests/backends/explicit_layout.py`."""

import pytest
import torch
from torch.autograd import gradcheck
from torch.testing import assert_close

from bellnet import plan
from bellnet.backends import DenseLayout, Executor, Nodes
from tests.backends.explicit_layout import Explicit

SPECS = ["n n -> n n", "n n n -> n n", "u i -> i u", "u u i -> u i", "n ->", "-> n n", "n n -> n n n", "i u -> u i u"]


def _given(spec, sizes):
    made = plan(spec)
    lengths = tuple(sizes[name] for name in made.spec.node_sets)
    x = torch.randn(2, *[sizes[name] for name in made.spec.source], 2, dtype=torch.float64, requires_grad=True)
    weight = torch.randn(made.n_maps, 2, 3, dtype=torch.float64, requires_grad=True)
    bias = torch.randn(made.n_biases, 3, dtype=torch.float64, requires_grad=True)
    return made, lengths, (x, weight, bias)


@pytest.mark.parametrize("mean", [True, False])
@pytest.mark.parametrize("spec", SPECS)
def test_layers_on_the_explicit_layout_equal_dense_ones(spec, mean):
    made, lengths, inputs = _given(spec, {"n": 3, "u": 2, "i": 4})
    executor = Executor(made, (2,), (3,), mean=mean)
    layouts = DenseLayout(Nodes(lengths)), Explicit(lengths)
    wanted, came = (executor(layout, *((one,) for one in inputs))[0] for layout in layouts)
    assert_close(came, wanted)
    gradient = torch.randn_like(wanted)
    pairs = [torch.autograd.grad(one, inputs, gradient, allow_unused=True) for one in (came, wanted)]
    for one, other in zip(*pairs, strict=True):
        assert (one is None) == (other is None)
        if one is not None:
            assert_close(one, other)


def test_gradients_follow_from_the_five_operations():
    made, lengths, inputs = _given("n n -> n", {"n": 2})
    executor = Executor(made, (2,), (3,), mean=True)
    assert gradcheck(lambda *given: executor(Explicit(lengths), *((one,) for one in given)), inputs)
