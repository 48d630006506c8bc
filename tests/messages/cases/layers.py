"""Mistakes with layers and networks: options, inputs, sizes and message passing."""

import warnings

import networkx
import torch

from bellnet import (
    EntryNorm,
    EquivariantLinear,
    EquivariantNet,
    InvariantNet,
    InvariantPool,
    Padded,
    change_basis,
    from_message_passing,
    plan,
)
from bellnet._utils.optional import require
from bellnet.nn.message_passing import CompactSet, MessageFunctions, MessagePassingNet, ReluProduct

HUGE = 10**5000  # more digits than Python writes


def _edges(*, channels=(16, 32), **options):
    return EquivariantLinear("n n -> n n", *channels, **options)


def _traced(module, x):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of torch.jit as a whole
        return torch.jit.trace(module, x)


def _scripted(module):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        return torch.jit.script(module)


def _pyg_batch():
    from torch_geometric.data import Batch, Data

    return Batch.from_data_list([Data(edge_index=torch.tensor([[0], [1]]), num_nodes=2)])


def _new_nodes():
    return EquivariantLinear("u -> u i", 1, 1)


def _from_vectors(sizes):
    return EquivariantLinear("-> n", 1, 1)(torch.zeros(2, 1), sizes=sizes)


def _padded(sizes, shape=(2, 3, 3, 1)):
    return Padded(torch.zeros(shape), sizes)


def _functions(**options):
    given = {"message": torch.nn.Linear(4, 3), "update": torch.nn.Linear(5, 2), "node_channels": 2}
    return MessageFunctions(**{**given, **options})


def _message_passing(*steps):
    return MessagePassingNet(steps or [_functions()])


def _trained():
    net = _message_passing()
    torch.nn.init.ones_(net.read.weight)
    return net


def _graph(**options):
    from torch_geometric.data import Data

    return Data(**{"x": torch.ones(2, 2), "edge_index": torch.tensor([[0], [1]]), **options})


def _convolution(**options):
    from torch_geometric.nn import SAGEConv

    return SAGEConv(2, 2, **options)


