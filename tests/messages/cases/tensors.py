"""Mistakes with `Padded` and `Sparse`, and with layers on a `Sparse`."""

from unittest.mock import patch

import torch

from bellnet import EquivariantLinear, InvariantPool, Padded, Sparse, cat
from bellnet.backends import DropoutMask, Moments, fused_norm_relu

PAIR = torch.tensor([[0, 1], [1, 0]])


def _padded(sizes, shape=(2, 3, 3, 1)):
    return Padded(torch.zeros(shape), sizes)


def _sparse(index=PAIR, values=None, sizes=3, **options):
    return Sparse(index, torch.zeros(index.shape[1], 1) if values is None else values, sizes, **options)


def _batch(n_graphs=2):
    return _sparse(torch.tensor([[0, 1], [0, 1], [1, 0]]), sizes=torch.tensor([3] * n_graphs))


def _ratings():
    return _sparse(sizes={"u": 3, "i": 4})


def _after_a_layer(graphs):
    """What follows a layer, on four tuples of three graphs."""
    scale, moments = (torch.ones(2), torch.zeros(2)), Moments(torch.zeros(2), torch.ones(2))
    dropout = DropoutMask(torch.ones(3, 2), torch.tensor(graphs))
    return fused_norm_relu(torch.ones(4, 2), scale, moments, eps=1e-5, training=True, dropout=dropout, residual=None)


def _with_memory(n_bytes, call):
    """A call on a machine with so much memory."""
    with patch("bellnet.tensors.node_tensor.machine_memory", lambda: n_bytes):
        call()


def _written(change):
    """A layer on a Sparse whose index was changed."""
    x = _sparse()
    change(x.support.index)
    _edges()(x)


def _hooked(unpack):
    """The gradient of a pool whose saved tensors a hook replaces."""
    x = torch.zeros(2, 5, 5, 1, requires_grad=True)
    with torch.autograd.graph.saved_tensors_hooks(lambda saved: saved, unpack):
        y = InvariantPool("n n", "max")(x)
    y.sum().backward()


def _edges(spec="n n -> n n", **options):
    return EquivariantLinear(spec, 1, 2, **options)


def _channels(*shape, sizes=(3, 1)):
    return Padded(torch.zeros(shape or (2, 3, 3, 2)), torch.tensor(sizes))


def _diagonal(*nodes):
    return Sparse(torch.tensor([nodes, nodes]), torch.ones(len(nodes), 1), sizes=4)


