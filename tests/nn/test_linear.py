"""The linear layer: equivariance, completeness, shapes, options."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.testing import assert_close

from bellnet import EquivariantLinear, InvariantPool, Spec, plan
from tests.backends.subjects import by_definition, randomise, sizes_for, specs

MANY = [
    "n -> n",
    "n n -> n n",
    "n n -> n",
    "n -> n n",
    "n n ->",
    "n n n -> n n",
    "n n n -> n n n",
    "n n -> n n n n",
    "u i -> u i",
    "u i -> i u",
    "u u i -> i",
    "u i -> u u i i",
    "a b c -> c a",
    "u -> u v",
]


def permuted(tensor, axes, order):
    """The tensor after a permutation of its nodes; axes are counted before the channels."""
    for axis, name in enumerate(axes):
        tensor = tensor.index_select(tensor.ndim - 1 - len(axes) + axis, order[name])
    return tensor


def _orders(sizes):
    return {name: torch.randperm(size) for name, size in sizes.items()}


@pytest.mark.parametrize("options", [{}, {"normalize": "sum"}, {"basis": "orbit", "normalize": "sum"}], ids=str)
@pytest.mark.parametrize("spec", MANY)
def test_layer_commutes_with_node_permutations(spec, options):
    layer = randomise(EquivariantLinear(spec, 2, 2, dtype=torch.float64, **options))
    for base in (1, 2, 4):
        sizes = {name: base + number for number, name in enumerate(layer.spec.node_sets)}
        new = {name: sizes[name] for name in layer.spec.target_only}
        x = torch.randn(2, *(sizes[name] for name in layer.spec.source), 2, dtype=torch.float64)
        order = _orders(sizes)
        moved_first = layer(permuted(x, layer.spec.source, order), sizes=new)
        assert_close(moved_first, permuted(layer(x, sizes=new), layer.spec.target, order))


@given(st.data())
def test_layer_of_any_spec_commutes_with_node_permutations(data):
    spec = data.draw(specs(max_slots=5, names="uiv"))
    sizes = data.draw(sizes_for(spec))
    layer = randomise(EquivariantLinear(spec, 1, 2, dtype=torch.float64))
    torch.manual_seed(data.draw(st.integers(0, 99)))
    new = {name: sizes[name] for name in spec.target_only}
    x, order = torch.randn(*(sizes[name] for name in spec.source), 1, dtype=torch.float64), _orders(sizes)
    moved_first = layer(permuted(x, spec.source, order), sizes=new)
    assert_close(moved_first, permuted(layer(x, sizes=new), spec.target, order))


def test_layer_does_not_commute_with_permutations_of_one_axis():
    """So that the tests above can fail: rows and columns of one node set must move together."""
    layer = randomise(EquivariantLinear("n n -> n n", 1, 1, dtype=torch.float64))
    x, order = torch.randn(4, 4, 1, dtype=torch.float64), torch.tensor([1, 2, 3, 0])
    assert not torch.allclose(layer(x[order]), layer(x)[order])


@pytest.mark.parametrize("spec", ["u i -> u i", "u i -> u", "u i ->"])
def test_rows_and_columns_of_different_sets_are_permuted_independently(spec):
    layer = randomise(EquivariantLinear(spec, 1, 1, dtype=torch.float64))
    x, order = torch.randn(4, 4, 1, dtype=torch.float64), torch.tensor([1, 2, 3, 0])
    wanted = layer(x)[order] if layer.spec.target else layer(x)
    assert_close(layer(x[order]), wanted)


def test_all_maps_together_are_every_equivariant_map():
    """The matrices that commute with all permutations of four nodes are a space of dimension fifteen."""
    n = 4
    conditions = []
    for order in ([1, 0, 2, 3], [1, 2, 3, 0]):  # these two generate all permutations
        moved = torch.kron(torch.eye(n)[order], torch.eye(n)[order])
        conditions.append(torch.kron(moved, moved) - torch.eye(n**4))
    dimension = n**4 - int(torch.linalg.matrix_rank(torch.cat(conditions)))
    layer = EquivariantLinear("n n -> n n", 1, 1, bias=False, dtype=torch.float64)
    maps = []
    for number in range(layer.plan.n_maps):
        with torch.no_grad():
            layer.weight.zero_()[number] = 1
            maps.append(layer(torch.eye(n * n, dtype=torch.float64).reshape(-1, n, n, 1)).flatten())
    assert int(torch.linalg.matrix_rank(torch.stack(maps))) == dimension == 15


@pytest.mark.parametrize(("n", "independent"), [(0, 0), (1, 1), (2, 8), (3, 14), (4, 15)])
def test_with_few_nodes_fewer_maps_are_independent_and_the_layer_runs(n, independent):
    layer = randomise(EquivariantLinear("n n -> n n", 1, 1, bias=False, dtype=torch.float64))
    x = torch.eye(n * n, dtype=torch.float64).reshape(n * n, n, n, 1).requires_grad_()
    y = layer(x)
    assert y.shape == (n * n, n, n, 1)
    y.sum().backward()
    assert layer.weight.grad.isfinite().all()
    maps = []
    with torch.no_grad():
        for number in range(15):
            layer.weight.zero_()[number] = 1
            maps.append(layer(x).flatten())
    stacked = torch.stack(maps)
    assert (int(torch.linalg.matrix_rank(stacked)) if stacked.numel() else 0) == independent


@pytest.mark.parametrize("spec", ["n n -> n n", "u u i -> u i", "-> n n", "n n ->"])
def test_parameters_have_the_shapes_of_the_paper(spec):
    layer = EquivariantLinear(spec, 3, 5)
    assert layer.weight.shape == (plan(spec).n_maps, 3, 5)
    assert layer.bias.shape == (plan(spec).n_biases, 5)
    without = EquivariantLinear(spec, 3, 5, bias=False)
    assert without.bias is None
    assert [name for name, _ in without.named_parameters()] == ["weight"]


def test_the_same_weights_fit_any_number_of_nodes():
    layer = randomise(EquivariantLinear("n n -> n n", 1, 1, dtype=torch.float64))
    for n in (0, 1, 2, 5, 9):
        x = torch.randn(n, n, 1, dtype=torch.float64)
        assert_close(layer(x), by_definition(layer, x, {"n": n}))


def test_one_node_gives_finite_results_and_gradients():
    for spec in MANY:
        layer = EquivariantLinear(spec, 1, 1)
        x = torch.ones(*[1] * len(layer.spec.source), 1, requires_grad=True)
        layer(x, sizes=dict.fromkeys(layer.spec.target_only, 1)).sum().backward()
        assert x.grad.isfinite().all()
        assert layer.weight.grad.isfinite().all()


@pytest.mark.parametrize("spec", ["-> n n", "-> u i", "u -> u i"])
def test_call_takes_the_lengths_of_sets_that_only_the_target_has(spec):
    layer = randomise(EquivariantLinear(spec, 2, 1, dtype=torch.float64))
    sizes = {"n": 3, "u": 2, "i": 4}
    new = {name: sizes[name] for name in layer.spec.target_only}
    x = torch.randn(5, *(sizes[name] for name in layer.spec.source), 2, dtype=torch.float64)
    y = layer(x, sizes=new)
    assert y.shape == (5, *(sizes[name] for name in layer.spec.target), 1)
    assert torch.equal(layer(x, sizes={name: torch.tensor(size) for name, size in new.items()}), y)


def test_call_takes_the_correct_length_of_a_set_of_the_input():
    layer = EquivariantLinear("u -> u i", 1, 1)
    assert layer(torch.zeros(3, 1), sizes={"u": 3, "i": 2}).shape == (3, 2, 1)


def test_layer_takes_a_spec_object():
    assert EquivariantLinear(Spec(("n", "n"), ("n",)), 1, 1).plan is plan("n n -> n")


def test_repr_shows_the_options():
    assert repr(EquivariantLinear("n n -> n n", 16, 32)) == 'EquivariantLinear("n n -> n n", 16, 32, n_maps=15)'
    assert repr(
        EquivariantLinear("n n->n", 1, 2, bias=False, basis="orbit", normalize="sum", symmetric=True, hollow=True)
    ) == (
        'EquivariantLinear("n n -> n", 1, 2, bias=False, basis="orbit", normalize="sum", symmetric=True, hollow=True, '
        "n_maps=2)"
    )
    assert repr(InvariantPool("u i", "mean")) == 'InvariantPool("u i", reduce="mean", n_orbits=1)'


def test_the_bias_adds_a_constant_to_each_equality_pattern():
    layer = EquivariantLinear("n -> n n", 1, 1, basis="orbit", normalize="sum", dtype=torch.float64)
    with torch.no_grad():
        layer.bias.copy_(torch.tensor([[2.0], [3.0]]))
    y = layer(torch.zeros(3, 1, dtype=torch.float64)).squeeze(-1)
    assert_close(y, torch.full((3, 3), 3.0, dtype=torch.float64) - torch.eye(3, dtype=torch.float64))


def test_hartford_layers_are_one_changed_string():
    layer = randomise(EquivariantLinear("u i -> u i", 1, 1, bias=False, dtype=torch.float64))
    x = torch.randn(4, 5, 1, dtype=torch.float64)
    one, by_row, by_column, overall = layer.weight.flatten()
    assert [diagram.name for diagram in layer.plan.diagrams] == ["ab->ab", "ab->ac", "ab->cb", "ab->cd"]
    wanted = one * x + by_row * x.mean(1, keepdim=True) + by_column * x.mean(0, keepdim=True) + overall * x.mean()
    assert_close(layer(x), wanted)


def test_deep_sets_are_the_plan_from_nodes_to_nodes():
    layer = randomise(EquivariantLinear("n -> n", 2, 3, dtype=torch.float64))
    x = torch.randn(7, 2, dtype=torch.float64)
    assert [diagram.name for diagram in layer.plan.diagrams] == ["a->a", "a->b"]
    assert_close(layer(x), x @ layer.weight[0] + x.mean(0) @ layer.weight[1] + layer.bias[0])
