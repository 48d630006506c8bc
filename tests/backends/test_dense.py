"""The dense executor, compared with the oracle and with the definition."""

from itertools import product

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.testing import assert_close

from bellnet import EquivariantLinear, plan
from bellnet.backends import reference
from tests.backends.subjects import by_definition, declared, randomise, sizes_for, specs

pytestmark = pytest.mark.usefixtures("every_backend")

KINDS = {
    "orbit": {"basis": "orbit", "normalize": "sum"},
    "sum": {"normalize": "sum"},
    "mean": {"normalize": "mean"},
}

DOCUMENTED = [
    "n n -> n n",
    "n n n -> n n n",
    "n n n -> n",
    "n -> n n n",
    "u i -> i u",
    "u u i -> u i",
    "-> n n",
    "n n ->",
]


def _oracle(layer, x, sizes):
    return reference.apply(layer.plan, x, layer.weight, layer.bias, sizes, basis=layer.basis, normalize=layer.normalize)


def _assert_same_layer(layer, x, sizes, oracle, **tolerance):
    """Compare results and gradients of input, weight and bias, as functions on the inputs that were declared."""
    x = x.requires_grad_()
    given = declared(layer.spec, x, symmetric=layer.plan.symmetric, hollow=layer.plan.hollow)
    target_only = {name: sizes[name] for name in layer.spec.target_only}
    wanted, came = oracle(layer, given, sizes), layer(given, sizes=target_only)
    assert_close(came, wanted, **tolerance)
    gradient = torch.randn_like(wanted)
    inputs = [x, *layer.parameters()]
    for name, one, other in zip(
        ["x", "weight", "bias"],
        torch.autograd.grad(came, inputs, gradient, retain_graph=True, materialize_grads=True),
        torch.autograd.grad(wanted, inputs, gradient, materialize_grads=True),
        strict=False,
    ):
        assert_close(one, other, msg=lambda text, name=name: f"gradient of {name}: {text}", **tolerance)


@st.composite
def _cases(draw, *, max_slots, names, entries=800):
    spec = draw(specs(max_slots=max_slots, names=names))
    sizes = draw(sizes_for(spec, entries=entries))
    batch = draw(st.lists(st.integers(0, 3), max_size=2))
    inside, outside = draw(st.integers(1, 3)), draw(st.integers(1, 3))
    torch.manual_seed(draw(st.integers(0, 99)))
    x = torch.randn(*batch, *(sizes[name] for name in spec.source), inside, dtype=torch.float64)
    return spec, sizes, x, outside


@pytest.mark.parametrize("kind", KINDS)
@given(case=_cases(max_slots=6, names="n"), bias=st.booleans())
@settings(max_examples=60)
def test_one_node_set_equals_the_definition(kind, case, bias):
    spec, sizes, x, outside = case
    layer = EquivariantLinear(spec, x.shape[-1], outside, bias=bias, dtype=torch.float64, **KINDS[kind])
    _assert_same_layer(randomise(layer), x, sizes, by_definition)


@pytest.mark.parametrize("kind", KINDS)
@given(case=_cases(max_slots=6, names="uiv"), bias=st.booleans())
def test_several_node_sets_equal_the_definition(kind, case, bias):
    spec, sizes, x, outside = case
    layer = EquivariantLinear(spec, x.shape[-1], outside, bias=bias, dtype=torch.float64, **KINDS[kind])
    _assert_same_layer(randomise(layer), x, sizes, by_definition)


@pytest.mark.parametrize("kind", KINDS)
@given(case=_cases(max_slots=4, names="nm", entries=81))
@settings(max_examples=25)
def test_dense_layers_equal_the_reference(kind, case):
    spec, sizes, x, outside = case
    layer = EquivariantLinear(spec, x.shape[-1], outside, dtype=torch.float64, **KINDS[kind])
    _assert_same_layer(randomise(layer), x, sizes, _oracle)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("spec", DOCUMENTED)
@pytest.mark.parametrize("channels", [(1, 3), (3, 1)], ids=["widening", "narrowing"])
def test_specs_of_the_documentation_equal_the_definition(spec, kind, channels):
    layer = randomise(EquivariantLinear(spec, *channels, dtype=torch.float64, **KINDS[kind]))
    sizes = {"n": 3, "u": 3, "i": 4}
    x = torch.randn(2, *(sizes[name] for name in layer.spec.source), channels[0], dtype=torch.float64)
    _assert_same_layer(layer, x, sizes, by_definition)


@pytest.mark.parametrize("kind", KINDS)
@given(
    case=_cases(max_slots=5, names="nm", entries=300),
    which=st.sampled_from([(True, False), (False, True), (True, True)]),
)
def test_symmetric_and_hollow_inputs_equal_the_definition(kind, case, which):
    spec, sizes, x, outside = case
    symmetric, hollow = which
    layer = EquivariantLinear(
        spec, x.shape[-1], outside, symmetric=symmetric, hollow=hollow, dtype=torch.float64, **KINDS[kind]
    )
    _assert_same_layer(randomise(layer), x, sizes, by_definition)


