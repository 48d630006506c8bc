"""Layers between unordered slots: the oracle, every layout, and results that are exactly symmetric."""

from itertools import combinations, permutations

import pytest
import torch

import bellnet as bn
from bellnet.backends import reference
from bellnet.errors import DeclarationError
from bellnet.nn import symmetrization

SPECS = ("{n n} -> {n n}", "n n -> {n n}", "{n n} n -> n {n n}", "n -> {n n n}", "i {u u} -> u {i i}")


def _layer(text, channels=(2, 3), **options):
    layer = bn.EquivariantLinear(text, *channels, dtype=torch.float64, **options)
    with torch.no_grad():
        for parameter in layer.parameters():
            parameter.normal_()
    return layer


def _symmetric(spec, x):
    for group in spec.unordered:
        if group[0] < len(spec.sources[0]):
            others = range(x.ndim)
            orders = [dict(zip(group, order, strict=True)) for order in permutations(group)]
            x = sum(x.permute([order.get(axis - 1, axis - 1) + 1 for axis in others]) for order in orders) / len(orders)
    return x


def _assert_symmetric(spec, y):
    for group in spec.constants().unordered:
        for one, other in combinations(group, 2):
            assert torch.equal(y, y.transpose(one + 1, other + 1))


@pytest.mark.parametrize("n", [0, 1, 3])
@pytest.mark.parametrize("options", [{}, {"normalize": "sum"}, {"normalize": "sum", "basis": "orbit"}], ids=str)
@pytest.mark.parametrize("text", SPECS)
def test_layers_agree_with_the_oracle_and_their_results_are_exactly_symmetric(text, options, n):
    torch.manual_seed(0)
    layer, sizes = _layer(text, **options), {"n": n, "u": n, "i": 3}
    x = torch.randn(2, *(sizes[name] for name in layer.spec.source), 2, dtype=torch.float64)
    x = _symmetric(layer.spec, x)
    y = layer(x)
    bias, weight = layer.bias, layer.weight
    expected = reference.apply(layer.plan, x, weight, bias, sizes, **{"normalize": "mean", **options})
    torch.testing.assert_close(y, expected)
    _assert_symmetric(layer.spec, y)


def test_order_three_is_exactly_symmetric_in_single_precision():
    torch.manual_seed(0)
    layer = bn.EquivariantLinear("{n n n} -> {n n n}", 8, 8)
    y = layer(_symmetric(layer.spec, torch.randn(2, 7, 7, 7, 8)))
    _assert_symmetric(layer.spec, y)


@pytest.mark.parametrize("text", ["{n n} -> {n n}", "{n n n} -> {n n n}"])
def test_unordered_layers_are_equivariant_and_padding_invariant(text):
    layer = bn.EquivariantLinear(text, 2, 3)
    bn.testing.assert_equivariant(layer, text)
    bn.testing.assert_padding_invariant(layer, text)


@pytest.mark.parametrize("text", ["{n n} -> {n n}", "n -> {n n n}", "n -> {n n} {n n}"])
def test_chunks_of_graphs_and_traced_operations_give_the_same(text, monkeypatch):
    layer, n_slots = _layer(text), 1 + (text[0] == "{")
    x = _symmetric(layer.spec, torch.randn(5, *[3] * n_slots, 2, dtype=torch.float64)).requires_grad_()
    results = []
    for is_plain, n_bytes in ((True, 2**21), (False, 2**21), (False, 1)):
        monkeypatch.setattr(symmetrization, "is_traced", lambda is_plain=is_plain: is_plain)
        monkeypatch.setattr(symmetrization, "CHUNK_BYTES", n_bytes)
        y = layer(x)
        _assert_symmetric(layer.spec, y)
        results.append([y, *torch.autograd.grad(y.sin().sum(), [x, *layer.parameters()])])
        with torch.no_grad():
            torch.testing.assert_close(layer(x), y)
    for others in results[1:]:
        torch.testing.assert_close(results[0], others)


def test_the_gradient_of_the_gradient_is_right():
    layer = _layer("{n n}, n -> {n n}, n", (1, 1))
    x = torch.randn(2, 3, 3, 1, dtype=torch.float64), torch.randn(2, 3, 1, dtype=torch.float64)
    given = [one.requires_grad_() for one in (x[0] + x[0].transpose(1, 2), x[1])]
    assert torch.autograd.gradgradcheck(lambda *given: tuple(one.sin() for one in layer(given)), given)


