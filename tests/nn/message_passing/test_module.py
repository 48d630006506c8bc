"""A converted network is a torch module: equivariant, padding-invariant, trained further, saved and loaded."""

import copy
import io
import pickle

import pytest
import torch
from torch import nn
from torch.testing import assert_close

import bellnet as bn
from bellnet.nn.message_passing import CompactSet
from tests.nn.message_passing.examples import CONVS, NODE, OUT, graphs

pytest.importorskip("torch_geometric")

from torch_geometric.nn import GIN, global_add_pool

ON = CompactSet(size=12, neighbours=8, adjacency=2.0)
PRODUCTS = {"exact": {"product": "exact"}, "relu": {"on": ON, "depth": 5}}


@pytest.mark.parametrize("product", PRODUCTS)
@pytest.mark.parametrize("name", CONVS)
def test_a_converted_layer_is_equivariant_and_padding_invariant(name, product):
    net = bn.from_message_passing(CONVS[name](), **PRODUCTS[product])
    bn.testing.assert_equivariant(net, "n n -> n", trials=2)
    bn.testing.assert_padding_invariant(net, "n n -> n", empty=True, nan=True, zero_outside=False)


@pytest.mark.parametrize("readout", ["sum", "mean", "max"])
def test_a_converted_classifier_is_permutation_and_padding_invariant(readout):
    net = bn.from_message_passing(CONVS["GINConv"](), readout=readout, **PRODUCTS["relu"])
    bn.testing.assert_invariant(net, "n n", trials=2)
    bn.testing.assert_padding_invariant(net, "n n ->", empty=True, nan=True)


def classifier(**options):
    model = [GIN(NODE, 8, num_layers=2).double(), global_add_pool, nn.Linear(8, 1).double()]
    return bn.from_message_passing(model, **options)


@pytest.mark.parametrize("product", PRODUCTS)
def test_a_converted_network_can_be_trained_further(product):
    """What a message passing network cannot know: how many nodes there are that are not neighbours."""
    net = classifier(**PRODUCTS[product])
    state = net.prepare(graphs())
    target = 0.1 * state.sizes.double().square().unsqueeze(-1)
    before = {name: parameter.clone() for name, parameter in net.named_parameters()}
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)
    losses = []
    for _ in range(60):
        loss = nn.functional.mse_loss(net(state), target)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < 0.1 * losses[0]
    moved = {name for name, parameter in net.named_parameters() if not torch.equal(parameter, before[name])}
    assert "steps.0.replicate.weight" in moved
    assert any(name.endswith("bias") and "gather" in name for name in moved)
    used = set(net.diagrams()["steps.1.gather"])
    assert used > {"ab->aa", "ab->ab"}, "diagrams that message passing does not use have woken up"
    bn.testing.assert_invariant(net, "n n", trials=2)


@pytest.mark.parametrize("product", PRODUCTS)
def test_a_converted_network_saves_and_loads(product):
    net, other = classifier(**PRODUCTS[product]), classifier(**PRODUCTS[product])
    state = net.prepare(graphs())
    assert not torch.allclose(net(state), other(state))
    file = io.BytesIO()
    torch.save(net.state_dict(), file)
    file.seek(0)
    other.load_state_dict(torch.load(file, weights_only=True))
    assert torch.equal(net(state), other(state))


@pytest.mark.parametrize("duplicate", [copy.deepcopy, lambda net: pickle.loads(pickle.dumps(net))])
def test_a_converted_network_can_be_copied(duplicate):
    net = classifier(**PRODUCTS["relu"])
    other, state = duplicate(net), net.prepare(graphs())
    assert torch.equal(net(state), other(state))
    assert torch.equal(net.error_bound, other.error_bound)


def test_a_converted_network_can_change_its_dtype():
    net = classifier(**PRODUCTS["relu"])
    state = net.prepare(graphs())
    expected = net(state)
    net.float()
    assert net.prepare(graphs()).values.dtype == torch.float32
    assert_close(net(bn.Padded(state.values.float(), state.sizes)).double(), expected, rtol=1e-3, atol=1e-3)


def test_products_can_be_made_exact_and_approximated_again():
    net = classifier(product="exact")
    state = net.prepare(graphs())
    expected = net(state)
    assert not net.error_bound.any()
    on = CompactSet(**{**vars(net.compact_set(state)), "adjacency": 1.5})
    coarse = net.approximate(on, depth=2)(state)
    assert net.on == on
    fine = net.approximate(on, depth=9)(state)
    assert (fine - expected).abs().max() < (coarse - expected).abs().max()
    assert torch.equal(net.exact()(state), expected)
    assert net.on is None
    assert not net.error_bound.any()


def test_the_gradient_at_the_features_is_that_of_the_model():
    conv, batch = CONVS["NNConv"](), graphs()
    batch.x.requires_grad_()
    net = bn.from_message_passing(conv, product="exact")
    weights = torch.randn(len(batch.x), OUT, dtype=torch.float64)
    (expected,) = torch.autograd.grad((weights * conv(batch.x, batch.edge_index, batch.edge_attr)).sum(), batch.x)
    (found,) = torch.autograd.grad((weights * torch.cat(net(net.prepare(batch)).unpack("n"))).sum(), batch.x)
    assert_close(found, expected)


def test_repr_shows_the_channels():
    assert "in_channels=4 (1 adjacency, 0 edge, 3 node), out_channels=1" in repr(classifier(product="exact"))
