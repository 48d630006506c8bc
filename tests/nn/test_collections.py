"""A layer between several tensors is the sum of layers between all pairs, in every layout, with one plan."""

import copy
import pickle
from contextlib import nullcontext
from math import prod

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.autograd import gradcheck, gradgradcheck
from torch.testing import assert_close

import bellnet as bn
from bellnet.combinatorics import bell
from bellnet.kernels import disabled
from bellnet.tensors.padded import is_zero_padded, share_sizes
from tests.backends.recording import Recording
from tests.backends.subjects import sizes_for
from tests.nn.random_collections import collections, given_to, layer_of, pair_by_pair, support_over, tensors_of

MLP = "a b, b, b c, c -> a b, b, b c, c"
SPECS = ["n n, n, -> n n, n", "u i, u, i -> u i", MLP, "n n -> n n, n, ", "n n, n n -> n", ", n -> , n"]
SPECS += ["i u, u -> u i i"]
few = settings(max_examples=25, deadline=None)


def some_sizes(spec):
    return dict(zip(spec.node_sets, (3, 2, 4), strict=False))


def close(found, wanted):
    for one, other in zip(found, wanted, strict=True):
        assert_close(one, other)


@pytest.mark.parametrize("compiled", [True, False])
@few
@given(st.data())
def test_a_layer_is_the_sum_of_all_pairs_and_so_are_its_gradients(compiled, data):
    spec = data.draw(collections())
    sizes = data.draw(sizes_for(spec, entries=400))
    normalize, basis = data.draw(st.sampled_from([("mean", "diagram"), ("sum", "diagram"), ("sum", "orbit")]))
    layer = layer_of(spec, normalize=normalize, basis=basis, even=data.draw(st.booleans()), bias=True)
    tensors = [one.requires_grad_() for one in tensors_of(layer, sizes, batch=data.draw(st.sampled_from([(), (2,)])))]
    with nullcontext() if compiled else disabled():
        found, wanted = given_to(layer, tensors, sizes), pair_by_pair(layer, tensors, sizes)
        close(found, wanted)
        pulled = [torch.randn_like(one) for one in found]
        inputs = [*tensors, *layer.parameters()]
        gradients = torch.autograd.grad(found, inputs, pulled, allow_unused=True, materialize_grads=True)
    close(gradients, torch.autograd.grad(wanted, inputs, pulled, allow_unused=True, materialize_grads=True))


@few
@given(st.data())
def test_sparse_results_are_the_dense_ones_at_stored_entries(data):
    """Each source is sparse, dense, padded, or has its nodes in a row; graphs differ in size."""
    spec = data.draw(collections(max_order=2).filter(lambda spec: spec.node_sets and any(spec.sources)))
    n_graphs = data.draw(st.integers(1, 3))
    several = {name: data.draw(st.lists(st.integers(0, 3), min_size=n_graphs, max_size=n_graphs)) for name in "nm"}
    several = {name: several[name] for name in spec.node_sets}
    layer = layer_of(spec, even=data.draw(st.booleans()), normalize=data.draw(st.sampled_from(["mean", "sum"])))
    longest = {name: max(counts) for name, counts in several.items()}
    kinds = [data.draw(st.sampled_from(["some", "hollow", "full", "padded", "row"])) for _ in spec.sources]
    first = next(number for number, shape in enumerate(spec.sources) if shape)
    kinds[first] = data.draw(st.sampled_from(["some", "hollow", "full"]))
    sources, whole = [], []
    for kind, shape, x in zip(kinds, spec.sources, tensors_of(layer, longest, batch=(n_graphs,)), strict=True):
        given, zeroed = _in_layout(kind, shape, x, several)
        sources.append(given)
        whole.append(zeroed.requires_grad_())
    supports = [
        support_over("some", shape, several, 5 + number) if len(shape) > 1 else None
        for number, shape in enumerate(spec.targets)
    ]
    new = {name: torch.tensor(several[name]) for name in spec.target_only}
    found = layer(
        tuple(sources) if len(sources) > 1 else sources[0], sizes=new, support=tuple(supports) if supports else None
    )
    found = found if isinstance(found, tuple) else (found,)
    for graph in range(n_graphs):
        own = {name: counts[graph] for name, counts in several.items()}
        cut = [
            x[graph][tuple(slice(own[name]) for name in shape)] for x, shape in zip(whole, spec.sources, strict=True)
        ]
        wanted = pair_by_pair(layer, cut, own)
        for shape, one, other in zip(spec.targets, found, wanted, strict=True):
            _compare(one, other, graph, shape, several)