CASES = {
    # options
    "an unknown basis": lambda: _edges(basis="orbits"),
    "an unknown normalisation": lambda: _edges(normalize=None),
    "an unknown reduction": lambda: InvariantPool("n n", "min"),
    "an unknown reduction among several": lambda: InvariantPool("n n", ("max", "min")),
    "a reduction twice": lambda: InvariantPool("n n", ("max", "max")),
    "an unknown basis to change to": lambda: change_basis("n ->", torch.ones(1), to="orbits"),
    "the orbit basis with means": lambda: _edges(basis="orbit"),
    "more channels than can be counted": lambda: EquivariantLinear("n -> n", 2**31 - 1, 2**31 - 1, device="meta"),
    "more channels than a layer can have": lambda: EquivariantLinear("n -> n", 10**18, 4, device="meta"),
    "more channels than Python writes digits": lambda: EquivariantLinear("n n -> n n", 4, HUGE),
    "fewer channels than Python writes digits": lambda: EquivariantLinear("n n -> n n", -HUGE, 4),
    "a network of more channels than Python writes digits": lambda: InvariantNet("n n", [4, HUGE], HUGE),
    "a basis that is a number of 5000 digits": lambda: EquivariantLinear("n -> n", 1, 1, basis=HUGE),
    "a data type that is a number of 5000 digits": lambda: EquivariantLinear("n -> n", 1, 1, dtype=HUGE),
    "a normalisation of 5000 digits of channels": lambda: EntryNorm(HUGE, "n n"),
    "no channels": lambda: EquivariantLinear("n -> n", 0, 3),
    "half a channel": lambda: EquivariantLinear("n -> n", 3, 0.5),
    "integer parameters": lambda: _edges(dtype=torch.int64),
    # inputs
    "not a tensor": lambda: _edges()([[1.0]]),
    "a list of tensors": lambda: _edges()([torch.zeros(3, 3, 16), torch.zeros(2, 2, 16)]),
    "an array of numpy": lambda: _edges()(torch.zeros(3, 3, 16).numpy()),
    "a graph of networkx": lambda: _edges()(networkx.path_graph(3)),
    "a batch of PyTorch Geometric": lambda: _edges()(_pyg_batch()),
    "too few axes": lambda: _edges()(torch.zeros(30, 30)),
    "far too few axes": lambda: _edges()(torch.zeros(30)),
    "axes of one node set with two lengths": lambda: _edges()(torch.zeros(8, 30, 31, 16)),
    "channels before the nodes": lambda: _edges()(torch.zeros(8, 16, 30, 30)),
    "channels before nodes of several sets": lambda: EquivariantLinear("u i -> u", 3, 1)(torch.zeros(3, 5, 4)),
    "a batch without channels": lambda: _edges(channels=(1, 32))(torch.zeros(8, 30, 30)),
    "unequal axes that are not neighbours": lambda: InvariantPool("u i u")(torch.zeros(7, 6, 5, 1)),
    "the wrong number of channels": lambda: _edges()(torch.zeros(5, 8, 30, 30, 3)),
    "another floating point type": lambda: _edges()(torch.zeros(3, 3, 16, dtype=torch.float64)),
    "an integer tensor": lambda: _edges()(torch.zeros(3, 3, 16, dtype=torch.int64)),
    "pooling of an integer tensor": lambda: InvariantPool("n n")(torch.zeros(3, 3, 1, dtype=torch.int64)),
    "another device": lambda: _edges()(torch.zeros(3, 3, 16, device="meta")),
    "not symmetric": lambda: _edges(channels=(1, 1), symmetric=True)(
        torch.tensor([[[0.0], [1.0]], [[3.5], [0.0]]]), check=True
    ),
    "not hollow": lambda: _edges(channels=(1, 1), hollow=True)(torch.full((2, 2, 1), -0.25), check=True),
    "coefficients in a list": lambda: change_basis("n ->", [1.0], to="orbit"),
    "coefficients for another plan": lambda: change_basis("n n -> n n", torch.zeros(11, 3), to="orbit"),
    # sizes
    "no length for new nodes": lambda: _new_nodes()(torch.zeros(3, 1)),
    "one number for a dict of lengths": lambda: _new_nodes()(torch.zeros(3, 1), sizes=5),
    "a length that is a fraction": lambda: _new_nodes()(torch.zeros(3, 1), sizes={"i": 2.5}),
    "lengths that are fractions": lambda: _new_nodes()(torch.zeros(2, 3, 1), sizes={"i": torch.tensor([2.0, 1.0])}),
    "a length for unknown nodes": lambda: _new_nodes()(torch.zeros(3, 1), sizes={"j": 3}),
    "a length that the input contradicts": lambda: _new_nodes()(torch.zeros(3, 1), sizes={"u": 4, "i": 2}),
    "sizes for padding beside a tensor": lambda: _new_nodes()(
        torch.zeros(2, 3, 1), sizes={"u": torch.tensor([3, 1]), "i": 2}
    ),
    "a size of a target that no memory has": lambda: _new_nodes()(torch.zeros(3, 1), sizes={"i": 2**31}),
    "a negative length": lambda: _new_nodes()(torch.zeros(3, 1), sizes={"i": -1}),
    "a negative length among others": lambda: _new_nodes()(torch.zeros(2, 3, 1), sizes={"i": torch.tensor([4, -2])}),
    "too few lengths": lambda: _new_nodes()(torch.zeros(2, 3, 1), sizes={"i": torch.tensor([4, 2, 1])}),
    "sizes larger than the padding": lambda: _edges(channels=(1, 1))(
        Padded(torch.zeros(2, 6, 3, 3, 1), torch.tensor([3, 5]))
    ),
    "sizes for another node set": lambda: EquivariantLinear("u i -> u", 1, 1)(_padded({"u": torch.tensor([3, 1])})),
    "sizes of more axes than the batch has": lambda: InvariantPool("n n")(
        _padded(torch.zeros(2, 3, dtype=torch.int64))
    ),
    "a mask of sizes": lambda: _from_vectors({"n": torch.tensor([True, False])}),
    "a list of sizes": lambda: _from_vectors({"n": [1, 2]}),
    "a size that is true": lambda: _from_vectors({"n": True}),
    "a size of nothing": lambda: _from_vectors({"n": None}),
    "zero for a dict of sizes": lambda: _from_vectors(0),
    "a number of 5000 digits for a dict of sizes": lambda: _from_vectors(HUGE),
    "a negative size of 5000 digits": lambda: _from_vectors({"n": -HUGE}),
    "another size of 5000 digits than that of the input": lambda: EquivariantLinear("n -> n", 1, 1)(
        torch.ones(3, 1), sizes={"n": HUGE}
    ),
    # conversions
    "a cost of less than no channels": lambda: plan("n -> n").cost(3, in_channels=-2),
    "a trace": lambda: _traced(EquivariantLinear("n n ->", 1, 1), torch.zeros(3, 3, 1)),
    "a script": lambda: _scripted(EquivariantLinear("n n ->", 1, 1)),
    "a sparse tensor": lambda: EquivariantLinear("n n ->", 1, 1)(torch.eye(3).unsqueeze(-1).to_sparse()),
    # networks
    "a network without layers": lambda: EquivariantNet("n -> n", [1]),
    "a dropout that is no probability": lambda: EquivariantNet("n -> n", [1, 1], dropout=1.5),
    "channels of a network of 5000 digits": lambda: EquivariantNet("n n -> n n", [4, HUGE]),
    "a dropout of 5000 digits": lambda: EquivariantNet("n n -> n n", [4, 4], dropout=HUGE),
    "an unknown activation": lambda: EquivariantNet("n -> n", [1, 1, 1], activation="rely"),
    # message passing
    "a convolution that cannot be converted": lambda: from_message_passing(_convolution(aggr="max"), product="exact"),
    "no compact set": lambda: from_message_passing(_convolution()),
    "a negative limit": lambda: CompactSet(size=3, neighbours=-1),
    "a limit of 5000 digits": lambda: CompactSet(-HUGE, 1),
    "a depth of 5000 digits": lambda: ReluProduct(HUGE),
    "a module whose range is not known": lambda: _message_passing(
        _functions(message=torch.nn.Sequential(torch.nn.Linear(4, 3), torch.nn.LayerNorm(3)))
    ).approximate(CompactSet(3, 2)),
    "an input outside the compact set": lambda: _message_passing().approximate(CompactSet(3, 2))(
        torch.full((4, 4, 3), 2.0), check=True
    ),
    "an approximation after training": lambda: _trained().approximate(CompactSet(3, 2)),
    "no messages": lambda: _message_passing(torch.nn.ReLU()),
    "a step that takes other channels": lambda: _message_passing(_functions(), torch.nn.Linear(2, 3), _functions()),
    "an update that takes other channels": lambda: _message_passing(_functions(update=torch.nn.Linear(9, 1))),
    "edge features of two kinds": lambda: _message_passing(_functions(edge_channels=1), _functions(edge_channels=2)),
    "a graph without edges, not even none": lambda: _message_passing().prepare(_graph(edge_index=None)),
    "a graph with other features": lambda: _message_passing().prepare(_graph(x=torch.ones(2, 5))),
    "a graph without edge features": lambda: _message_passing(
        _functions(message=torch.nn.Linear(7, 3), edge_channels=3)
    ).prepare(_graph()),
    "an edge between graphs": lambda: _message_passing().prepare(_graph(batch=torch.tensor([0, 1]))),
    "parallel edges with features": lambda: _message_passing(
        _functions(message=torch.nn.Linear(7, 3), edge_channels=3)
    ).prepare(_graph(edge_index=torch.tensor([[0, 0], [1, 1]]), edge_attr=torch.ones(2, 3))),
    # optional packages
    "an optional package that is missing": lambda: require("not_installed_anywhere", extra="draw", call="bellnet.draw"),
}
