"""Modules on sparse tensors: they agree with the dense modules, and graphs of a batch are independent."""

import pytest
import torch
from torch import nn
from torch.testing import assert_close

import bellnet as bn
from bellnet.nn.pointwise import ChannelDropout
from tests.backends.sparse_cases import KINDS, sparse
from tests.backends.subjects import randomise

SIZES = {"n": [4, 1, 0, 3], "u": [2, 3, 1, 2], "i": [3, 1, 2, 4]}


def _random(shape, kind="some", sizes=SIZES, channels=2, seed=0):
    slots = tuple(shape.split())
    return sparse(kind, slots, {name: sizes[name] for name in slots}, channels, torch.Generator().manual_seed(seed))


@pytest.mark.parametrize("reduce", ["max", "sum", "mean"])
@pytest.mark.parametrize("shape", ["n", "n n", "n n n", "u i", "u u i"])
@pytest.mark.parametrize("kind", KINDS)
def test_pooling_over_all_entries_is_that_of_the_dense_tensor(shape, kind, reduce):
    pool = bn.InvariantPool(shape, reduce)
    x = _random(shape, kind)
    one, other = x.values.clone().requires_grad_(), x.values.clone().requires_grad_()
    result, wanted = pool(x.with_values(one)), pool(x.with_values(other).to_padded())
    assert_close(result, wanted)
    pulled = torch.randn_like(wanted)
    assert_close(torch.autograd.grad(result, one, pulled), torch.autograd.grad(wanted, other, pulled))


@pytest.mark.parametrize("reduce", ["max", "sum", "mean"])
def test_pooling_over_stored_entries_ignores_others(reduce):
    x = bn.Sparse(torch.tensor([[0, 0, 2], [1, 0, 1]]), torch.tensor([[-3.0], [-7.0], [-1.0]]), 4)
    found = bn.InvariantPool("n n", reduce, over="stored")(x).tolist()
    assert found == {"max": [-7, -1], "sum": [-7, -4], "mean": [-7, -2]}[reduce]
    over_all = bn.InvariantPool("n n", "max")(x).tolist()
    assert over_all == [0, 0]


@pytest.mark.parametrize("over", ["batch", "graph", "channels"])
@pytest.mark.parametrize("training", [True, False])
def test_normalization_of_all_entries_is_that_of_the_dense_tensor(over, training):
    norm = bn.EntryNorm(2, "n n", over=over).double().train(training)
    with torch.no_grad():
        norm.weight.copy_(torch.tensor([2.0, -1.0]))
        norm.bias.copy_(torch.tensor([0.5, 3.0]))
    dense_norm = bn.EntryNorm(2, "n n", over=over).double().train(training)
    dense_norm.load_state_dict(norm.state_dict())
    x = _random("n n", "full")
    assert_close(norm(x).to_padded().values, dense_norm(x.to_padded()).values)
    assert_close(norm.state_dict(), dense_norm.state_dict())


@pytest.mark.parametrize("over", ["batch", "graph"])
def test_statistics_are_those_of_the_stored_entries(over):
    norm = bn.EntryNorm(2, "n n", over=over).double()
    x = _random("n n", "some", {"n": [5, 4]})
    y = norm(x)
    parts = [y.values] if over == "batch" else [one.values for one in y.unpack()]
    for values in parts:
        assert_close(values.mean(0), torch.zeros(2, dtype=torch.float64), atol=1e-6, rtol=0)
        assert_close(values.var(0, unbiased=False), torch.ones(2, dtype=torch.float64), atol=1e-4, rtol=0)


def test_dropout_drops_whole_channels_of_a_graph():
    x = _random("n n", "full", {"n": [3, 2, 4]}, channels=50).map(torch.ones_like)
    dropped = ChannelDropout(0.5, "n n")(x)
    for graph in dropped.unpack():
        assert (graph.values == graph.values[:1]).all()
        assert 0 < (graph.values[0] == 0).sum() < 50
    assert not torch.equal(dropped.unpack()[0].values[0], dropped.unpack()[1].values[0])
    one = bn.Sparse(x.index[1:, :9], x.values[:9], 3)
    assert (ChannelDropout(0.5, "n n")(one).values[0] == 0).any()


OPTIONS = {
    "plain": {},
    "sums": {"normalize": "sum", "basis": "orbit"},
    "everything": {"norm": "batch", "residual": True, "activation": nn.Tanh},
    "graph": {"norm": "graph"},
    "channels": {"norm": "channels", "bias": False},
}


