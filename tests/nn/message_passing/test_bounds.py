"""Approximated products: the measured error against the proven bound, for every kind of layer at every depth."""

import pytest
import torch
from torch import nn
from torch.testing import assert_close
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_flatten

import bellnet as bn
from bellnet.nn.message_passing import CompactSet
from bellnet.nn.message_passing.approximation import ACTIVATIONS, Range, range_of
from tests.nn.message_passing.examples import CONVS, NODE, OUT, graphs, mlp

pytest.importorskip("torch_geometric")

from torch_geometric.data import Batch
from torch_geometric.nn import GIN, GraphSAGE, global_add_pool, global_max_pool, global_mean_pool

DEPTHS = range(2, 13)

LAYERS = {
    **CONVS,
    "NNConv, mean": lambda: CONVS["NNConv"](aggr="mean"),
    "SAGEConv, against the edges": lambda: CONVS["SAGEConv"](flow="target_to_source"),
}
NETWORKS = {
    "two edge networks": lambda: [
        CONVS["NNConv"](),
        nn.Linear(OUT, NODE).double(),
        nn.ReLU(),
        CONVS["NNConv"](aggr="mean"),
    ],
    "three layers": lambda: GIN(NODE, 6, num_layers=3).double(),
    "a graph classifier, sum": lambda: [CONVS["GINConv"](), nn.ReLU(), global_add_pool, mlp(OUT, 2).double().eval()],
    "a graph classifier, mean": lambda: [
        GraphSAGE(NODE, 6, num_layers=2).double(),
        global_mean_pool,
        nn.Linear(6, 2).double(),
    ],
    "a graph classifier, max": lambda: [
        nn.Linear(NODE, NODE).double(),
        CONVS["GCNConv"](),
        nn.Tanh(),
        global_max_pool,
    ],
}
MODELS = {**LAYERS, **NETWORKS}


def errors_and_bounds(model):
    """For every depth the error of every output, and what was proven of it."""
    has_edges = "NNConv" in str(model) or "GINEConv" in str(model)
    weights = "GCNConv" in str(model)
    made = [graphs(weights=weights, parallel=not has_edges and not weights).to_data_list() for _ in range(8)]
    net = bn.from_message_passing(model, product="exact")
    state = net.prepare(Batch.from_data_list([one for some in made for one in some]))
    on = net.compact_set(state)
    # All of the compact set, not only the few values of an adjacency that the end of its range belongs to.
    share = torch.rand(*state.values.shape[:-1], 1, dtype=torch.float64)
    share = 2 * share - 1 if weights else share
    graph, features = state.values.split([net.channels.adjacency, net.in_channels - net.channels.adjacency], -1)
    state = bn.Padded(torch.cat([share * graph, features], -1), state.sizes)
    exact = values(net(state))
    found = []
    for depth in DEPTHS:
        net.approximate(on, depth)
        with torch.no_grad():
            found.append(((values(net(state, check=True)) - exact).abs(), net.error_bound))
    return found


def values(output):
    return torch.cat(output.unpack("n")) if isinstance(output, bn.Padded) else output


@pytest.mark.parametrize("name", LAYERS)
def test_the_error_of_a_layer_is_below_the_bound_at_every_depth_and_falls_fourfold_per_level(name):
    found = errors_and_bounds(LAYERS[name]())
    for errors, bound in found:
        assert (errors <= bound).all()
    usual = torch.stack([errors.square().mean().sqrt() for errors, _ in found])
    worst = torch.stack([errors.max() for errors, _ in found])
    assert worst[0] > 1e-3, "an error of zero would make the test trivial"
    per_level = usual[:-1] / usual[1:]
    assert ((per_level > 3.2) & (per_level < 5)).all()
    assert 3.6 < (worst[0] / worst[-1]) ** (1 / (len(worst) - 1)) < 4.4


