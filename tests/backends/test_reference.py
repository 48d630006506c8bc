"""The oracle, compared with loops over indices and with masks."""

from itertools import product

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from bellnet import EquivariantLinear, plan
from bellnet.backends import reference
from bellnet.spec import parse_spec
from tests.backends.subjects import by_definition, mask, randomise, sizes_for, specs

SPECS = ["n n -> n n", "n n n -> n", "-> n n", "u i -> i u", "u u i -> u i"]


def _pattern(indices, slots):
    """Which slots hold the same node."""
    nodes = list(zip(slots, indices, strict=True))
    return tuple(sorted({nodes.index(node) for node in nodes}).index(nodes.index(node)) for node in nodes)


@pytest.mark.parametrize("spec", SPECS)
def test_orbit_tensor_is_one_exactly_at_indices_with_its_pattern(spec):
    slots, sizes = parse_spec(spec).slots, {"n": 3, "u": 3, "i": 2}
    tensors = reference.basis_tensors(plan(spec), sizes, basis="orbit")
    for indices in product(*(range(sizes[name]) for name in slots)):
        for diagram, tensor in zip(plan(spec).diagrams, tensors, strict=True):
            assert tensor[indices] == (_pattern(indices, slots) == diagram.partition)


@pytest.mark.parametrize("spec", SPECS)
def test_orbits_partition_the_indices(spec):
    for base in range(4):
        sizes = {"n": base, "u": base, "i": base + 1}
        orbits = reference.basis_tensors(plan(spec), sizes, basis="orbit")
        assert (orbits.sum(0) == 1).all()


@pytest.mark.parametrize("basis", ["orbit", "diagram"])
@pytest.mark.parametrize("spec", SPECS)
def test_basis_tensors_are_masks_of_equalities(spec, basis):
    parsed, sizes = parse_spec(spec), {"n": 3, "u": 2, "i": 4}
    exact = basis == "orbit"
    tensors = reference.basis_tensors(plan(spec), sizes, basis=basis)
    for diagram, tensor in zip(plan(spec).diagrams, tensors, strict=True):
        assert torch.equal(tensor.bool(), mask(diagram.partition, sizes, parsed.slots, exact=exact))
    constants = reference.bias_tensors(plan(spec), sizes, basis=basis)
    for pattern, tensor in zip(plan(spec).biases, constants, strict=True):
        assert torch.equal(tensor.bool(), mask(pattern, sizes, parsed.target, exact=exact))


@given(st.data(), st.sampled_from(["orbit", "sum", "mean"]))
def test_reference_equals_the_definition(data, kind):
    spec = data.draw(specs(max_slots=4, names="ui"))
    sizes = data.draw(sizes_for(spec, entries=81))
    options = {"basis": "orbit", "normalize": "sum"} if kind == "orbit" else {"normalize": kind}
    layer = randomise(EquivariantLinear(spec, 2, 3, dtype=torch.float64, **options))
    x = torch.randn(2, *(sizes[name] for name in spec.source), 2, dtype=torch.float64)
    y = reference.apply(layer.plan, x, layer.weight, layer.bias, sizes, basis=layer.basis, normalize=layer.normalize)
    torch.testing.assert_close(y, by_definition(layer, x, sizes))
