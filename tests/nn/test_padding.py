"""Padding changes nothing: a padded batch agrees with its single graphs."""

from itertools import product
from math import inf, nan, prod

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.testing import assert_close

from bellnet import EquivariantLinear, InvariantPool, Padded
from tests.backends.subjects import declared, randomise, specs

pytestmark = pytest.mark.usefixtures("every_backend")

KINDS = {
    "orbit": {"basis": "orbit", "normalize": "sum"},
    "sum": {"normalize": "sum"},
    "mean": {"normalize": "mean"},
}
GARBAGE = [nan, inf, -inf, 1e30, 0.0]


class _Batch:
    """Random graphs in a padded tensor with garbage in the padding, and the same graphs one by one."""

    def __init__(self, axes, batch, sizes, extra, garbage):
        self.batch, self.sizes, self.indices = batch, sizes, list(product(*map(range, batch)))
        self.lengths = {name: max(counts, default=0) + extra for name, counts in sizes.items()}
        self.axes = axes
        self.graphs = [torch.randn(*self.shape(axes, number), 2, dtype=torch.float64) for number in self.numbers]
        values = torch.full((*batch, *(self.lengths[name] for name in axes), 2), garbage, dtype=torch.float64)
        for number in self.numbers:
            values[self.indices[number]][self.inside(axes, number)] = self.graphs[number]
        self.values = values

    @property
    def numbers(self):
        return range(prod(self.batch))

    def shape(self, axes, number):
        return [self.sizes[name][number] for name in axes]

    def inside(self, axes, number):
        return tuple(slice(length) for length in self.shape(axes, number))

    def tensor(self, name):
        return torch.tensor(self.sizes[name], dtype=torch.long).reshape(self.batch)

    def padded(self, values, *, one_tensor=False):
        names = list(dict.fromkeys(self.axes))
        if one_tensor and len(names) == 1:
            return Padded(values, self.tensor(names[0]))
        return Padded(values, {name: self.tensor(name) for name in names})


@st.composite
def _batches(draw, spec):
    batch = tuple(draw(st.lists(st.integers(0, 3), max_size=2)))
    count = st.lists(st.integers(0, 3), min_size=prod(batch), max_size=prod(batch))
    sizes = {name: draw(count) for name in spec.node_sets}
    torch.manual_seed(draw(st.integers(0, 99)))
    return _Batch(spec.source, batch, sizes, draw(st.integers(0, 2)), draw(st.sampled_from(GARBAGE)))


def _run(layer, batch, x, *, lengths_of_new):
    """The layer on the padded batch; a set that only the target has gets a size for each graph, or one for all."""
    new = {name: batch.tensor(name) if lengths_of_new == "tensor" else 2 for name in layer.spec.target_only}
    y = layer(batch.padded(x, one_tensor=True) if layer.spec.source else x, sizes=new)
    return y.values if isinstance(y, Padded) else y


def _alone(layer, batch, graphs, *, lengths_of_new):
    results = []
    for number in batch.numbers:
        new = {name: batch.sizes[name][number] if lengths_of_new == "tensor" else 2 for name in layer.spec.target_only}
        results.append(layer(graphs[number], sizes=new))
    return results


@pytest.mark.parametrize("kind", KINDS)
@given(data=st.data())
def test_padded_batch_agrees_with_its_single_graphs(kind, data):
    spec = data.draw(specs(max_slots=4, names="ui"))
    batch = data.draw(_batches(spec))
    given_as = data.draw(st.sampled_from(["tensor", "number"]))
    layer = randomise(EquivariantLinear(spec, 2, 3, dtype=torch.float64, **KINDS[kind]))

    x = batch.values.clone().requires_grad_()
    y = _run(layer, batch, x, lengths_of_new=given_as)
    graphs = [graph.clone().requires_grad_() for graph in batch.graphs]
    alone = _alone(layer, batch, graphs, lengths_of_new=given_as)

    pulled, total = torch.randn_like(y), y.new_zeros(())
    for number, result in enumerate(alone):
        index = batch.indices[number]
        inside = tuple(slice(length) for length in result.shape[:-1])
        assert_close(y[index][inside], result)
        outside = y[index].detach().clone()
        outside[inside] = 0
        assert (outside == 0).all()
        total = total + (pulled[index][inside] * result).sum()

    inputs = [x, *layer.parameters()]
    gradients = torch.autograd.grad(y, inputs, pulled, allow_unused=True, materialize_grads=True)
    if graphs:
        wanted = torch.autograd.grad(total, [*graphs, *layer.parameters()], allow_unused=True, materialize_grads=True)
        for one, other in zip(gradients[1:], wanted[len(graphs) :], strict=True):
            assert_close(one, other)
        for number, gradient in enumerate(wanted[: len(graphs)]):
            expected = torch.zeros_like(gradients[0][batch.indices[number]])
            expected[batch.inside(spec.source, number)] = gradient
            assert_close(gradients[0][batch.indices[number]], expected)