def _in_layout(kind, shape, x, several):
    """A tensor in a layout, and the same with zeros where nothing is stored."""
    sizes = {name: torch.tensor(counts) for name, counts in several.items()}
    if not shape:
        return x, x.clone()
    if kind == "padded" or (kind == "row" and len(shape) > 1):
        return bn.Padded(x, {name: sizes[name] for name in dict.fromkeys(shape)}), x.clone()
    if kind == "row":
        return torch.cat([graph[:n] for graph, n in zip(x, several[shape[0]], strict=True)]), x.clone()
    support = support_over(kind, shape, several, len(shape))
    index = support.index.unbind(0)
    return bn.Sparse.on(support, x[index]), torch.zeros_like(x).index_put(index, x[index])


def _compare(found, wanted, graph, shape, several):
    """The result for one graph of a batch, whatever its layout."""
    if isinstance(found, bn.Sparse):
        index = found.index[:, found.index[0] == graph]
        assert_close(found.at(index), wanted[tuple(index[1:])])
    elif isinstance(found, bn.Padded):
        assert_close(found.values[graph][tuple(slice(several[name][graph]) for name in shape)], wanted)
    elif len(found) == len(several[shape[0]]) if shape else True:
        assert_close(found[graph], wanted)
    else:
        start = sum(several[shape[0]][:graph])
        assert_close(found[start : start + several[shape[0]][graph]], wanted)


@pytest.mark.parametrize("nodes", ["plain", "row", "padded", "stored"])
def test_gradients_of_mixed_layouts_are_those_of_dense_tensors(nodes):
    layer = layer_of(bn.Spec((("n", "n"), ("n",)), (("n", "n"), ("n",), ())))
    sizes = [3, 3] if nodes == "plain" else [3, 1]
    several = {"n": sizes}
    support = support_over("some", ("n", "n"), several, 3)
    index = support.index.unbind(0)
    edges, x = (one.requires_grad_() for one in tensors_of(layer, {"n": 3}, batch=(2,)))
    counts = torch.tensor(sizes)
    inside = torch.arange(3) < counts.unsqueeze(-1)
    forms = {"plain": x, "row": x[inside], "padded": bn.Padded(x, counts)}
    given = forms.get(nodes, bn.Sparse.of_nodes(x[inside], counts))
    found = layer((bn.Sparse.on(support, edges[index]), given))
    zeroed = torch.zeros_like(edges).index_put(index, edges[index])
    wanted = layer((bn.Padded(zeroed, counts), bn.Padded(x, counts)))
    assert isinstance(found[0], bn.Sparse)
    assert type(found[1]) is type(given)
    one = [found[0].values, _rows(found[1], inside), found[2]]
    other = [wanted[0].values[index], wanted[1].values[inside], wanted[2]]
    close(one, other)
    pulled = [torch.randn_like(part) for part in one]
    inputs = [edges, x, *layer.parameters()]
    close(torch.autograd.grad(one, inputs, pulled), torch.autograd.grad(other, inputs, pulled))


def _rows(found, inside):
    if isinstance(found, bn.Sparse):
        return found.values
    values = found.values if isinstance(found, bn.Padded) else found
    return values[inside] if values.ndim == 3 else values


@few
@given(st.data())
def test_padding_changes_nothing(data):
    spec = data.draw(collections().filter(lambda spec: any(spec.sources)))
    layer = layer_of(spec, even=data.draw(st.booleans()))
    several = {name: data.draw(st.lists(st.integers(0, 2), min_size=2, max_size=2)) for name in spec.node_sets}
    longest = {name: max(counts) + 1 for name, counts in several.items()}
    tensors = tensors_of(layer, longest, batch=(2,))
    sizes = {name: torch.tensor(counts) for name, counts in several.items()}
    given = [
        bn.Padded(x, {name: sizes[name] for name in dict.fromkeys(shape)}) if shape else x
        for x, shape in zip(tensors, spec.sources, strict=True)
    ]
    found = given_to(layer, given, sizes)
    for graph in range(2):
        own = {name: counts[graph] for name, counts in several.items()}
        cut = [x[graph][tuple(slice(own[n]) for n in shape)] for x, shape in zip(tensors, spec.sources, strict=True)]
        for shape, one, other in zip(spec.targets, found, given_to(layer, cut, own), strict=True):
            assert isinstance(one, bn.Padded) == bool(shape)
            _compare(one, other, graph, shape, several)