def test_gradients_are_those_of_a_linear_map():
    torch.manual_seed(0)
    layer = _layer("{n n n} -> {n n n}", (1, 1))
    x = torch.randn(1, 3, 3, 3, 1, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(layer, (x,))
    assert torch.autograd.gradgradcheck(lambda x: layer(x).pow(2).sum(), (x,))


def test_a_sparse_tensor_gives_what_the_dense_one_gives():
    torch.manual_seed(0)
    layer = _layer("{n n} -> {n n}", normalize="sum")
    adjacency = (torch.rand(6, 6) < 0.5).triu(1)
    x = torch.randn(6, 6, 2, dtype=torch.float64) * (adjacency | adjacency.T)[..., None]
    x = (x + x.transpose(0, 1)) / 2
    sparse = bn.Sparse.from_dense(x, "n n")
    y, dense = layer(sparse), layer(x)
    rows, columns = y.support.index
    torch.testing.assert_close(y.values, dense[rows, columns])
    back = y.to_dense()
    assert torch.equal(back, back.transpose(0, 1))


def test_an_input_that_is_not_symmetric_is_refused_on_request():
    layer = bn.EquivariantLinear("{n n} n -> n", 1, 1)
    x = torch.randn(1, 4, 4, 4, 1)
    with pytest.raises(DeclarationError, match=r"exchanging slots 0 and 1 .*\nLeave out the braces to use all maps"):
        layer(x, check=True)
    layer((x + x.transpose(1, 2)) / 2, check=True)


def test_collections_have_unordered_slots_too():
    torch.manual_seed(0)
    several = _layer("{n n}, n -> {n n}, n", ((2, 1), (3, 2)))
    assert several.plan.n_maps == 9 + 4 + 4 + 2
    x = torch.randn(2, 5, 5, 2, dtype=torch.float64)
    x, nodes = (x + x.transpose(1, 2)) / 2, torch.randn(2, 5, 1, dtype=torch.float64)
    edges, out = several((x, nodes))
    assert torch.equal(edges, edges.transpose(1, 2))
    for target, result in enumerate((edges, out)):
        total = 0
        for source, given in enumerate((x, nodes)):
            weight, bias = getattr(several, f"weight_{source}_to_{target}"), getattr(several, f"bias_{target}")
            pair = several.plan.pair(source, target)
            applied = reference.apply(pair, given, weight, None if source else bias, {"n": 5}, normalize="mean")
            total = total + applied
        torch.testing.assert_close(result, total)


@pytest.mark.parametrize("text", ["{n n} -> {n n}", "n n -> {n n}", "{u u} i -> {u u} i"])
def test_initial_weights_keep_the_second_moment(text):
    moments = []
    for seed in range(20):
        torch.manual_seed(seed)
        layer = bn.EquivariantLinear(text, 16, 16).requires_grad_(False)
        x = _symmetric(layer.spec, torch.randn(1, *[12] * len(layer.spec.source), 16))
        diagonal = x.diagonal(0, 1, 2)
        if layer.spec.unordered[0][0] == 0:
            diagonal /= 2**0.5  # an average of two, elsewhere
        moments.append(float(layer(x).square().mean() / x.square().mean()) / 2)  # under ReLU half of it is left
    assert 0.8 < sum(moments) / len(moments) < 1.2


def test_networks_keep_slots_unordered_from_layer_to_layer():
    net = bn.EquivariantNet("{n n} -> {n n}", [1, 4, 4, 1])
    assert [block.layer.plan.n_maps for block in net.blocks] + [net.last.plan.n_maps] == [9, 9, 9]
    x = torch.randn(2, 5, 5, 1)
    y = net((x + x.transpose(1, 2)) / 2)
    assert torch.equal(y, y.transpose(1, 2))
    invariant = bn.InvariantNet("{n n}, n", [(1, 2), 4, 4], 3)
    assert [block.layer.plan.n_maps for block in invariant.blocks] == [19, 19]
    bn.testing.assert_equivariant(net, "n n -> n n")
