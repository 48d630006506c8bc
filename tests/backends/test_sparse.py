"""Layers on sparse tensors, compared with the definition on the dense tensor."""

import gc
import weakref

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.autograd import gradcheck, gradgradcheck
from torch.func import functional_call
from torch.testing import assert_close

import bellnet as bn
from bellnet import EquivariantLinear, Spec
from bellnet.backends import buffers, projections
from tests.backends.recording import Recording
from tests.backends.sparse_cases import KINDS, expected, random_sizes, sparse
from tests.backends.subjects import randomise

pytestmark = pytest.mark.usefixtures("every_backend")

HOW = {
    "orbit": {"basis": "orbit", "normalize": "sum"},
    "sum": {"normalize": "sum"},
    "mean": {"normalize": "mean"},
    "stored": {"normalize": "stored"},
}

SPECS = [
    "n n -> n n",
    "n n -> n",
    "n -> n n",
    "n n ->",
    "u i -> u i",
    "u i -> i u",
    "u u i -> u i",
    "u -> u i",
    "n n n -> n n",
    "n n n -> n n n",
]


@st.composite
def _specs(draw, names):
    """Up to order 3 in the source, and up to order 2 in the target."""
    source = draw(st.lists(st.sampled_from(names), min_size=1, max_size=3))
    target = draw(st.lists(st.sampled_from(names), max_size=2))
    return Spec(tuple(source), tuple(target))


def _assert_as_defined(layer, kinds, sizes, seed=0, own_support=False):
    generator = torch.Generator().manual_seed(seed)
    spec = layer.spec
    x = sparse(kinds[0], spec.source, sizes, layer.in_channels, generator)
    values = x.values.clone().requires_grad_()
    x = x.with_values(values)
    target = sparse(kinds[1], spec.target, sizes, 1, generator) if spec.target else None
    if own_support and spec.target == spec.source:
        target = None
    y = layer(x, support=target)
    if target is None and spec.target:
        target = y
    came = y.values if spec.target else y
    wanted = expected(layer, x, target, sizes)
    assert_close(came, wanted)
    gradient = torch.randn(wanted.shape, generator=generator, dtype=torch.float64)
    inputs = [values, *layer.parameters()]
    for name, one, other in zip(
        ["values", "weight", "bias"],
        torch.autograd.grad(came, inputs, gradient, materialize_grads=True),
        torch.autograd.grad(wanted, inputs, gradient, materialize_grads=True, allow_unused=True),
        strict=False,
    ):
        assert_close(one, other, msg=lambda text, name=name: f"gradient of {name}: {text}")


@pytest.mark.parametrize("how", HOW)
@given(data=st.data(), spec=_specs("n"), kinds=st.tuples(st.sampled_from(KINDS), st.sampled_from(KINDS)))
@settings(max_examples=30)
def test_one_node_set_equals_the_definition(how, data, spec, kinds):
    layer = randomise(EquivariantLinear(spec, 2, data.draw(st.integers(1, 3)), dtype=torch.float64, **HOW[how]))
    sizes, seed = data.draw(random_sizes(spec)), data.draw(st.integers(0, 99))
    _assert_as_defined(layer, kinds, sizes, seed, own_support=data.draw(st.booleans()))


@pytest.mark.parametrize("how", HOW)
@given(data=st.data(), spec=_specs("ui"), kinds=st.tuples(st.sampled_from(KINDS), st.sampled_from(KINDS)))
@settings(max_examples=25)
def test_several_node_sets_equal_the_definition(how, data, spec, kinds):
    layer = randomise(EquivariantLinear(spec, 2, data.draw(st.integers(1, 3)), dtype=torch.float64, **HOW[how]))
    sizes, seed = data.draw(random_sizes(spec)), data.draw(st.integers(0, 99))
    _assert_as_defined(layer, kinds, sizes, seed, own_support=data.draw(st.booleans()))


@pytest.mark.parametrize("how", HOW)
@pytest.mark.parametrize("spec", SPECS)
@pytest.mark.parametrize("channels", [(1, 3), (3, 1)], ids=["widening", "narrowing"])
def test_specs_of_the_documentation_equal_the_definition(spec, how, channels):
    layer = randomise(EquivariantLinear(spec, *channels, dtype=torch.float64, **HOW[how]))
    for sizes in ({"n": 4, "u": 3, "i": 4}, {"n": [4, 0, 1, 3], "u": [2, 3, 0, 1], "i": [3, 1, 2, 2]}):
        used = {name: sizes[name] for name in layer.spec.node_sets}
        for kind in KINDS:
            _assert_as_defined(layer, (kind, "some"), used, own_support=kind == "some")