def test_padded_results_share_the_sizes_of_their_inputs():
    sizes = torch.tensor([3, 1])
    x = bn.Padded(torch.randn(2, 3, 3, 2), sizes), bn.Padded(torch.randn(2, 3, 4), sizes)
    edges, nodes = bn.EquivariantLinear("n n, n -> n n, n", (2, 4), 3)(x)
    assert is_zero_padded(edges, ("n", "n"))
    assert is_zero_padded(nodes, ("n",))
    assert share_sizes(edges, nodes)


@pytest.mark.parametrize("spec", SPECS)
def test_the_gradient_of_the_gradient_is_right(spec):
    layer = layer_of(bn.plan(spec).spec)
    tensors = [one.requires_grad_() for one in tensors_of(layer, dict.fromkeys(layer.spec.node_sets, 2))]

    def run(*given):
        return tuple(given_to(layer, given, {}))

    assert gradcheck(run, tensors)
    assert gradgradcheck(run, tensors)


def test_the_gradient_of_the_gradient_is_right_for_sparse_tensors():
    layer = layer_of(bn.plan("n n, n n, n -> n n, n").spec)
    first, second = (support_over("some", ("n", "n"), {"n": 3}, seed) for seed in (1, 2))
    given = [torch.randn(first.nnz, 2), torch.randn(second.nnz, 1), torch.randn(3, 3)]
    given = [one.double().requires_grad_() for one in given]

    def run(edges, others, nodes):
        edges, nodes = layer((bn.Sparse.on(first, edges), bn.Sparse.on(second, others), nodes))
        return edges.values, nodes

    assert gradcheck(run, given)
    assert gradgradcheck(run, given)


@pytest.mark.usefixtures("every_backend")
def test_each_result_may_be_changed_in_place_and_used_alone():
    layer = layer_of(bn.plan("n n, n -> n n, n, ").spec, even=True)
    tensors = [one.requires_grad_() for one in tensors_of(layer, {"n": 3}, batch=(2,))]
    for number in range(3):
        found = layer(tensors)[number].mul_(2).relu_()
        wanted = (2 * pair_by_pair(layer, tensors, {"n": 3})[number]).relu()
        close(torch.autograd.grad(found.sum(), tensors), torch.autograd.grad(wanted.sum(), tensors))


@pytest.mark.parametrize("spec", SPECS[:3])
def test_functorch_transforms_agree(spec):
    layer = layer_of(bn.plan(spec).spec)
    tensors = tensors_of(layer, some_sizes(layer.spec), batch=(3,))

    def run(*given):
        return tuple(given_to(layer, given, {}))

    close(torch.vmap(run)(*tensors), run(*tensors))
    results, moved = torch.func.jvp(run, tuple(tensors), tuple(tensors))
    close(results, run(*tensors))
    without_bias = [one - other for one, other in zip(run(*tensors), run(*map(torch.zeros_like, tensors)), strict=True)]
    close(moved, without_bias)


@pytest.mark.parametrize("spec", SPECS)
def test_layer_commutes_with_node_permutations(spec):
    layer = layer_of(bn.plan(spec).spec)
    sizes = some_sizes(layer.spec)
    order = {name: torch.randperm(size) for name, size in sizes.items()}
    tensors = tensors_of(layer, sizes, batch=(2,))
    moved = [bn.testing.permute_nodes(x, shape, order) for x, shape in zip(tensors, layer.spec.sources, strict=True)]
    before = given_to(layer, tensors, sizes)
    close(
        given_to(layer, moved, sizes),
        [bn.testing.permute_nodes(y, shape, order) for y, shape in zip(before, layer.spec.targets, strict=True)],
    )