@pytest.mark.parametrize("symmetric", [False, True])
@pytest.mark.parametrize("hollow", [False, True])
@pytest.mark.parametrize("spec", ["n n -> n n", "n n -> n", "n n n -> n", "u u i -> u i", "u u i i ->"])
def test_maps_on_symmetric_and_hollow_inputs_are_independent_and_complete(spec, symmetric, hollow):
    sizes, full, left = {"n": 4, "u": 3, "i": 2}, plan(spec), plan(spec, symmetric=symmetric, hollow=hollow)
    shape = [sizes[name] for name in full.spec.source]
    n_inputs = torch.Size(shape).numel()
    units = torch.eye(n_inputs, dtype=torch.float64).reshape(-1, *shape, 1)
    inputs = declared(full.spec, units, symmetric=symmetric, hollow=hollow)

    def rank(which):
        maps = reference.basis_tensors(which, sizes, basis="diagram").reshape(which.n_maps, n_inputs, -1)
        acting = torch.einsum("xa,mab->mxb", inputs.reshape(-1, n_inputs), maps)
        return int(torch.linalg.matrix_rank(acting.flatten(1)))

    assert rank(left) == rank(full) == left.n_maps


@pytest.mark.parametrize("spec", ["n n -> n n", "n n n -> n", "u i -> i u", "-> n n", "n n n -> n n n"])
@pytest.mark.parametrize("kind", KINDS)
def test_float32_is_accurate_to_float32(spec, kind):
    layer = randomise(EquivariantLinear(spec, 2, 3, dtype=torch.float32, **KINDS[kind]))
    sizes = {"n": 4, "u": 5, "i": 3}
    x = torch.randn(2, *(sizes[name] for name in layer.spec.source), 2)
    _assert_same_layer(layer, x, sizes, by_definition, rtol=1e-4, atol=1e-3)


@pytest.mark.parametrize("spec", ["n n -> n n", "n n n -> n n", "u u i -> i u"])
def test_every_map_of_a_mean_layer_maps_ones_to_ones(spec):
    """One map at a time, on ones: a mean of ones is one, so every map gives ones where it writes."""
    sizes = {"n": 5, "u": 3, "i": 4}
    layer = EquivariantLinear(spec, 1, 1, bias=False, dtype=torch.float64)
    x = torch.ones(*(sizes[name] for name in layer.spec.source), 1, dtype=torch.float64)
    for number, diagram in enumerate(layer.plan.diagrams):
        with torch.no_grad():
            layer.weight.zero_()
            layer.weight[number] = 1
        y = layer(x)
        assert ((y - 1).abs() < 1e-12).logical_or(y == 0).all(), diagram.name
        assert y.max() > 0.5, diagram.name


@pytest.mark.parametrize("shape", [(4, 4, 2), (3, 4, 4, 2), (1, 3, 4, 4, 2), (0, 4, 4, 2), (2, 0, 0, 2), (2, 1, 1, 2)])
def test_batch_entries_are_independent(shape):
    layer = randomise(EquivariantLinear("n n -> n", 2, 3, dtype=torch.float64))
    x = torch.randn(shape, dtype=torch.float64)
    y = layer(x)
    assert y.shape == (*shape[:-3], shape[-2], 3)
    for index in product(*map(range, shape[:-3])):
        assert_close(y[index], layer(x[index]))


def test_non_contiguous_input_gives_the_same_result():
    layer = randomise(EquivariantLinear("n n n -> n n", 2, 3, dtype=torch.float64))
    x = torch.randn(2, 4, 3, 4, 4, dtype=torch.float64).permute(2, 1, 4, 3, 0)
    assert_close(layer(x), layer(x.contiguous()))


@pytest.mark.parametrize("spec", ["n n -> n n", "n n n -> n n n", "n ->", "-> n n", "u i -> i u"])
def test_input_and_parameters_are_not_modified(spec):
    layer = randomise(EquivariantLinear(spec, 2, 2, dtype=torch.float64))
    x = torch.randn(2, *[3] * len(layer.spec.source), 2, dtype=torch.float64, requires_grad=True)
    before = [tensor.clone() for tensor in (x, *layer.parameters())]
    y = layer(x, sizes=dict.fromkeys(layer.spec.target_only, 3))
    gradient = torch.randn_like(y)
    before_backward = gradient.clone()
    y.backward(gradient)
    assert torch.equal(gradient, before_backward)
    assert all(torch.equal(one, other) for one, other in zip(before, (x, *layer.parameters()), strict=True))
