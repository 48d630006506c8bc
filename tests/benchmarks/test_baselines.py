"""The baselines compute what the layer computes, so that their times are comparable."""

import pytest
import torch
from torch import Tensor, nn

from bellnet import EquivariantLinear, InvariantNet, plan
from benchmarks.baselines import BareProduct, ByHand, EinsumPerDiagram, StackedFifteen, StackedLast, StackedNet
from benchmarks.baselines.by_hand import MATRICES, SCALARS, VECTORS, by_blocks
from benchmarks.baselines.stacked import OPERATIONS
from benchmarks.cases import CASES


def layer_with_bias(spec: str, in_channels: int = 3, out_channels: int = 4) -> EquivariantLinear:
    layer = EquivariantLinear(spec, in_channels, out_channels, dtype=torch.float64)
    assert layer.bias is not None
    nn.init.normal_(layer.weight)
    nn.init.normal_(layer.bias)
    return layer


def channels_first(tensor: Tensor) -> Tensor:
    return tensor.permute(0, 3, 1, 2)


def output_and_gradients(module: nn.Module, x: Tensor, upstream: Tensor) -> tuple[Tensor, dict[str, Tensor]]:
    x = x.detach().clone().requires_grad_()
    output = module(x)
    output.backward(upstream)
    gradients = {name: parameter.grad for name, parameter in module.named_parameters()}
    return output.detach(), {"x": x.grad, **gradients}


def test_the_stacked_operations_are_the_fifteen_diagrams():
    assert sorted(OPERATIONS) == sorted(diagram.name for diagram in plan("n n -> n n").diagrams)


@pytest.mark.parametrize("n", [1, 2, 5])
def test_stacking_computes_the_layer(n):
    layer = layer_with_bias("n n -> n n")
    x = torch.randn(2, n, n, 3, dtype=torch.float64)
    upstream = torch.randn(2, n, n, 4, dtype=torch.float64)
    expected, gradients = output_and_gradients(layer, x, upstream)
    copy = StackedFifteen.like(layer)
    got, pulled = output_and_gradients(copy, channels_first(x), channels_first(upstream))
    torch.testing.assert_close(got, channels_first(expected))
    torch.testing.assert_close(pulled["x"], channels_first(gradients["x"]))
    torch.testing.assert_close(pulled["bias"], gradients["bias"])
    names = [diagram.name for diagram in layer.plan.diagrams]
    in_order = torch.stack([pulled["coefficients"][..., OPERATIONS.index(name)] for name in names])
    torch.testing.assert_close(in_order, gradients["weight"])


@pytest.mark.parametrize("number", range(15))
def test_each_stacked_operation_is_the_diagram_it_is_named_after(number):
    layer = layer_with_bias("n n -> n n", 1, 1)
    with torch.no_grad():
        layer.weight.zero_()
        layer.weight[number] = 1
        layer.bias.zero_()
    x = torch.randn(1, 4, 4, 1, dtype=torch.float64)
    copy = StackedFifteen.like(layer)
    index = OPERATIONS.index(layer.plan.diagrams[number].name)
    assert copy.coefficients.nonzero().tolist() == [[0, 0, index]]
    torch.testing.assert_close(copy(channels_first(x)), channels_first(layer(x)))


@pytest.mark.parametrize("n", [1, 2, 5])
def test_stacking_in_the_channels_computes_the_layer(n):
    layer = layer_with_bias("n n -> n n")
    x = torch.randn(2, n, n, 3, dtype=torch.float64)
    upstream = torch.randn(2, n, n, 4, dtype=torch.float64)
    expected, gradients = output_and_gradients(layer, x, upstream)
    got, pulled = output_and_gradients(StackedLast.like(layer), x, upstream)
    torch.testing.assert_close(got, expected)
    torch.testing.assert_close(pulled["x"], gradients["x"])
    torch.testing.assert_close(pulled["bias"], gradients["bias"])


@pytest.mark.parametrize("n", [1, 2, 5])
def test_the_layer_by_hand_computes_the_layer(n):
    layer = layer_with_bias("n n -> n n")
    x = torch.randn(2, n, n, 3, dtype=torch.float64)
    upstream = torch.randn(2, n, n, 4, dtype=torch.float64)
    expected, gradients = output_and_gradients(layer, x, upstream)
    got, pulled = output_and_gradients(ByHand.like(layer), x, upstream)
    torch.testing.assert_close(got, expected)
    torch.testing.assert_close(pulled["x"], gradients["x"])
    torch.testing.assert_close(pulled["bias"], gradients["bias"].flatten())
    torch.testing.assert_close(pulled["straight"], by_blocks(gradients["weight"], MATRICES[:1], 1))
    torch.testing.assert_close(pulled["transposed"], by_blocks(gradients["weight"], MATRICES[1:], 1))
    torch.testing.assert_close(pulled["vectors"], by_blocks(gradients["weight"], VECTORS, 3))
    torch.testing.assert_close(pulled["scalars"], by_blocks(gradients["weight"], SCALARS, 2))