@given(collections())
def test_the_maps_are_those_of_all_pairs(spec):
    plan = bn.plan(spec)
    per_pair = [
        prod(bell(source.count(name) + target.count(name)) for name in {*source, *target})
        for source in spec.sources
        for target in spec.targets
    ]
    assert [pair.n_maps for pair in plan.pairs] == per_pair
    assert plan.n_maps == sum(per_pair) == sum(level.n_maps for level in plan.levels)
    assert plan.n_biases == sum(prod(bell(shape.count(name)) for name in {*shape}) for shape in spec.targets)
    by_rank = {level.rank: level.n_maps for level in plan.levels}
    for pair in plan.pairs:
        alone = plan.pair(pair.source, pair.target)
        for level in alone.levels:
            ranks = dict(zip(alone.spec.node_sets, level.rank, strict=True))
            by_rank[tuple(ranks.get(name, 0) for name in spec.node_sets)] -= level.n_maps
    assert set(by_rank.values()) == {0}


def test_the_maps_are_linearly_independent():
    layer = bn.EquivariantLinear("n n, n -> n, ", 1, 1, bias=False, dtype=torch.float64)
    x = torch.eye(16 + 4, dtype=torch.float64)
    given = x[:, :16].reshape(20, 4, 4, 1), x[:, 16:].unsqueeze(-1)
    maps = []
    for parameter in layer.parameters():
        for number in range(len(parameter)):
            with torch.no_grad():
                for one in layer.parameters():
                    one.zero_()
                parameter[number] = 1
            nodes, vector = layer(given)
            maps.append(torch.cat([nodes.flatten(), vector.flatten()]))
    assert torch.linalg.matrix_rank(torch.stack(maps)) == layer.plan.n_maps == 5 + 2 + 2 + 1


@pytest.mark.parametrize("spec", SPECS)
def test_every_rank_takes_one_product_per_permutation_for_any_number_of_tensors(spec):
    layer = layer_of(bn.plan(spec).spec)
    sizes = dict.fromkeys(layer.spec.node_sets, 5)
    tensors = tensors_of(layer, sizes, batch=(2,))
    given_to(layer, tensors, sizes)
    with Recording() as recorded, torch.no_grad():
        given_to(layer, tensors, sizes)
    assert len(recorded.products) == sum(len(level.permutations) for level in layer.plan.levels)


def test_cost_counts_what_is_multiplied():
    layer = layer_of(bn.plan("n n, n, -> n n, n").spec)
    tensors = tensors_of(layer, {"n": 5}, batch=(2,))
    with Recording() as recorded, torch.no_grad():
        layer(tensors)
    cost = layer.plan.cost(5, layer.in_channels, layer.out_channels, batch=2)
    assert cost.multiplications == sum(rows * inner * outer for (rows, inner), (_, outer) in recorded.products)
    assert cost.input_bytes == 4 * sum(one.numel() for one in tensors)
    pairs = [
        layer.plan.pair(one.source, one.target).cost(
            5, layer.in_channels[one.source], layer.out_channels[one.target], batch=2
        )
        for one in layer.plan.pairs
    ]
    assert cost.multiplications == sum(one.multiplications for one in pairs)
    assert cost.stacked_multiplications == sum(one.stacked_multiplications for one in pairs)


def test_parameters_are_named_by_source_and_target():
    layer = bn.EquivariantLinear("n n, n, -> n n, n", (16, 8, 4), (32, 2))
    shapes = {name: tuple(parameter.shape) for name, parameter in layer.state_dict().items()}
    assert shapes == {
        "weight_0_to_0": (15, 16, 32),
        "weight_0_to_1": (5, 16, 2),
        "weight_1_to_0": (5, 8, 32),
        "weight_1_to_1": (2, 8, 2),
        "weight_2_to_0": (2, 4, 32),
        "weight_2_to_1": (1, 4, 2),
        "bias_0": (2, 32),
        "bias_1": (1, 2),
    }
    assert list(bn.EquivariantLinear("n n -> n n", 2, 3).state_dict()) == ["weight", "bias"]
    assert list(bn.EquivariantLinear("n n -> n, ", 2, 3, bias=False).state_dict()) == ["weight_0_to_0", "weight_0_to_1"]


def test_one_number_of_channels_holds_for_all_tensors():
    layer = bn.EquivariantLinear("n n, n -> n", 3, 4)
    assert (layer.in_channels, layer.out_channels) == ((3, 3), 4)
    assert repr(layer) == 'EquivariantLinear("n n, n -> n", (3, 3), 4, n_maps=7)'