CASES = {
    # padded tensors
    "an activation of a Padded": lambda: torch.nn.ReLU()(_padded(torch.tensor([3, 1]))),
    "a sum of a tensor and a Padded": lambda: torch.zeros(2, 3, 3, 1) + _padded(torch.tensor([3, 1])),
    "a list for values": lambda: Padded([[1.0]], torch.tensor([1])),
    "a string for sizes": lambda: _padded("many"),
    "sizes of fractions": lambda: _padded(torch.tensor([3.0, 1.0])),
    "a mask for sizes": lambda: _padded({"n": torch.ones(2, 3, dtype=torch.bool)}),
    "sizes for another batch": lambda: _padded(torch.tensor([3, 1, 2])),
    "sizes for another batch, by name": lambda: _padded({"n": torch.tensor([3, 1, 2])}),
    "negative sizes": lambda: _padded(torch.tensor([3, -1])),
    "nothing to pack": lambda: Padded.pack([]),
    "packing what is no tensor": lambda: Padded.pack([torch.zeros(1, 1, 1), 3]),
    "packing what has no channels": lambda: Padded.pack([torch.zeros(2, 2)]),
    "packing different channels": lambda: Padded.pack([torch.zeros(2, 2, 3), torch.zeros(2, 2, 4)]),
    "packing a graph that is not square": lambda: Padded.pack([torch.zeros(2, 3, 1)]),
    "unpacking more axes than there are": lambda: _padded(torch.tensor(1), shape=(3, 1)).unpack("n n"),
    "unpacking sizes of too many axes": lambda: _padded(torch.zeros(2, 3, dtype=torch.int64)).unpack(),
    "unpacking sizes beyond the padding": lambda: Padded(torch.zeros(2, 6, 3, 3, 1), torch.tensor([3, 5])).unpack(),
    "unpacking without sizes": lambda: _padded({"u": torch.tensor([3, 1])}).unpack("u i"),
    # sparse tensors
    "a linear layer of a Sparse": lambda: torch.nn.Linear(1, 1)(Sparse(torch.tensor([[0], [1]]), torch.zeros(1, 1), 2)),
    "sizes are empty": lambda: _sparse(sizes={}),
    "sizes of different kinds": lambda: _sparse(sizes={"u": 3, "i": [3, 4]}),
    "sizes are fractions": lambda: _sparse(sizes=2.5),
    "sizes are a tensor of fractions": lambda: _sparse(sizes=torch.tensor([2.5])),
    "a negative size": lambda: _sparse(sizes={"n": -1}),
    "values are a list": lambda: Sparse(PAIR, [[1.0], [2.0]], 3),
    "values without channels": lambda: _sparse(values=torch.zeros(2)),
    "values for other tuples": lambda: _sparse(values=torch.zeros(3, 1)),
    "values on another device": lambda: Sparse(PAIR, torch.zeros(2, 1, device="meta"), torch.tensor(3)),
    "index was changed": lambda: _after_a_layer([0, 1, 7, 2]),
    "sizes that overflow together": lambda: _sparse(
        torch.tensor([[0, 1], [0, 1], [1, 0]]), sizes=torch.tensor([2**62, 2**62])
    ),
    "more nodes than memory": lambda: _with_memory(6399, lambda: _edges("n n -> n")(_sparse(sizes=100))),
    "more nodes of a named set than memory": lambda: _with_memory(10, lambda: _edges("u i -> u")(_ratings())),
    "index was written to": lambda: _written(lambda index: index.add_(5)),
    "a hook on saved tensors": lambda: _hooked(lambda saved: saved[:1]),
    "index is a list": lambda: Sparse([[0], [1]], torch.zeros(1, 1), 3),
    "index is an array": lambda: Sparse(PAIR.numpy(), torch.zeros(2, 1), 3),
    "other values are a list": lambda: _sparse().with_values([[1.0], [2.0]]),
    "other values on another device": lambda: _sparse().with_values(torch.zeros(2, 1, device="meta")),
    "index is not int64": lambda: _sparse(PAIR.int()),
    "index has one axis": lambda: Sparse(torch.zeros(2).long(), torch.zeros(2, 1), 3),
    "a batch without slots": lambda: _sparse(torch.zeros(1, 2, dtype=torch.int64), sizes=[2, 2]),
    "a node out of range": lambda: _sparse(torch.tensor([[0, 1], [1, 3]])),
    "a negative node": lambda: _sparse(torch.tensor([[0, -1], [1, 0]])),
    "a node out of range of its graph": lambda: _sparse(torch.tensor([[0, 1], [2, 2], [1, 0]]), sizes=[3, 2]),
    "a graph out of range": lambda: _sparse(torch.tensor([[0, 2], [0, 1], [1, 0]]), sizes=[3, 3]),
    "an index that is the wrong way round": lambda: Sparse(
        torch.tensor([[0, 1], [1, 0], [1, 2]]), torch.zeros(3, 4), 4
    ),
    "a matrix without channels": lambda: Sparse.from_dense(torch.eye(3)),
    "at tuples without their graph": lambda: _sparse(torch.tensor([[0, 1], [0, 1], [1, 0]]), sizes=[3, 3]).at(
        torch.tensor([[0], [1]])
    ),
    "a tuple that is stored twice": lambda: _sparse(torch.tensor([[0, 1, 0], [1, 0, 1]])),
    "a tuple of a batch that is stored twice": lambda: _sparse(torch.tensor([[1, 1], [0, 0], [1, 1]]), sizes=[3, 3]),
    "unsorted although sorted was promised": lambda: _sparse(torch.tensor([[1, 0], [0, 1]]), is_sorted=True),
    "a shape of another order": lambda: _sparse(shape="n n n"),
    "a shape with a set without size": lambda: _sparse(sizes={"u": 3, "i": 4}, shape="u v"),
    "slots without node sets": lambda: _sparse(torch.zeros(3, 1).long(), sizes={"u": 3, "i": 4}),
    "nodes are a list": lambda: Sparse.of_nodes([1.0], 1),
    "nodes of two sets": lambda: Sparse.of_nodes(torch.zeros(2, 1), {"u": 1, "i": 1}),
    "a dense tensor with too many axes": lambda: Sparse.from_dense(torch.zeros(2, 2, 3, 3, 1)),
    "a dense tensor that is a list": lambda: Sparse.from_dense([[1.0]]),
    "a dense tensor with two lengths for one set": lambda: Sparse.from_dense(torch.zeros(3, 4, 1)),
    "a padded tensor without sizes": lambda: Sparse.from_dense(Padded(torch.zeros(2, 3, 3, 1), {"u": [3, 1]}), "u i"),
    "at other rows": lambda: _sparse().at(torch.tensor([[0], [0], [0]])),
    "at tuples on another device": lambda: _sparse().at(PAIR.to("meta")),
    "the diagonal of a table": lambda: _ratings().with_diagonal(),
    "graphs of different sizes to dense": lambda: _sparse(torch.zeros(3, 1).long(), sizes=[3, 2]).to_dense(),
    "one graph to padded": lambda: _sparse().to_padded(),
    "no graphs to pack": lambda: Sparse.pack([]),
    "tensors to pack": lambda: Sparse.pack([_sparse(), torch.zeros(3, 3, 1)]),
    "graphs with different channels to pack": lambda: Sparse.pack([_sparse(), _sparse(values=torch.zeros(2, 3))]),
    "graphs on different devices to pack": lambda: Sparse.pack([_sparse(), _sparse().to("meta")]),
    "a batch to pack": lambda: Sparse.pack([_sparse(), _batch()]),
    "graphs of different shapes to pack": lambda: Sparse.pack([_sparse(), _ratings()]),
    "a layer over other slots": lambda: _edges()(_ratings()),
    "a sparse tensor where a vector is expected": lambda: _edges("-> n n")(_sparse(), support=_sparse()),
    "a Sparse with other channels": lambda: _edges()(_sparse(values=torch.zeros(2, 5))),
    "a tensor for a support": lambda: _edges()(_sparse(), support=PAIR),
    "a support for a vector": lambda: _edges("n n ->")(_sparse(), support=_sparse()),
    "a support over other slots": lambda: _edges()(_sparse(), support=_ratings()),
    "a support of other sizes": lambda: _edges()(_sparse(), support=_sparse(sizes=4)),
    "sizes that the input has otherwise": lambda: _edges()(_sparse(), sizes={"n": 5}),
    "sizes for another number of graphs": lambda: _edges("n n -> m")(_batch(), sizes={"m": torch.tensor([1, 2, 3])}),
    "a support on another device": lambda: _edges()(_sparse(), support=_sparse().to("meta")),
    "a support of a batch": lambda: _edges()(_sparse(), support=_batch()),
    "a support of more graphs": lambda: _edges()(_batch(), support=_batch(3)),
    "no support": lambda: _edges("n n -> n n n")(_sparse()),
    "a node set of the target without size": lambda: _edges("n n -> m")(_sparse()),
    "a dense batch for the support of one graph": lambda: _edges("n -> n n")(torch.zeros(2, 3, 1), support=_sparse()),
    "fewer vectors than graphs": lambda: _edges("-> n n")(torch.zeros(3, 1), support=_batch()),
    "pooling over other slots": lambda: InvariantPool("n n n")(_sparse()),
    "pooling of a Sparse of integers": lambda: InvariantPool("n n")(_sparse(values=torch.zeros(2, 1).long())),
    "a Sparse that is not symmetric": lambda: _edges(symmetric=True)(
        _sparse(values=torch.tensor([[1.0], [2.0]])), check=True
    ),
    "a Sparse that is not hollow": lambda: _edges(hollow=True)(
        _sparse(torch.tensor([[1], [1]]), torch.tensor([[2.0]])), check=True
    ),
    "an unknown option of a pool": lambda: InvariantPool("n n", over="some"),
    # arithmetic and methods
    "sizes beyond every axis": lambda: _channels(sizes=(5, 1)),
    "a sum of a Padded and a Sparse": lambda: _channels() + _diagonal(0),
    "a sum of different numbers of channels": lambda: _channels() + _channels(2, 3, 3, 4),
    "a product with a tensor of another shape": lambda: _channels() * torch.ones(3),
    "a difference of graphs of other sizes": lambda: _channels() - _channels(sizes=(3, 2)),
    "a sum of values that are padded to other lengths": lambda: _channels() + _channels(2, 4, 4, 2),
    "a sum of Sparse tensors of other sizes": lambda: (
        _diagonal(0) + Sparse(torch.tensor([[0], [0]]), torch.ones(1, 1), sizes=9)
    ),
    "a sum of values on other tuples": lambda: _diagonal(0) + _diagonal(1),
    "a list for a device": lambda: _channels().to([1]),
    "a dense tensor beyond a bound": lambda: _diagonal(0).to_dense(max_gigabytes=1e-9),
    "the mean of a Padded": lambda: _channels().mean(),
    "the largest entry of a Sparse": lambda: _diagonal(0).amax(),
    "an activation as a method": lambda: _channels().relu(),
    "a conversion by name": lambda: _diagonal(0).double(),
    "a choice of graphs by a method": lambda: _channels().unbind(),
    "torch.cat of Padded": lambda: torch.cat([_channels(), _channels()]),
    "a function of torch": lambda: torch.relu(_channels()),
    # concatenation, index and mask
    "no tensors to concatenate": lambda: cat([]),
    "one tensor to concatenate": lambda: cat(_channels()),
    "concatenation of numbers": lambda: cat([1, 2]),
    "concatenation of a Padded and a tensor": lambda: cat([_channels(), torch.ones(2, 3, 3, 2)]),
    "concatenation across devices": lambda: cat([_channels(), _channels().to("meta")]),
    "concatenation of graphs of other sizes": lambda: cat([_channels(), _channels(sizes=(3, 2))]),
    "concatenation of other axes": lambda: cat([_channels(), _channels(2, 3, 1)]),
    "concatenation of other stored entries": lambda: cat([_diagonal(0), _diagonal(1)]),
    "concatenation of tensors of other shapes": lambda: cat([torch.ones(2, 1), torch.ones(3, 1)]),
    "an index of several axes": lambda: _channels()[0, 1],
    "an index with two axes": lambda: _batch()[torch.tensor([[0]])],
    "an index of a single graph": lambda: _diagonal(0)[0],
    "the length of a single graph": lambda: len(_diagonal(0)),
    "an index of a single padded graph": lambda: _channels()[0][0],
    "a mask of ambiguous axes": lambda: Padded(torch.ones(1, 2, 3, 2, 1), {"u": [2], "i": [3]}).mask(),
    "a mask over an unknown node set": lambda: Padded(torch.ones(1, 2, 3, 1), {"u": [2], "i": [3]}).mask("u v"),
}