@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
def test_networks_on_all_entries_agree_with_the_dense_tensor(options):
    x = _random("n n", "full")
    nets = [bn.EquivariantNet(spec, [2, 4, 4, 3], **options).double() for spec in ("n n -> n n", "n n -> n")]
    for net in nets:
        assert_close(net(x).to_padded().values, net(x.to_padded()).values)
    invariant = bn.InvariantNet("n n", [2, 4, 4], 3, hidden=[5], **options).double()
    assert_close(invariant(x), invariant(x.to_padded()))
    stored = bn.InvariantNet("n n", [2, 4, 4], 3, pool_over="stored", **options).double()
    assert_close(stored(x), stored(x.to_padded()))


def test_sparse_batch_agrees_with_its_single_graphs():
    x = _random("n n")
    net = bn.EquivariantNet("n n -> n", [2, 4, 3], normalize="stored").double()
    together = net(x).unpack()
    for one, graph in zip(together, x.unpack(), strict=True):
        assert_close(one.values, net(graph).values)
    invariant = bn.InvariantNet("n n", [2, 4], 3).double()
    assert_close(invariant(x), torch.stack([invariant(graph) for graph in x.unpack()]))


@pytest.mark.parametrize("normalize", ["mean", "stored", "sum"])
def test_network_on_sparse_inputs_commutes_with_node_permutations(normalize):
    x = _random("n n", "some", {"n": 7})
    order = torch.randperm(7)
    net = bn.EquivariantNet("n n -> n n", [2, 4, 3], normalize=normalize).double()
    moved = bn.Sparse(order[x.index], x.values, 7)
    assert_close(net(moved).at(order[x.index]), net(x).values)


def test_stored_means_are_means_for_tensors_and_padded():
    stored = randomise(bn.EquivariantLinear("n n -> n n", 2, 3, normalize="stored", dtype=torch.float64))
    mean = randomise(bn.EquivariantLinear("n n -> n n", 2, 3, dtype=torch.float64))
    padded = _random("n n", "full").to_padded()
    assert_close(stored(padded).values, mean(padded).values)
    x = torch.randn(5, 5, 2, dtype=torch.float64)
    assert_close(stored(x), mean(x))
    assert 'normalize="stored"' in repr(stored)


@pytest.mark.parametrize("spec", ["n -> n n", "n n -> n n", "-> n n", "-> n"])
def test_a_dense_input_with_a_support_gives_the_dense_result_at_its_entries(spec):
    layer = randomise(bn.EquivariantLinear(spec, 2, 3, dtype=torch.float64))
    target = _random(" ".join(layer.spec.target), "some", {"n": [3, 3]})
    x = torch.randn(2, *[3] * len(layer.spec.source), 2, dtype=torch.float64)
    sizes = dict.fromkeys(layer.spec.target_only, 3)
    assert_close(layer(x, support=target).values, layer(x, sizes=sizes)[tuple(target.index)])
    single = target.unpack()[0]
    assert_close(layer(x[0], support=single).values, layer(x[0], sizes=sizes)[tuple(single.index)])


def test_node_features_of_a_batch_are_mapped_to_its_edges():
    layer = randomise(bn.EquivariantLinear("n -> n n", 2, 3, dtype=torch.float64))
    edges = _random("n n", "some", {"n": [4, 2]})
    nodes = bn.Sparse.of_nodes(torch.randn(6, 2, dtype=torch.float64), {"n": [4, 2]})
    result = layer(nodes, support=edges)
    assert result.support is edges.support
    wanted = layer(nodes.to_padded()).values
    assert_close(result.values, wanted[tuple(edges.index)])


@pytest.mark.parametrize("size", [3, torch.tensor([3, 1])])
def test_call_takes_the_length_of_a_node_set_of_the_target(size):
    layer = randomise(bn.EquivariantLinear("u -> i", 2, 3, dtype=torch.float64))
    x = _random("u", "some", {"u": [4, 2]})
    y = layer(x, sizes={"i": size})
    assert_close(y.to_padded().values, layer(x.to_padded(), sizes={"i": torch.as_tensor(size).expand(2)}).values)


def test_results_have_the_support_of_the_input_or_all_nodes():
    x = _random("n n")
    assert bn.EquivariantLinear("n n -> n n", 2, 3).double()(x).support is x.support
    nodes = bn.EquivariantLinear("n n -> n", 2, 3).double()(x)
    assert nodes.nnz == sum(SIZES["n"])
    assert bn.EquivariantLinear("n n -> n", 2, 3).double()(x).support is nodes.support
    assert bn.EquivariantLinear("n n ->", 2, 3).double()(x).shape == (4, 3)
    assert bn.EquivariantLinear("n n ->", 2, 3).double()(x.unpack()[0]).shape == (3,)