@given(data=st.data())
def test_declared_inputs_may_be_padded(data):
    spec = data.draw(specs(max_slots=4, names="ui", min_source=2))
    batch = data.draw(_batches(spec))
    layer = randomise(EquivariantLinear(spec, 2, 3, symmetric=True, hollow=True, dtype=torch.float64))
    x, graphs = batch.values.clone(), []
    for number, graph in enumerate(batch.graphs):
        graphs.append(declared(spec, graph, symmetric=True, hollow=True))
        x[batch.indices[number]][batch.inside(spec.source, number)] = graphs[-1]
    y = _run(layer, batch, x, lengths_of_new="tensor")
    for number, result in enumerate(_alone(layer, batch, graphs, lengths_of_new="tensor")):
        assert_close(y[batch.indices[number]][tuple(slice(length) for length in result.shape[:-1])], result)


@pytest.mark.parametrize("reduce", ["max", "sum", "mean"])
@given(data=st.data())
def test_pooling_ignores_padding(reduce, data):
    spec = data.draw(specs(max_slots=3, names="ui", min_source=1))
    batch = data.draw(_batches(spec))
    pool = InvariantPool(" ".join(spec.source), reduce)
    x = batch.values.clone().requires_grad_()
    y = pool(batch.padded(x, one_tensor=True))
    assert y.shape == (*batch.batch, pool.n_orbits * 2)
    pulled = torch.randn_like(y)
    (gradient,) = torch.autograd.grad(y, x, pulled)
    for number, graph in enumerate(batch.graphs):
        index, graph = batch.indices[number], graph.clone().requires_grad_()
        alone = pool(graph)
        assert_close(y[index], alone)
        expected = torch.zeros_like(x[index])
        (expected[batch.inside(spec.source, number)],) = torch.autograd.grad(alone, graph, pulled[index])
        assert_close(gradient[index], expected)


@pytest.mark.parametrize("length", [0, 2])
@pytest.mark.parametrize("batch", [0, 2])
def test_graphs_without_nodes_and_batches_without_graphs_run(length, batch):
    padded = Padded(torch.zeros(batch, length, length, 1), torch.zeros(batch, dtype=torch.long))
    result = EquivariantLinear("n n -> n", 1, 4)(padded)
    assert result.values.shape == (batch, length, 4)
    assert not result.values.count_nonzero()
    for reduce in ("max", "sum", "mean"):
        assert torch.equal(InvariantPool("n n", reduce)(padded), torch.zeros(batch, 2))


def test_bias_is_not_added_to_padding():
    layer = EquivariantLinear("n -> n n", 1, 1)
    torch.nn.init.ones_(layer.bias)
    values = layer(Padded(torch.zeros(2, 3, 1), torch.tensor([3, 1]))).values
    assert values[1].count_nonzero() == 1


def test_results_of_padded_inputs_have_the_sizes_of_the_target():
    sizes = {"u": torch.tensor([2, 1]), "i": torch.tensor([1, 3])}
    padded = Padded(torch.randn(2, 2, 3, 1), sizes)
    to_one = EquivariantLinear("u i -> i", 1, 1)(padded)
    assert isinstance(to_one, Padded)
    assert to_one.sizes.tolist() == [1, 3]
    to_both = EquivariantLinear("u i -> i u", 1, 1)(padded)
    assert {name: counts.tolist() for name, counts in to_both.sizes.items()} == {"i": [1, 3], "u": [2, 1]}
    assert torch.is_tensor(EquivariantLinear("u i ->", 1, 1)(padded))
    fresh = EquivariantLinear("u -> u v", 1, 1)(Padded(torch.randn(2, 2, 1), sizes["u"]), sizes={"v": 4})
    assert {name: counts.tolist() for name, counts in fresh.sizes.items()} == {"u": [2, 1], "v": [4, 4]}