def test_the_layer_by_hand_has_every_diagram_once():
    numbers = torch.arange(15.0).reshape(15, 1, 1)
    blocks = [by_blocks(numbers, MATRICES, 2), by_blocks(numbers, VECTORS, 3), by_blocks(numbers, SCALARS, 2)]
    assert sorted(torch.cat([block.flatten() for block in blocks]).tolist()) == list(range(15))


def test_a_network_of_stacked_layers_computes_the_network():
    net = InvariantNet("n n", [3, 4, 5], 2, hidden=[6]).double()
    x, upstream = torch.randn(2, 5, 5, 3, dtype=torch.float64), torch.randn(2, 2, dtype=torch.float64)
    expected, gradients = output_and_gradients(net, x, upstream)
    got, pulled = output_and_gradients(StackedNet.like(net), channels_first(x), upstream)
    torch.testing.assert_close(got, expected)
    torch.testing.assert_close(pulled["x"], channels_first(gradients["x"]))
    heads = [{name: one for name, one in every.items() if name.startswith("head.")} for every in (pulled, gradients)]
    assert heads[0]
    torch.testing.assert_close(*heads)


@pytest.mark.parametrize("spec", ["n n n -> n n n", "n n -> n n", "n n n -> n", "n -> n n n", "n n ->"])
@pytest.mark.parametrize("n", [1, 4])
def test_an_einsum_for_each_diagram_computes_the_layer(spec, n):
    layer = layer_with_bias(spec, 2, 3)
    order, target_order = len(layer.spec.source), len(layer.spec.target)
    x = torch.randn(2, *[n] * order, 2, dtype=torch.float64)
    upstream = torch.randn(2, *[n] * target_order, 3, dtype=torch.float64)
    expected, gradients = output_and_gradients(layer, x, upstream)
    got, pulled = output_and_gradients(EinsumPerDiagram.like(layer), x, upstream)
    torch.testing.assert_close(got, expected)
    torch.testing.assert_close(pulled, gradients)


def test_einsums_have_one_term_for_each_diagram():
    module = EinsumPerDiagram("n n n -> n n n", 1, 1)
    assert len(module.terms) == 203
    assert len({(term.equation, term.pattern, term.repeated) for term in module.terms}) == 203


def test_einsums_raise_for_several_node_sets():
    with pytest.raises(ValueError, match=r'takes a source over one node set, not "u i -> u"'):
        EinsumPerDiagram("u i -> u", 1, 1)


@pytest.mark.parametrize("order", [1, 2, 3])
def test_the_bare_product_is_the_part_of_highest_rank_before_the_permutation_of_its_axes(order):
    slots = " ".join("n" * order)
    layer = EquivariantLinear(f"{slots} -> {slots}", 3, 4, bias=False, dtype=torch.float64)
    level = max(layer.plan.levels, key=lambda level: level.rank)
    names = [diagram.name for diagram in layer.plan.diagrams]
    letters = "abc"[:order]
    numbers = [
        names.index(f"{letters}->{''.join(letters[axis] for axis in permutation)}")
        for permutation in level.permutations
    ]
    with torch.no_grad():
        layer.weight[[number for number in range(len(names)) if number not in numbers]] = 0
    bare = BareProduct(order, 3, 4, dtype=torch.float64)
    with torch.no_grad():
        bare.weight.copy_(torch.cat([layer.weight[number] for number in numbers], -1))
    x = torch.randn(2, *[5] * order, 3, dtype=torch.float64)
    parts = bare(x).split(4, -1)
    moved = [
        part.permute(0, *[axis + 1 for axis in permutation], order + 1)
        for part, permutation in zip(parts, level.permutations, strict=True)
    ]
    torch.testing.assert_close(sum(moved), layer(x))


@pytest.mark.parametrize("case", CASES, ids=str)
def test_the_bare_product_is_the_largest_of_the_plan(case):
    def multiplications(level):
        return len(level.contractions) * len(level.permutations) * len(level.broadcasts) * case.n ** sum(level.rank)

    bare = BareProduct(case.order, case.in_channels, case.out_channels)
    largest = max(map(multiplications, plan(case.spec).levels))
    assert bare.weight.numel() * case.n**case.order == largest * case.in_channels * case.out_channels