def test_a_copy_and_a_pickle_of_a_layer_give_the_same():
    layer = layer_of(bn.plan("n n, n -> n n, n").spec)
    tensors = tensors_of(layer, {"n": 3})
    for other in copy.deepcopy(layer), pickle.loads(pickle.dumps(layer)):
        close(other(tensors), layer(tensors))


def test_single_precision_and_half_precision_agree_with_double():
    layer = layer_of(bn.plan("n n, n -> n n, n").spec)
    tensors, sizes = tensors_of(layer, {"n": 4}, batch=(2,)), torch.tensor([4, 2])
    wanted = [one.values for one in layer([bn.Padded(x, sizes) for x in tensors])]
    for dtype, tolerance in (torch.float32, 1e-4), (torch.float16, 0.1):
        found = copy.deepcopy(layer).to(dtype)([bn.Padded(x.to(dtype), sizes) for x in tensors])
        for one, other in zip(found, wanted, strict=True):
            assert_close(one.values.double(), other, atol=tolerance, rtol=tolerance)


@pytest.mark.parametrize("spec", ["n n, n -> n n, n", "n n, n, -> n n, n, ", "u i, u, i -> u i, u, i", MLP])
def test_a_stack_keeps_the_second_moment_of_every_tensor(spec):
    moments = []
    for seed in range(6):
        torch.manual_seed(seed)
        shapes = bn.plan(spec).spec.sources
        x = tuple(torch.randn(4, *[6] * len(shape), 64) for shape in shapes)
        with torch.no_grad():
            for _ in range(10):
                x = tuple(one.relu() for one in bn.EquivariantLinear(spec, 64, 64)(x))
        moments.append(torch.stack([one.pow(2).mean() for one in x]))
    mean = torch.stack(moments).mean(0)
    assert mean.min() > 1 / 4
    assert mean.max() < 4


def test_declared_inputs_are_checked_separately():
    layer = bn.EquivariantLinear("n n, n n -> n", 1, 1, symmetric=True)
    assert layer.plan.n_maps == 2 * bn.plan("n n -> n", symmetric=True).n_maps
    x = torch.tensor([[1.0, 2.0], [2.0, 3.0]]).unsqueeze(-1)
    layer((x, x), check=True)
    with pytest.raises(bn.errors.DeclarationError, match=r"at x\[1\] was declared"):
        layer((x, x.triu()), check=True)


@pytest.mark.parametrize("spec", ["n n, n n -> n n", "n n, n -> n n, n"])
def test_declared_symmetric_inputs_give_what_all_maps_can_give(spec):
    layer = layer_of(bn.plan(spec).spec, symmetric=True)
    x = [one + one.transpose(1, 2) if one.ndim == 4 else one for one in tensors_of(layer, {"n": 3}, batch=(2,))]
    close(given_to(layer, x, {}), pair_by_pair(layer, x, {"n": 3}))


def test_supports_and_what_is_cached_for_them_are_freed():
    import gc
    import weakref

    layer = bn.EquivariantLinear("n n, n n -> n n, n", 1, 2)
    edges = bn.Sparse(torch.tensor([[0, 1], [1, 2]]), torch.ones(2, 1), 3)
    other = bn.Sparse(torch.tensor([[0, 2], [1, 1]]), torch.ones(2, 1), 3)
    layer((edges, other))
    gone = weakref.ref(other.support)
    del other
    gc.collect()
    assert gone() is None


@pytest.mark.parametrize("options", [{}, {"norm": "graph", "residual": True}, {"norm": "channels", "dropout": 0.1}])
def test_networks_of_several_tensors_are_equivariant(options):
    torch.manual_seed(0)
    net = bn.EquivariantNet("n n, n, -> n n, ", [(3, 2, 1), 4, (4, 4, 4), (2, 1)], **options).eval()
    bn.testing.assert_equivariant(net, "n n, n, -> n n, ")
    invariant = bn.InvariantNet("u i, u", [(3, 2), 4, (4, 5)], 3, hidden=[6], jumping_knowledge=True, **options).eval()
    bn.testing.assert_invariant(invariant, "u i, u")
    assert invariant.pool.n_pooled((4, 5)) == 9