def test_sizes_without_names_fit_every_name_of_a_spec():
    x = bn.Sparse(torch.tensor([[0, 1], [2, 0]]), torch.randn(2, 1), 3)
    for spec in ("v v -> v v", "u i -> u i", "u i -> i"):
        layer = bn.EquivariantLinear(spec, 1, 2)
        y = layer(x)
        assert_close(y.values, layer(x.to_dense())[tuple(y.index)])


def test_declared_inputs_are_checked_on_request():
    index = torch.tensor([[0, 1, 2], [1, 0, 0]])
    symmetric = bn.Sparse(index[:, :2], torch.ones(2, 1), 3)
    layer = bn.EquivariantLinear("n n -> n n", 1, 2, symmetric=True, hollow=True)
    layer(symmetric, check=True)
    with pytest.raises(bn.errors.DeclarationError):
        layer(bn.Sparse(index, torch.ones(3, 1), 3), check=True)  # (0, 2) is not stored, so it is zero
    with pytest.raises(bn.errors.DeclarationError):
        layer(symmetric.with_diagonal().map(torch.ones_like), check=True)


def test_a_layer_trained_on_dense_tensors_runs_on_sparse_ones():
    layer = bn.EquivariantLinear("n n -> n n", 2, 3)
    again = bn.EquivariantLinear("n n -> n n", 2, 3, normalize="stored")
    again.load_state_dict(layer.state_dict())
    assert_close(again.weight, layer.weight)


def test_half_precision_sums_do_not_overflow():
    n = 300
    x = bn.Sparse.from_dense(torch.full((n, n, 1), 1000.0), "n n").to(torch.float16)
    layer = bn.EquivariantLinear("n n -> n n", 1, 1, normalize="stored", dtype=torch.float16)
    with torch.no_grad():
        layer.weight.fill_(0.01)
    assert layer(x).values.isfinite().all()


@pytest.mark.parametrize("reduce", ["max", "sum", "mean"])
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_pooling_in_half_precision_counts_entries_exactly(dtype, reduce):
    n = 300  # more pairs than half precision has numbers for
    x = bn.Sparse.from_dense(-torch.rand(n, n, 1, generator=torch.Generator().manual_seed(0)) - 0.5).to(dtype)
    almost = bn.Sparse(x.index[:, 1:-1], x.values[1:-1], n)
    for sparse_one in (x, almost, bn.Sparse.pack([x, almost])):
        for over in ("all", "stored"):
            result = bn.InvariantPool("n n", reduce, over=over)(sparse_one)
            wanted = bn.InvariantPool("n n", reduce, over=over)(sparse_one.to(torch.float32)).to(dtype)
            assert_close(result, wanted, rtol=2e-2, atol=0)


@pytest.mark.parametrize("over", ["batch", "graph"])
def test_normalization_in_half_precision_does_not_overflow(over):
    n = 300
    norm = bn.EntryNorm(1, "n n", over=over)
    x = bn.Sparse.from_dense(torch.randn(n, n, 1, generator=torch.Generator().manual_seed(0)) + 5, keep_zeros=True)
    wanted = norm(x).values
    norm, half = norm.half(), x.to(torch.float16)
    for values in (norm(half).values, norm(half.to_dense()).flatten(0, 1), norm(bn.Sparse.pack([half])).values):
        assert values.dtype == torch.float16
        assert_close(values.float(), wanted, rtol=1e-2, atol=1e-2)


@pytest.mark.parametrize("kind", ["unsorted", "with a diagonal", "of a batch"])
def test_supports_used_in_inference_mode_can_be_trained_on(kind):
    index = torch.tensor([[3, 1, 1, 0], [2, 2, 0, 1]])
    x = bn.Sparse(index, torch.randn(4, 2, dtype=torch.float64), 4)
    x = {"unsorted": x, "with a diagonal": x.with_diagonal(), "of a batch": bn.Sparse.pack([x, x]).unpack()[1]}[kind]
    net = bn.InvariantNet("n n", [2, 4], 3, norm="graph", dropout=0.5).double()
    with torch.inference_mode():
        net(x)
    values = x.values.clone().requires_grad_()
    (slope,) = torch.autograd.grad(net(x.with_values(values)).square().sum(), values, create_graph=True)
    slope.square().sum().backward()
    assert values.grad.isfinite().all()
