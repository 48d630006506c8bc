"""The change of basis keeps the map and is invertible."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.testing import assert_close

from bellnet import EquivariantLinear, change_basis, plan
from bellnet.combinatorics import partitions
from tests.backends.subjects import declared, mask, randomise, sizes_for, specs


@given(st.data(), st.booleans(), st.booleans())
def test_changing_to_the_other_basis_and_back_is_the_identity(data, symmetric, hollow):
    spec = data.draw(specs(max_slots=5, names="ui"))
    n_maps = plan(spec, symmetric=symmetric, hollow=hollow).n_maps
    coefficients = torch.randn(n_maps, 2, 3, dtype=torch.float64)
    options = {"symmetric": symmetric, "hollow": hollow}
    there = change_basis(spec, coefficients, to="orbit", **options)
    assert there.shape == coefficients.shape
    assert_close(change_basis(spec, there, to="diagram", **options), coefficients)
    there = change_basis(spec, coefficients, to="diagram", **options)
    assert_close(change_basis(spec, there, to="orbit", **options), coefficients)


@pytest.mark.parametrize("spec", ["n n -> n", "n n n -> n", "-> n n n", "u u i -> u i", "n n -> n n"])
def test_both_sets_of_coefficients_describe_the_same_map(spec):
    """The sum of basis tensors, each times its coefficient, is one tensor, whichever basis it is written in."""
    parsed, sizes = plan(spec).spec, {"n": 5, "u": 4, "i": 3}
    for_diagrams = torch.randn(plan(spec).n_maps, dtype=torch.float64)
    for_orbits = change_basis(spec, for_diagrams, to="orbit")

    def written_out(coefficients, *, exact):
        patterns = partitions(parsed.slots)
        return sum(c * mask(p, sizes, parsed.slots, exact=exact) for c, p in zip(coefficients, patterns, strict=True))

    assert_close(written_out(for_orbits, exact=True), written_out(for_diagrams, exact=False))


@given(st.data(), st.sampled_from([(False, False), (True, False), (False, True), (True, True)]))
def test_layers_with_converted_weights_agree(data, which):
    spec = data.draw(specs(max_slots=5, names="ui"))
    sizes = data.draw(sizes_for(spec))
    options = dict(zip(("symmetric", "hollow"), which, strict=True))
    orbit = EquivariantLinear(spec, 1, 2, basis="orbit", normalize="sum", dtype=torch.float64, **options)
    diagram = EquivariantLinear(spec, 1, 2, basis="diagram", normalize="sum", dtype=torch.float64, **options)
    randomise(diagram)
    with torch.no_grad():
        orbit.weight.copy_(change_basis(spec, diagram.weight, to="orbit", **options))
        orbit.bias.copy_(change_basis(f"-> {' '.join(spec.target)}", diagram.bias, to="orbit"))
    x = torch.randn(*(sizes[name] for name in spec.source), 1, dtype=torch.float64)
    x = declared(spec, x, **options)
    new = {name: sizes[name] for name in spec.target_only}
    assert_close(orbit(x, sizes=new), diagram(x, sizes=new))


@pytest.mark.parametrize("spec", ["n n, n -> n n, n", "u i, -> u i", "{n n}, n -> {n n}, n", "n -> n n,"])
def test_layers_between_several_tensors_with_converted_weights_agree(spec):
    options = {"normalize": "sum", "bias": False, "dtype": torch.float64}
    diagram = EquivariantLinear(spec, 1, 2, **options)
    orbit = EquivariantLinear(spec, 1, 2, basis="orbit", **options)
    randomise(diagram)
    there = change_basis(spec, list(diagram.parameters()), to="orbit")
    with torch.no_grad():
        for weight, value in zip(orbit.parameters(), there, strict=True):
            weight.copy_(value)
    for weight, value in zip(diagram.parameters(), change_basis(spec, there, to="diagram"), strict=True):
        assert_close(value, weight)
    sizes = {"n": 4, "u": 3, "i": 5}
    x = [torch.randn(*(sizes[name] for name in shape), 1, dtype=torch.float64) for shape in diagram.spec.sources]
    x = tuple(one + one.transpose(0, 1) if one.ndim == 3 and "{" in spec else one for one in x)
    for one, other in zip(orbit(x if len(x) > 1 else x[0]), diagram(x if len(x) > 1 else x[0]), strict=True):
        assert_close(one, other)


def test_the_sum_over_everything_counts_every_orbit_once():
    for spec in ["n n n ->", "u i u ->"]:
        everything = torch.zeros(plan(spec).n_maps)
        everything[-1] = 1
        assert change_basis(spec, everything, to="orbit").tolist() == [1] * plan(spec).n_maps


def test_off_diagonal_is_everything_minus_the_diagonal():
    assert change_basis("n n ->", torch.tensor([0.0, 1.0]), to="diagram").tolist() == [-1, 1]


def test_gradients_flow_through_the_change_of_basis():
    coefficients = torch.randn(15, 2, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda c: change_basis("n n -> n n", c, to="orbit"), coefficients)


def test_a_layer_starts_as_the_same_map_in_either_basis():
    torch.manual_seed(3)
    diagram = EquivariantLinear("n n -> n n", 2, 3, normalize="sum")
    torch.manual_seed(3)
    orbit = EquivariantLinear("n n -> n n", 2, 3, normalize="sum", basis="orbit")
    assert_close(change_basis("n n -> n n", diagram.weight, to="orbit"), orbit.weight)