@pytest.mark.parametrize("name", NETWORKS)
def test_the_error_of_a_network_is_below_the_bound_at_every_depth_and_falls_fourfold_per_level(name):
    found = errors_and_bounds(NETWORKS[name]())
    for errors, bound in found:
        assert (errors <= bound).all()
    usual = torch.stack([errors.square().mean().sqrt() for errors, _ in found])
    assert usual[0] > 1e-3, "an error of zero would make the test trivial"
    # While products are coarse the errors of one layer are as large as what the next one works with.
    fine = usual[len(usual) // 2 :]
    assert 3.5 < (fine[0] / fine[-1]) ** (1 / (len(fine) - 1)) < 4.5


def test_a_bound_falls_fourfold_per_level_and_is_not_trivial():
    found = errors_and_bounds(CONVS["GCNConv"]())
    bounds = torch.stack([bound for _, bound in found])
    assert_close(bounds[:-1] / bounds[1:], torch.full_like(bounds[1:], 4))
    assert all((bound < 20 * errors.max()).all() for errors, bound in found)


def test_products_are_exact_for_unweighted_graphs():
    model, batch = GIN(NODE, 6, num_layers=3).double(), graphs()
    net = bn.from_message_passing(model, on=CompactSet(size=12, neighbours=12), depth=1)
    assert_close(values(net(net.prepare(batch))), model(batch.x, batch.edge_index), rtol=0, atol=1e-12)


class OneSidedProducts(TorchDispatchMode):
    """Watches what is computed from the input: every product must have a constant or a parameter on one side."""

    BILINEAR = ("mul", "div", "mm", "addmm", "bmm", "baddbmm", "matmul", "einsum", "pow", "addcmul", "linear")

    def __init__(self, given):
        super().__init__()
        self.from_input = [given]
        self.two_sided = []

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        result = function(*args, **(kwargs or {}))
        known = {id(tensor) for tensor in self.from_input}
        tensors = [one for one in tree_flatten((args, kwargs))[0] if isinstance(one, torch.Tensor)]
        touched = [one for one in tensors if id(one) in known]
        name = function.overloadpacket.__name__.rstrip("_")
        # The first argument of these two is only added, and what the result is written into is no factor.
        others = [(kwargs or {}).get("out"), args[0] if name.startswith(("addmm", "baddbmm")) else None]
        factors = [one for one in touched if not any(one is other for other in others)]
        if name in self.BILINEAR and (len(factors) > 1 or name == "pow"):
            self.two_sided.append(str(function))
        if touched:
            self.from_input += [one for one in tree_flatten(result)[0] if isinstance(one, torch.Tensor)]
        return result


@pytest.mark.parametrize("name", [*CONVS, "a graph classifier, sum"])
def test_no_two_channels_are_ever_multiplied(name):
    net = bn.from_message_passing(MODELS[name](), product="exact")
    state = net.prepare(graphs()).values
    two_sided = {}
    for product in ("exact", "relu"):
        if product == "relu":
            net.approximate(net.compact_set(state), depth=3)
        with torch.no_grad(), OneSidedProducts(state) as watch:
            net(state)
        two_sided[product] = watch.two_sided
        assert len(watch.from_input) > 20
    assert two_sided["relu"] == []
    assert "aten.mul.Tensor" in two_sided["exact"], "products must be found"


UNCOMMON = {
    "LeakyReLU that rises to the left": lambda: nn.LeakyReLU(-0.5),
    "steep LeakyReLU": lambda: nn.LeakyReLU(3.0),
    "steep ELU": lambda: nn.ELU(2.5),
    "GELU by tanh": lambda: nn.GELU("tanh"),
}


@pytest.mark.parametrize("kind", [*ACTIVATIONS, *UNCOMMON.values()])
def test_ranges_contain_the_outputs_of_activations(kind):
    ends = 6 * torch.rand(2, 200, dtype=torch.float64) - 3
    given = Range(ends.amin(0), ends.amax(0), torch.full((200,), 0.1, dtype=torch.float64))
    found = range_of(kind(), given, 1)
    for _ in range(200):
        x = given.low + torch.rand(200, dtype=torch.float64) * (given.high - given.low)
        strayed = x + given.error * (2 * torch.rand(200, dtype=torch.float64) - 1)
        assert (found.low - 1e-12 <= kind()(x)).all()
        assert (kind()(x) <= found.high + 1e-12).all()
        assert ((kind()(strayed) - kind()(x)).abs() <= found.error + 1e-12).all()


def test_ranges_contain_the_outputs_of_a_network():
    network = bn.from_message_passing(CONVS["GINConv"](), product="exact").steps[0].update.module.module
    given = Range.within(2.0, NODE + NODE)
    found = range_of(network, given, 1)
    x = 4 * torch.rand(5000, 2 * NODE, dtype=torch.float64) - 2
    assert (found.low <= network(x).amin(0)).all()
    assert (network(x).amax(0) <= found.high).all()
    assert not found.error.any()


def test_ranges_are_rounded_up_in_float32():
    conv = CONVS["SAGEConv"](torch.float32)
    net = bn.from_message_passing(conv, on=CompactSet(size=9, neighbours=3, adjacency=0.1, node=0.7), depth=4)
    product = net.steps[0].multiply.module.module.product
    assert product.left.dtype == torch.float32
    assert product.left.double().item() >= 0.1
    assert (product.right.double() >= 0.7).all()
