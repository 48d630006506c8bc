"""Inputs that are declared symmetric or hollow, and the check that they are."""

import sys

import pytest
import torch
from torch.testing import assert_close

from bellnet import EquivariantLinear, Padded, Sparse, change_basis
from bellnet.errors import DeclarationError
from tests.backends.subjects import declared, randomise


def _layer(spec="n n -> n n", **options):
    return randomise(EquivariantLinear(spec, 1, 1, dtype=torch.float64, **options))


@pytest.mark.parametrize("spec", ["n n -> n n", "n n n -> n", "u u i i -> u"])
@pytest.mark.parametrize("which", [(True, False), (False, True), (True, True)])
def test_inputs_as_declared_pass_the_check(spec, which):
    symmetric, hollow = which
    layer = _layer(spec, symmetric=symmetric, hollow=hollow)
    sizes = {"n": 4, "u": 3, "i": 2}
    x = torch.randn(2, *(sizes[name] for name in layer.spec.source), 1, dtype=torch.float64)
    x = declared(layer.spec, x, symmetric=symmetric, hollow=hollow)
    assert_close(layer(x, check=True), layer(x))


@pytest.mark.parametrize("axes", [(0, 1), (0, 2), (1, 2)])
def test_the_check_finds_one_pair_of_slots_that_cannot_be_exchanged(axes):
    layer = _layer("n n n -> n", symmetric=True)
    x = declared(layer.spec, torch.randn(3, 3, 3, 1, dtype=torch.float64), symmetric=True, hollow=False)
    index = [0, 0, 0]
    index[axes[1]] = 1
    x[tuple(index)] += 1e-2
    with pytest.raises(DeclarationError, match="symmetric"):
        layer(x, check=True)
    layer(x)


@pytest.mark.parametrize("index", [(0, 0, 1), (1, 0, 1), (2, 0, 0)])
def test_the_check_finds_a_value_where_two_slots_coincide(index):
    layer = _layer("n n n -> n", hollow=True)
    x = declared(layer.spec, torch.randn(3, 3, 3, 1, dtype=torch.float64), symmetric=False, hollow=True)
    x[index] = 1e-3
    with pytest.raises(DeclarationError, match="hollow"):
        layer(x, check=True)
    layer(x)


def test_slots_of_different_sets_need_not_be_exchangeable_and_may_coincide():
    layer = _layer("u i -> u", symmetric=True, hollow=True)
    x = torch.randn(3, 3, 1, dtype=torch.float64)
    layer(x, check=True)


def test_nothing_declared_is_nothing_to_check():
    x = torch.randn(3, 3, 1, dtype=torch.float64)
    layer = _layer()
    assert_close(layer(x, check=True), layer(x))


def test_check_ignores_padding():
    layer = _layer(symmetric=True, hollow=True)
    values = torch.randn(2, 3, 3, 1, dtype=torch.float64)
    values[0, :2, :2, 0] = torch.tensor([[0.0, 1.0], [1.0, 0.0]])
    values[1, :1, :1, 0] = 0
    layer(Padded(values, torch.tensor([2, 1])), check=True)
    with pytest.raises(DeclarationError):
        layer(Padded(values, torch.tensor([3, 1])), check=True)


def test_check_tolerates_rounding_errors():
    layer = EquivariantLinear("n n -> n n", 1, 1, symmetric=True)
    x = torch.randn(4, 4, 1)
    x = (x + x.transpose(-2, -3)) / 2
    layer(x * (1 + 1e-6 * torch.rand_like(x)), check=True)


def test_a_symmetric_input_with_infinity_or_nan_is_symmetric():
    layer = _layer(symmetric=True)
    for value in (torch.inf, -torch.inf, torch.nan):
        layer(torch.full((2, 2, 1), value, dtype=torch.float64), check=True)


@pytest.mark.parametrize(
    "options", [{"normalize": "sum"}, {"normalize": "mean"}, {"basis": "orbit", "normalize": "sum"}], ids=str
)
def test_a_declaring_layer_agrees_with_a_layer_of_all_maps(options):
    few, all_maps = _layer(symmetric=True, hollow=True, **options), _layer(**options)
    number = {diagram.partition: number for number, diagram in enumerate(all_maps.plan.diagrams)}
    diagrams = {**options, "basis": "diagram"}
    weight = few.weight
    if options.get("basis") == "orbit":
        weight = change_basis(few.spec, weight, to="diagram", symmetric=True, hollow=True)
        all_maps = _layer(**diagrams)
        all_maps.bias.data.copy_(change_basis("-> n n", few.bias, to="diagram"))
    with torch.no_grad():
        all_maps.weight.zero_()
        for diagram, matrix in zip(few.plan.diagrams, weight, strict=True):
            all_maps.weight[number[diagram.partition]] = matrix
        if options.get("basis") != "orbit":
            all_maps.bias.copy_(few.bias)
    x = declared(few.spec, torch.randn(4, 4, 1, dtype=torch.float64), symmetric=True, hollow=True)
    assert_close(few(x), all_maps(x))


@pytest.mark.parametrize(
    ("order", "options"),
    [
        (7, {"symmetric": True}),
        (9, {"symmetric": True}),
        (9, {"symmetric": True, "hollow": True}),
        (7, {"symmetric": True, "basis": "orbit", "normalize": "sum"}),
    ],
)
def test_a_layer_of_many_exchangeable_slots_does_not_enumerate_all_partitions(order, options, monkeypatch):
    enumerated = []

    def recorded(*arguments, **keywords):
        found = partitions(*arguments, **keywords)
        enumerated.extend(found)
        return found

    partitions = sys.modules["bellnet.plan.diagram"].partitions
    monkeypatch.setattr(sys.modules["bellnet.plan.diagram"], "partitions", recorded)
    build = sys.modules["bellnet.plan.plan"].build
    monkeypatch.setattr(sys.modules["bellnet.plan.plan"], "build", build.__wrapped__)  # not from the cache
    layer = EquivariantLinear("n " * order + "->", 2, 3, **options)
    nodes = torch.tensor([[0, 1, 2]]).expand(order, -1)
    result = layer(torch.ones(*[2] * order, 2)), layer(Sparse(nodes, torch.ones(3, 2), 4))
    assert [tensor.shape for tensor in result] == [(3,), (3,)]
    assert 0 < len(enumerated) <= 20 * layer.plan.n_maps


@pytest.mark.parametrize("hollow", [False, True])
def test_seven_exchangeable_slots_are_mapped_as_all_diagrams_would(hollow):
    layer = _layer("n n n n n n n ->", symmetric=True, hollow=hollow, normalize="sum")
    whole = EquivariantLinear("n n n n n n n ->", 1, 1, dtype=torch.float64, normalize="sum")
    number = {diagram.partition: number_of_map for number_of_map, diagram in enumerate(layer.plan.diagrams)}
    with torch.no_grad():
        whole.bias.copy_(layer.bias)
        for number_of_map, diagram in enumerate(whole.plan.diagrams):
            same = number.get(diagram.partition)
            whole.weight[number_of_map] = 0 if same is None else layer.weight[same]
    x = torch.randn(*[2] * 7, 1, dtype=torch.float64)
    assert_close(layer(x), whole(x))