def test_a_set_that_only_the_target_has_makes_the_output_padded():
    layer = randomise(EquivariantLinear("u -> u v", 1, 1, dtype=torch.float64))
    x = torch.randn(3, 2, 1, dtype=torch.float64)
    y = layer(x, sizes={"v": torch.tensor([0, 2, 1])})
    assert isinstance(y, Padded)
    assert y.values.shape == (3, 2, 2, 1)
    for number, size in enumerate([0, 2, 1]):
        assert_close(y.values[number, :, :size], layer(x[number], sizes={"v": size}))
        assert not y.values[number, :, size:].count_nonzero()


def test_a_stack_of_layers_does_not_mask_in_between():
    first = randomise(EquivariantLinear("n n -> n n", 1, 2, dtype=torch.float64), 1)
    second = randomise(EquivariantLinear("n n -> n", 2, 1, dtype=torch.float64), 2)
    graphs = [torch.randn(n, n, 1, dtype=torch.float64) for n in (3, 1, 0, 4)]
    y = second(first(Padded.pack(graphs)).map(lambda values: torch.where(values == 0, nan, torch.sigmoid(values))))
    for one, graph in zip(y.unpack("n"), graphs, strict=True):
        assert_close(one, second(torch.sigmoid(first(graph))))


@pytest.mark.parametrize("first", ["u i -> u i", "u i -> i u"])
@pytest.mark.parametrize("then", ["u i ->", "i u ->", "n n ->"])
def test_padding_is_masked_again_for_other_node_sets(first, then):
    """Between layers padding is not masked again, but only while the axes have the same node sets."""
    sizes = {"u": torch.tensor([3, 1]), "i": torch.tensor([1, 3]), "n": torch.tensor([2, 2])}
    between = randomise(EquivariantLinear(first, 1, 1, dtype=torch.float64))(
        Padded(torch.randn(2, 3, 3, 1, dtype=torch.float64), {name: sizes[name] for name in "ui"})
    )
    between._counts = Padded(between.values, sizes)._counts
    second = randomise(EquivariantLinear(then, 1, 1, dtype=torch.float64))
    assert_close(second(between), second(Padded(between.values, sizes)))


def test_sizes_equal_to_the_length_change_nothing():
    layer = randomise(EquivariantLinear("n n -> n n", 2, 2, dtype=torch.float64))
    x = torch.randn(3, 4, 4, 2, dtype=torch.float64)
    assert_close(layer(Padded(x, torch.tensor([4, 4, 4]))).values, layer(x))


def _masks(run):
    """How often padding was cleared."""
    with torch.profiler.profile() as profiler:
        run()
    return sum(event.name.startswith("aten::bitwise_and") for event in profiler.events())


def test_graphs_that_fill_their_axes_are_not_masked():
    layer = EquivariantLinear("n n -> n n", 2, 3)
    x = torch.randn(2, 4, 4, 2)
    full, smaller = Padded(x, torch.tensor([4, 4])), Padded(x, torch.tensor([4, 3]))
    assert _masks(lambda: layer(full)) == 0 < _masks(lambda: layer(smaller))
    assert isinstance(layer(full), Padded)
    assert_close(layer(full).values, layer(x))


@pytest.mark.parametrize("spec", ["u i -> u i", "u i -> u", "u i -> i i"])
def test_graphs_that_fill_their_axes_give_a_padded_for_any_target(spec):
    layer = EquivariantLinear(spec, 2, 2)
    x = torch.randn(3, 4, 4, 2)
    result = layer(Padded(x, torch.full((3,), 4)))
    assert isinstance(result, Padded)
    assert_close(result.values, layer(x))
