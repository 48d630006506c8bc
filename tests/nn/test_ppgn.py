"""PPGN: more expressive than linear layers of order 2, equivariant, padding-invariant, in every layout."""

import math

import pytest
import torch
from torch.testing import assert_close

import bellnet as bn
from bellnet.errors import OptionError, SpecError
from bellnet.nn.ppgn import ProductBlock


def _net(**options):
    torch.manual_seed(0)
    return bn.PPGN("n n", [2, 6, 4], 3, hidden=[5], **options).eval().double()


@pytest.mark.parametrize(
    "options", [{}, {"norm": "graph", "jumping_knowledge": False}, {"norm": None, "reduce": ("max", "mean")}]
)
def test_ppgn_is_permutation_and_padding_invariant(options):
    net = _net(**options)
    bn.testing.assert_invariant(net, "n n")
    bn.testing.assert_padding_invariant(net, "n n ->", nan=True)


def test_three_slots_are_multiplied_slice_by_slice():
    net = bn.PPGN("n n n", [1, 4], 2).eval().double()
    assert net.blocks[0].product.plan.text == "adc,dbc->abc"
    bn.testing.assert_invariant(net, "n n n", sizes=4)


def _cycle(*lengths):
    adjacency = torch.zeros(sum(lengths), sum(lengths), dtype=torch.float64)
    start = 0
    for length in lengths:
        nodes = torch.arange(length)
        adjacency[start + nodes, start + (nodes + 1) % length] = 1
        start += length
    return (adjacency + adjacency.T).unsqueeze(-1)


def test_products_distinguish_a_hexagon_from_two_triangles_and_linear_layers_do_not():
    graphs = torch.stack([_cycle(6), _cycle(3, 3)])
    torch.manual_seed(0)
    with_products = bn.PPGN("n n", [1, 8, 8], 4, norm=None).double()
    linear = bn.InvariantNet("n n", [1, 8, 8], 4).double()
    apart, together = ((net(graphs)[0] - net(graphs)[1]).abs().max() for net in (with_products, linear))
    assert apart > 1e-3
    assert together < 1e-12


@pytest.mark.parametrize("norm", [None, "graph", "batch"])
def test_a_sparse_batch_of_all_pairs_agrees_with_the_dense_one(norm):
    net = _net(norm=norm)
    graphs = bn.Padded.pack([torch.randn(n, n, 2, dtype=torch.float64) for n in (5, 1, 4)])
    assert_close(net(bn.Sparse.from_dense(graphs, keep_zeros=True)), net(graphs))


def test_a_sparse_batch_is_computed_on_its_stored_entries():
    net = _net(pool_over="stored")
    edges = bn.Sparse.from_dense(torch.cat([_cycle(3, 4), _cycle(7)], -1)).with_diagonal()
    recorded = []
    for block in net.blocks:
        block.register_forward_hook(lambda module, given, result: recorded.append(result.support))
    assert net(edges).shape == (3,)
    assert all(support is edges.support for support in recorded)


@pytest.mark.parametrize("norm", ["batch", "graph"])
def test_deep_networks_keep_the_second_moment_at_41_nodes(norm):
    torch.manual_seed(0)
    net = bn.PPGN("n n", [1] + [32] * 6, 2, norm=norm)
    nodes = torch.arange(41)
    graphs = []
    for skip in (2, 3, 5, 9):
        adjacency = torch.zeros(41, 41)
        for step in (1, skip):
            adjacency[nodes, (nodes + step) % 41] = 1
        graphs.append(adjacency + adjacency.T)
    moments, products = [], []
    for block in net.blocks:
        block.register_forward_hook(lambda module, given, result: moments.append(result.square().mean().item()))
        block.product.register_forward_hook(lambda module, given, result: products.append(result.var().item()))
    net(torch.stack(graphs).unsqueeze(-1))
    assert len(moments) == 6
    assert all(0.1 < after / before < 10 for before, after in zip(moments[:1] * 6, moments, strict=True))
    assert min(products) > 0.05  # far above what is added to a variance before it divides


def test_every_option_is_passed_to_its_module():
    net = bn.PPGN(
        "n n",
        [2, 6, 4],
        3,
        depth=3,
        reduce=("max", "sum"),
        pool_over="stored",
        activation="tanh",
        norm="channels",
        dropout=0.25,
        jumping_knowledge=False,
        normalize="mean",
        contraction="ab,cb->ac",
    )
    block = net.blocks[1]
    assert isinstance(block, ProductBlock)
    assert (block.product.normalize, block.product.plan.text) == ("mean", "ab,cb->ac")
    assert [norm.over for norm in block.norms] == ["channels", "channels"]
    assert len(block.left) == 5
    assert isinstance(block.left[1].module, torch.nn.Tanh)
    assert (net.pool.reduce, net.pool.over, block.dropout.p) == (("max", "sum"), "stored", 0.25)
    assert net.head[0].in_features == 4 * 4
    assert bn.PPGN("n n", [2, 6, 4], 3).head[0].in_features == 2 * (6 + 4)


@pytest.mark.parametrize("normalize", ["mean", "stored", "root", "sum"])
def test_the_first_layer_takes_means_and_can_be_replaced(normalize):
    net = _net(normalize=normalize)
    assert {block.product.normalize for block in net.blocks} == {normalize}
    assert net.first.normalize == "mean"
    graphs = torch.randn(3, 5, 5, 2, dtype=torch.float64)
    before, weights = net(graphs), net.first.state_dict()
    net.first = bn.EquivariantLinear("n n -> n n", 2, 6, normalize="sum").double()
    net.first.load_state_dict(weights)
    assert (net(graphs) - before).abs().max() > 1e-3


def test_networks_train_and_can_be_copied(tmp_path):
    torch.manual_seed(0)
    net = bn.PPGN("n n", [1, 8, 8], 2, hidden=[8])
    graphs, classes = torch.stack([_cycle(6), _cycle(3, 3)] * 2).float(), torch.tensor([0, 1, 0, 1])
    optimizer = torch.optim.Adam(net.parameters(), lr=0.01)
    for _ in range(40):
        loss = torch.nn.functional.cross_entropy(net(graphs), classes)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    assert loss.item() < math.log(2) / 2
    torch.save(net.eval(), tmp_path / "net.pt")
    assert torch.equal(torch.load(tmp_path / "net.pt", weights_only=False)(graphs), net(graphs))


def test_errors_name_bad_options():
    for options, words in (
        ({"depth": 0}, "depth must be an integer from 1 up, not 0"),
        ({"norm": "layer"}, "norm must be one of 'batch', 'graph', 'channels', not 'layer'"),
        ({"hidden": [0]}, r"hidden\[0\] must be an integer"),
        ({"dropout": 1.0}, "dropout must be a probability below 1"),
    ):
        with pytest.raises(OptionError, match=rf'PPGN\("n n", \[1, 8\], 2\): {words}'):
            bn.PPGN("n n", [1, 8], 2, **options)
    with pytest.raises(OptionError, match="channels must have at least 2 entries"):
        bn.PPGN("n n", [1], 2)
    with pytest.raises(SpecError, match='Which slots of "u i, u i -> u i" hold one node'):
        bn.PPGN("u i", [1, 8], 2)
