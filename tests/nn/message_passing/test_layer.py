"""One round of message passing against loops, and each step against the proof."""

import pytest
import torch
from torch import nn
from torch.testing import assert_close

import bellnet as bn
from bellnet.errors import OptionError
from bellnet.nn.message_passing import Adjacency, MessageFunctions, MessagePassingNet
from bellnet.nn.message_passing.layer import MessagePassingLayer
from tests.nn.message_passing.loops import one_round

NODE, EDGE, MESSAGE, OUT = 3, 2, 4, 5


def network(before: int, after: int) -> nn.Sequential:
    return nn.Sequential(nn.Linear(before, 6), nn.Tanh(), nn.Linear(6, after)).double()


def functions(edge: int = EDGE, node: int = NODE, out: int = OUT, **adjacency: object) -> MessageFunctions:
    return MessageFunctions(
        network(2 * node + edge, MESSAGE), network(node + MESSAGE, out), node, edge, Adjacency(**adjacency)
    )


def state(n: int, n_adjacency: int = 1, edge: int = EDGE) -> torch.Tensor:
    """Real weights, directed, with self-loops, and edge features also where there is no edge."""
    y = torch.randn(n, n, n_adjacency + edge + NODE, dtype=torch.float64)
    y[..., :n_adjacency] *= torch.rand(n, n, 1) < 0.5
    y[..., n_adjacency + edge :] *= torch.eye(n, dtype=torch.float64).unsqueeze(-1)
    return y


def features(y: torch.Tensor, width: int) -> torch.Tensor:
    return y[..., -width:].diagonal(0, 0, 1).T


@pytest.mark.parametrize("n", [1, 2, 6])
@pytest.mark.parametrize("to_source", [False, True])
@pytest.mark.parametrize("edge", [0, EDGE])
def test_a_round_is_a_loop_over_nodes_and_their_neighbours(n, to_source, edge):
    made, y = functions(edge, to_source=to_source), state(n, edge=edge)
    e = y[..., 1 : 1 + edge] if edge else None
    expected = one_round(made.message, made.update, features(y, NODE), y[..., 0], e, to_source=to_source)
    assert_close(MessagePassingNet([made])(y), expected)


def test_several_rounds_with_different_adjacencies_and_modules_between_them():
    first, second = functions(), functions(node=6, out=2, scale="mean")
    before, between = nn.Linear(NODE, NODE).double(), nn.Sequential(nn.Linear(OUT, 6), nn.ReLU()).double()
    y = state(5, n_adjacency=2)
    e = y[..., 2 : 2 + EDGE]
    h = one_round(first.message, first.update, before(features(y, NODE)), y[..., 0], e)
    h = one_round(second.message, second.update, between(h), y[..., 1], e)
    assert_close(MessagePassingNet([before, first, between, second])(y), h)


def test_the_five_steps_are_those_of_the_proof():
    made, y = functions(), state(4)
    layer = MessagePassingNet([made]).steps[0]
    assert isinstance(layer, MessagePassingLayer)
    graph, h = y[..., : 1 + EDGE], features(y, NODE)
    rows, columns = h.unsqueeze(1).expand(4, 4, NODE), h.unsqueeze(0).expand(4, 4, NODE)
    delta = torch.eye(4, dtype=torch.float64).unsqueeze(-1)

    z1 = layer.replicate(y)
    assert_close(z1, torch.cat([graph, rows, columns], -1))
    message = made.message(torch.cat([rows, columns, y[..., 1 : 1 + EDGE]], -1))
    z2 = layer.message(z1)
    assert_close(z2, torch.cat([graph, rows, message], -1))
    z3 = layer.multiply(z2)
    assert_close(z3, torch.cat([graph, rows, y[..., :1] * message], -1))
    z4 = layer.gather(z3)
    total = (y[..., :1] * message).sum(1)
    assert_close(z4, torch.cat([graph, rows, delta * total.unsqueeze(1)], -1))
    z5 = layer.onto_diagonal(layer.update(z4))
    assert_close(z5, torch.cat([graph, delta * made.update(torch.cat([h, total], -1)).unsqueeze(1)], -1))


def test_the_weights_are_ones_and_zeros_at_the_diagrams_of_the_proof():
    net = MessagePassingNet([functions(), nn.ReLU(), functions(node=OUT, to_source=True)])
    assert net.diagrams() == {
        "steps.0.replicate": ("aa->ab", "aa->ba", "ab->ab"),
        "steps.0.gather": ("ab->aa", "ab->ab"),
        "steps.0.onto_diagonal": ("aa->aa", "ab->ab"),
        "steps.1.onto_diagonal": ("aa->aa", "ab->ab"),
        "steps.2.replicate": ("aa->ab", "aa->ba", "ab->ab"),
        "steps.2.gather": ("ab->ab", "ab->bb"),
        "steps.2.onto_diagonal": ("aa->aa", "ab->ab"),
        "read": ("aa->a",),
    }
    layers = [part for part in net.modules() if isinstance(part, bn.EquivariantLinear)]
    assert len(layers) == 8
    for layer in layers:
        assert {0.0, 1.0} == set(layer.weight.unique().tolist())
        assert layer.normalize == "sum"
        assert not layer.bias.any()


@pytest.mark.parametrize("readout", ["sum", "mean", "max"])
def test_a_readout_ignores_padding(readout):
    made, head = functions(), nn.Linear(OUT, 2).double()
    net = MessagePassingNet([made], readout=readout, head=head)
    alone = [state(n) for n in (4, 1, 6)]
    values = torch.stack(
        [getattr(MessagePassingNet([made])(y), f"{'a' * (readout == 'max')}{readout}")(0) for y in alone]
    )
    assert_close(net(bn.Padded.pack(alone)), head(values))


def test_a_module_that_does_not_act_entry_by_entry_is_refused():
    made = MessageFunctions(nn.BatchNorm1d(2 * NODE), nn.Linear(3 * NODE, OUT), NODE)
    with pytest.raises(OptionError, match="step 0, message: the module cannot take"):
        MessagePassingNet([made])