@pytest.mark.parametrize("symmetric", [False, True])
@pytest.mark.parametrize("hollow", [False, True])
@pytest.mark.parametrize("spec", ["n n -> n n", "n n -> n", "n n n -> n n", "n n ->"])
def test_symmetric_and_hollow_inputs_equal_the_layer_with_all_maps(spec, symmetric, hollow):
    """A layer for declared inputs is the full layer with some weights zero: their diagrams are among all diagrams."""
    layer = randomise(EquivariantLinear(spec, 2, 2, symmetric=symmetric, hollow=hollow, dtype=torch.float64))
    full = EquivariantLinear(spec, 2, 2, dtype=torch.float64)
    number_of = {diagram.partition: number for number, diagram in enumerate(full.plan.diagrams)}
    with torch.no_grad():
        full.weight.zero_()
        for number, diagram in enumerate(layer.plan.diagrams):
            full.weight[number_of[diagram.partition]] = layer.weight[number]
        full.bias.copy_(layer.bias)
    x = sparse("some", layer.spec.source, {"n": [4, 3]}, 2, torch.Generator().manual_seed(1))
    target = sparse("some", layer.spec.target, {"n": [4, 3]}, 1, torch.Generator()) if layer.spec.target else None
    one, other = layer(x, support=target), full(x, support=target)
    assert_close(one.values, other.values) if layer.spec.target else assert_close(one, other)


@pytest.mark.parametrize("n_graphs", [0, 1, 2])
def test_empty_graphs_and_batches_give_empty_results(n_graphs):
    sizes = torch.zeros(n_graphs, dtype=torch.int64)
    x = bn.Sparse(torch.zeros(3, 0, dtype=torch.int64), torch.zeros(0, 2), sizes)
    assert EquivariantLinear("n n -> n n", 2, 3)(x).values.shape == (0, 3)
    assert EquivariantLinear("n n -> n", 2, 3)(x).values.shape == (0, 3)
    assert EquivariantLinear("n n ->", 2, 3)(x).shape == (n_graphs, 3)


@pytest.mark.parametrize("long", [1, 2, 3])
def test_sums_in_portions_equal_the_definition(long, monkeypatch):
    monkeypatch.setattr(projections, "LONG", max(long, 2))
    _assert_as_defined(
        randomise(EquivariantLinear("n n -> n n", 2, 2, dtype=torch.float64)), ("some", "some"), {"n": 9}
    )


@pytest.mark.parametrize("how", HOW)
@pytest.mark.parametrize("spec", SPECS)
@pytest.mark.parametrize("channels", [(1, 3), (3, 1)], ids=["widening", "narrowing"])
def test_results_in_reused_memory_equal_the_definition(spec, how, channels, monkeypatch):
    monkeypatch.setattr(buffers, "LARGE", 1)
    empty = buffers.BufferPool.empty
    monkeypatch.setattr(buffers.BufferPool, "empty", lambda *args: empty(*args).fill_(float("nan")))
    layer = randomise(EquivariantLinear(spec, *channels, dtype=torch.float64, **HOW[how]))
    sizes = {"n": [4, 0, 5], "u": [5, 3, 4], "i": [6, 1, 5]}
    used = {name: sizes[name] for name in layer.spec.node_sets}
    for kind in KINDS:
        _assert_as_defined(layer, (kind, "some"), used, own_support=kind == "some")


def _as_function(spec, options):
    layer = randomise(EquivariantLinear(spec, 2, 1, dtype=torch.float64, **options))
    names = [name for name, _ in layer.named_parameters()]
    sizes = {name: [2, 1] for name in layer.spec.node_sets}
    x = sparse("some", layer.spec.source, sizes, 2, torch.Generator().manual_seed(3))
    target = (
        sparse("some", layer.spec.target, sizes, 1, torch.Generator().manual_seed(4)) if layer.spec.target else None
    )

    def function(values, *parameters):
        keywords = {"support": target}
        y = functional_call(layer, dict(zip(names, parameters, strict=True)), (x.with_values(values),), keywords)
        return y.values if layer.spec.target else y

    point = [x.values.clone(), *(parameter.detach().clone() for parameter in layer.parameters())]
    return function, [tensor.requires_grad_() for tensor in point]


