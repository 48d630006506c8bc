import pytest
import torch
from torch import nn

from bellnet import EquivariantLinear, InvariantPool, Padded, errors, testing
from tests.testing import faults

SPECS = ["n n -> n n", "n -> n", "n n ->", "n n n -> n", "n -> n n", "u i -> i u", "u u i -> u", "-> n n", "u -> u i"]


@pytest.mark.parametrize("nan", [False, True])
@pytest.mark.parametrize("spec", SPECS)
@pytest.mark.parametrize("options", [{}, {"normalize": "sum"}, {"normalize": "sum", "basis": "orbit"}])
def test_layers_are_padding_invariant(spec, options, nan):
    layer = EquivariantLinear(spec, 2, 3, **options)
    testing.assert_padding_invariant(layer, spec, nan=nan, empty=True, dtype=torch.float64)


@pytest.mark.parametrize("nan", [False, True])
@pytest.mark.parametrize("spec", ["n n, n -> n n, n", "u i, u, -> i, u i,", "n -> n n, n", "n n, n ->", "u, i -> u i"])
def test_layers_between_several_tensors_are_padding_invariant(spec, nan):
    layer = EquivariantLinear(spec, 2, 3)
    testing.assert_padding_invariant(layer, spec, nan=nan, empty=True, dtype=torch.float64)


def test_planted_faults_of_one_of_several_tensors_are_found_and_named():
    layer = EquivariantLinear("n n, n -> n n, n", (2, 1), 3)

    def mean_counts_padding(x):
        edges, nodes = layer(x)
        if isinstance(nodes, Padded):
            nodes = nodes.with_values(nodes.values + x[1].values.mean(1, keepdim=True))
            return edges, nodes
        return edges, nodes + x[1].mean(1, keepdim=True)

    with pytest.raises(errors.EquivarianceError, match=r"the output\[1\] of graph 0"):
        testing.assert_padding_invariant(mean_counts_padding, "n n, n -> n n, n", in_channels=(2, 1))

    def leaves_garbage_outside(x):
        edges, nodes = layer(x)
        if isinstance(nodes, Padded):
            inside = torch.arange(nodes.shape[1]) < nodes.sizes.unsqueeze(1)
            return edges, nodes.with_values(torch.where(inside.unsqueeze(-1), nodes.values, 7.0))
        return edges, nodes

    with pytest.raises(errors.EquivarianceError, match=r"the output\[1\] outside the true sizes"):
        testing.assert_padding_invariant(leaves_garbage_outside, "n n, n -> n n, n", in_channels=(2, 1))


def test_the_gradient_of_one_of_several_tensors_is_named():
    class Sees(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x.clone()

        @staticmethod
        def backward(ctx, gradient):
            return gradient * gradient.shape[0]  # one graph or several

    def module(x):
        edges, nodes = x
        if isinstance(nodes, Padded):
            return edges, Padded(Sees.apply(nodes.values), nodes.sizes)
        return edges, Sees.apply(nodes)

    with pytest.raises(errors.EquivarianceError, match=r"the gradient at x\[1\] of graph 0"):
        testing.assert_padding_invariant(module, "n n, n -> n n, n", in_channels=(2, 1), zero_outside=False)


@pytest.mark.parametrize("nan", [False, True])
@pytest.mark.parametrize("reduce", ["max", "sum", "mean"])
@pytest.mark.parametrize("shape", ["n", "n n", "u i", "n n n"])
def test_pooling_is_padding_invariant(shape, reduce, nan):
    pool = InvariantPool(shape, reduce)
    testing.assert_padding_invariant(pool, f"{shape} ->", in_channels=2, nan=nan, empty=True)


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize(
    ("module", "spec"),
    [
        (faults.MeanCountsPadding(), "n ->"),
        (faults.MaxSeesPadding(), "n ->"),
        (faults.MaxAgainstZero(), "n ->"),
        (faults.LeavesGarbageOutside(), "n n -> n"),
        (faults.SwapsDivisors(), "n n -> n"),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, nn.Module) else None,
)
def test_planted_faults_are_found_with_any_seed(module, spec, seed):
    with pytest.raises(errors.EquivarianceError):
        testing.assert_padding_invariant(module, spec, seed=seed)


@pytest.mark.parametrize(
    "module", [faults.WrongGradient(), faults.WrongGradientOfParameters(), faults.GradientLeaksOut()], ids=type
)
def test_planted_faults_of_the_gradient_are_found_by_gradients_alone(module):
    testing.assert_padding_invariant(module, "n n -> n", gradients=False)
    with pytest.raises(errors.EquivarianceError, match="the gradient"):
        testing.assert_padding_invariant(module, "n n -> n")


def test_gradients_are_compared_inside_no_grad():
    with torch.no_grad(), pytest.raises(errors.EquivarianceError):
        testing.assert_padding_invariant(faults.WrongGradient(), "n n -> n")


def test_nan_in_the_padding_finds_masks_that_multiply():
    testing.assert_padding_invariant(faults.MeanByMask(), "n ->")
    with pytest.raises(errors.EquivarianceError, match="not finite"):
        testing.assert_padding_invariant(faults.MeanByMask(), "n ->", nan=True)


def test_an_empty_graph_finds_means_of_no_values():
    with pytest.raises(errors.EquivarianceError, match="graph 3"):
        testing.assert_padding_invariant(faults.MeanByMask(), "n ->", empty=True)


def test_values_in_the_padding_can_be_allowed():
    testing.assert_padding_invariant(faults.LeavesGarbageOutside(), "n n -> n", zero_outside=False)


def test_an_output_that_is_a_tensor_is_compared_without_the_padding():
    layer = EquivariantLinear("n n -> n", 2, 2)

    def values(x):
        y = layer(x)
        return y.values + 1 if isinstance(y, Padded) else y + 1

    testing.assert_padding_invariant(values, "n n -> n", in_channels=2)


def test_a_module_without_gradients_is_compared_by_its_output():
    testing.assert_padding_invariant(lambda x: InvariantPool("n")(x).detach(), "n ->", in_channels=2)


@pytest.mark.parametrize("sizes", [[3], [1, 1], [0, 2], {"u": [2, 3], "i": [1, 4]}])
def test_sizes_can_be_chosen(sizes):
    testing.assert_padding_invariant(EquivariantLinear("u i -> u", 2, 2), "u i -> u", sizes=sizes)


def test_batch_norm_over_padded_values_is_found():
    class Normed(faults.WrapsTheLayer):
        def __init__(self):
            super().__init__("n -> n")
            self.norm = nn.BatchNorm1d(2)

        def forward(self, x):
            if isinstance(x, Padded):
                return Padded(self.norm(self.layer(x).values.mT).mT, x.sizes)
            return self.norm(self.layer(x).mT).mT

    with pytest.raises(errors.EquivarianceError, match="has BatchNorm1d"):
        testing.assert_padding_invariant(Normed(), "n -> n", sizes=[3, 2])
    testing.assert_padding_invariant(Normed().eval(), "n -> n", sizes=[3, 2], zero_outside=False)