def test_a_network_takes_sparse_edges_beside_nodes_in_a_row():
    net = bn.InvariantNet("n n, n", [(1, 2), 8, 8], 3, norm="graph", reduce="mean").eval()
    sizes = torch.tensor([3, 2])
    edges = bn.Sparse(torch.tensor([[0, 0, 1], [0, 1, 0], [1, 2, 1]]), torch.ones(3, 1), sizes)
    nodes = torch.randn(5, 2)
    dense = torch.zeros(2, 3, 3, 1).index_put(tuple(edges.index), edges.values)
    assert_close(net((edges, nodes)), net((edges, bn.Sparse.of_nodes(nodes, sizes))))
    padded = bn.Padded(torch.stack([nodes[:3], torch.cat([nodes[3:], torch.zeros(1, 2)])]), sizes)
    first = net.blocks[0].layer
    found, wanted = first((edges, nodes)), first((bn.Padded(dense, sizes), padded))
    assert_close(found[0].values, wanted[0].values[tuple(edges.index)])
    assert_close(found[1], torch.cat([wanted[1].values[0], wanted[1].values[1, :2]]))


def test_dropout_of_nodes_in_a_row_is_drawn_per_graph():
    torch.manual_seed(0)
    sizes = torch.tensor([3, 2])
    edges = bn.Sparse(torch.tensor([[0, 0, 1], [0, 1, 0], [1, 2, 1]]), torch.ones(3, 40), sizes)
    _, nodes = bn.ChannelDropout(0.5, "n n, n")((edges, torch.ones(5, 40)))
    assert set(nodes.flatten().tolist()) == {0, 2}
    assert all(torch.equal(row, nodes[first]) for first, several in ((0, nodes[:3]), (3, nodes[3:])) for row in several)
    assert not torch.equal(nodes[0], nodes[3])
    net = bn.EquivariantNet("n n, n -> n", [1, 40, 1], dropout=0.5)
    recorded = []
    net.last.register_forward_pre_hook(lambda _, given: recorded.append(given[0][1] == 0))
    net((edges.map(lambda values: values[:, :1]), torch.ones(5, 1)))
    assert not torch.equal(recorded[0][0], recorded[0][3])


def test_nodes_in_a_row_may_be_of_a_node_set_of_a_later_sparse_tensor():
    sizes = {"a": torch.tensor([2, 2]), "b": torch.tensor([1, 3])}
    first = bn.Sparse(torch.tensor([[0, 1], [0, 1], [1, 0]]), torch.ones(2, 1), {"a": sizes["a"]})
    second = bn.Sparse(torch.tensor([[0, 1], [0, 0], [0, 2]]), torch.ones(2, 1), sizes)
    net = bn.InvariantNet("a a, b, a b", [1, 4, 4], 2, norm="graph", dropout=0.1, reduce="mean").eval()
    nodes = torch.randn(4, 1)
    sparse = bn.Sparse.of_nodes(nodes, {"b": sizes["b"]})
    assert_close(net((first, nodes, second)), net((first, sparse, second)))


def test_the_check_of_several_tensors_can_fail():
    with pytest.raises(bn.errors.EquivarianceError, match=r"where +output\[1\]\["):
        bn.testing.assert_equivariant(lambda x: (x[0], x[1].cumsum(-2)), "n n, n -> n n, n", in_channels=(1, 2))
    with pytest.raises(bn.errors.ShapeError, match=r'does not return the shape of "n n, n -> n, n n"'):
        bn.testing.assert_equivariant(lambda x: x, "n n, n -> n, n n", in_channels=1)
    with pytest.raises(
        bn.errors.TensorError, match=r"expected a tuple with a Tensor for each of 2 targets, got Tensor"
    ):
        bn.testing.assert_equivariant(lambda x: x[0], "n n, n -> n n, n", in_channels=1)


@pytest.mark.slow
def test_a_compiled_and_an_exported_layer_give_the_same():
    layer = bn.EquivariantLinear("n n, n, -> n n, n", (3, 2, 1), (2, 4))
    x = torch.randn(2, 4, 4, 3), torch.randn(2, 4, 2), torch.randn(2, 1)
    wanted = layer(x)
    close(torch.export.export(layer, (x,)).module()(x), wanted)
    close(torch.compile(layer, backend="aot_eager")(x), wanted)