@pytest.mark.parametrize("how", ["mean", "stored"])
@pytest.mark.parametrize("spec", ["n n -> n n", "n n -> n", "n n ->", "u i -> i u", "n n n -> n"])
def test_first_and_second_derivatives_equal_finite_differences(spec, how):
    assert gradcheck(*_as_function(spec, HOW[how]))
    assert gradgradcheck(*_as_function(spec, HOW[how]))


def test_tables_are_cached_and_shared_by_all_layers(monkeypatch):
    made = []
    original = projections.Incidence.__init__
    monkeypatch.setattr(projections.Incidence, "__init__", lambda self, *args: made.append(1) or original(self, *args))
    x = sparse("some", ("n", "n"), {"n": 6}, 2, torch.Generator().manual_seed(0))
    net = bn.EquivariantNet("n n -> n", [2, 4, 3, 1], normalize="sum").double()
    net(x).values.sum().backward()
    after_the_first = len(made)
    assert 0 < after_the_first < 8
    net(x.map(torch.relu)).values.sum().backward()
    bn.EquivariantLinear("n n -> n n", 2, 5, dtype=torch.float64)(x)
    assert len(made) == after_the_first


def test_support_of_a_call_is_freed():
    x = sparse("some", ("n", "n"), {"n": 6}, 2, torch.Generator().manual_seed(0))
    target = sparse("some", ("n", "n"), {"n": 6}, 2, torch.Generator().manual_seed(1))
    layer = EquivariantLinear("n n -> n n", 2, 2, dtype=torch.float64)
    layer(x, support=target).values.sum().backward()
    gone = weakref.ref(target.support)
    del target
    gc.collect()
    assert gone() is None


def test_no_tensor_has_the_size_of_all_pairs():
    n = 3000
    index = torch.stack([torch.arange(n), torch.arange(n).roll(1)])
    x = bn.Sparse(index, torch.randn(n, 2, requires_grad=True), n)
    layer = EquivariantLinear("n n -> n n", 2, 3)
    with Recording() as seen:
        layer(x).values.sum().backward()
    assert max(seen.allocated) <= 10 * n


def test_results_are_deterministic():
    x = sparse("some", ("n", "n"), {"n": 40}, 4, torch.Generator().manual_seed(0)).to(torch.float32)
    layer = EquivariantLinear("n n -> n n", 4, 4)
    outcomes = []
    for _ in range(2):
        values = x.values.clone().requires_grad_()
        y = layer(bn.Sparse(x.index, values, x.sizes)).values
        outcomes.append([y, *torch.autograd.grad(y.square().sum(), [values, layer.weight])])
    assert all(torch.equal(one, other) for one, other in zip(*outcomes, strict=True))


def test_tables_cached_in_inference_mode_serve_training():
    x = sparse("some", ("n", "n"), {"n": 5}, 2, torch.Generator().manual_seed(0))
    layer = EquivariantLinear("n n -> n n", 2, 2, normalize="stored", dtype=torch.float64)
    with torch.inference_mode():
        before = layer(x).values
    values = x.values.clone().requires_grad_()
    y = layer(x.with_values(values)).values
    gradient = torch.autograd.grad(y.square().sum(), values, create_graph=True)[0]
    gradient.sum().backward()
    assert_close(y, before)


@pytest.mark.usefixtures("without_kernels")
def test_planted_fault_is_found(monkeypatch):
    original = projections.Incidence.segment_sum
    monkeypatch.setattr(projections.Incidence, "segment_sum", lambda self, parts: original(self, parts) * 1.001)
    with pytest.raises(AssertionError):
        _assert_as_defined(
            randomise(EquivariantLinear("n n -> n n", 2, 2, dtype=torch.float64)), ("some", "some"), {"n": 4}
        )


@pytest.mark.parametrize("empty", ["source", "target"])
def test_second_derivatives_exist_without_stored_entries(empty):
    nothing, pair = torch.zeros(2, 0, dtype=torch.int64), torch.tensor([[0], [1]])
    x = bn.Sparse(nothing if empty == "source" else pair, torch.randn(int(empty == "target"), 2), 4)
    target = bn.Sparse(nothing if empty == "target" else pair, torch.zeros(int(empty == "source"), 1), 4)
    x = x.with_values(x.values.requires_grad_())
    layer = randomise(EquivariantLinear("n n -> n n", 2, 3))
    y = layer(x, support=target.support).values
    first = torch.autograd.grad(y.square().sum(), [x.values, layer.weight, layer.bias], create_graph=True)
    assert not first[0].any()
    assert not first[1].any()
    assert first[2].any() == (empty == "source")
    if empty == "source":
        assert torch.autograd.grad(first[2].sum(), layer.bias)[0].any()
