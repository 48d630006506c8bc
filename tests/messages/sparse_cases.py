"""Cases of tensors in listed tuples that are refused: the call, the class of the error, and its words."""

from unittest.mock import patch

import torch

from bellnet import EquivariantLinear, InvariantPool, Padded, Sparse
from bellnet.backends import DropoutMask, Moments, fused_norm_relu
from bellnet.errors import DeclarationError, OptionError, ShapeError, SizesError, SupportError, TensorError
from tests.messages.case import Case

PAIR = torch.tensor([[0, 1], [1, 0]])


def _sparse(index=PAIR, values=None, sizes=3, **options):
    return Sparse(index, torch.zeros(index.shape[1], 1) if values is None else values, sizes, **options)


def _batch(n_graphs=2):
    return _sparse(torch.tensor([[0, 1], [0, 1], [1, 0]]), sizes=torch.tensor([3] * n_graphs))


def _ratings():
    return _sparse(sizes={"u": 3, "i": 4})


def _after_a_layer(graphs):
    """What follows a layer, on four tuples of three graphs."""
    scale, moments = (torch.ones(2), torch.zeros(2)), Moments(torch.zeros(2), torch.ones(2))
    dropped = DropoutMask(torch.ones(3, 2), torch.tensor(graphs))
    return fused_norm_relu(torch.ones(4, 2), scale, moments, eps=1e-5, training=True, dropout=dropped, residual=None)


def _with_memory(n_bytes, call):
    """A call on a machine with so much memory."""
    with patch("bellnet.tensors.node_counts.machine_memory", lambda: n_bytes):
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


SPARSE = [
    Case(
        "a linear layer of a Sparse",
        TensorError,
        lambda: torch.nn.Linear(1, 1)(Sparse(torch.tensor([[0], [1]]), torch.zeros(1, 1), 2)),
        """\
linear takes tensors, but got a Sparse.
A module that acts on every entry alone takes it in a Pointwise, bellnet.Pointwise(torch.nn.ReLU()),
and a function in its map, x.map(torch.relu). Its tensor is x.values.""",
    ),
    Case(
        "sizes are empty",
        SizesError,
        lambda: _sparse(sizes={}),
        """\
Sparse(index, values, sizes): sizes is empty.
Give the number of nodes of every node set.""",
    ),
    Case(
        "sizes of different kinds",
        SizesError,
        lambda: _sparse(sizes={"u": 3, "i": [3, 4]}),
        """\
Sparse(index, values, sizes): the sizes of node sets 'u' and 'i' have shapes () and (2,).
Give all node sets one number each, or each of them one number for every graph.""",
    ),
    Case(
        "sizes are fractions",
        SizesError,
        lambda: _sparse(sizes=2.5),
        """\
Sparse(index, values, sizes): sizes must be a whole number, or whole numbers for the graphs of a batch, not \
builtins.float.
Sizes are numbers of nodes: 5 for one graph, torch.tensor([5, 3]) for a batch of two.""",
    ),
    Case(
        "sizes are a tensor of fractions",
        SizesError,
        lambda: _sparse(sizes=torch.tensor([2.5])),
        """\
Sparse(index, values, sizes): sizes must be a whole number, or whole numbers for the graphs of a batch, not a \
torch.float32 tensor of shape (1,).
Sizes are numbers of nodes: 5 for one graph, torch.tensor([5, 3]) for a batch of two.""",
    ),
    Case(
        "a negative size",
        SizesError,
        lambda: _sparse(sizes={"n": -1}),
        """\
Sparse(index, values, sizes): sizes['n'] holds a negative number, -1.""",
    ),
    Case(
        "values are a list",
        TensorError,
        lambda: Sparse(PAIR, [[1.0], [2.0]], 3),
        """\
Sparse(index, values, sizes): values must be a tensor, not builtins.list.""",
    ),
    Case(
        "values without channels",
        ShapeError,
        lambda: _sparse(values=torch.zeros(2)),
        """\
Sparse(index, values, sizes): values must have one row of channels for each of the 2 tuples; their shape is (2,).
Values without channels get them from values.unsqueeze(-1).""",
    ),
    Case(
        "values for other tuples",
        ShapeError,
        lambda: _sparse(values=torch.zeros(3, 1)),
        """\
Sparse(index, values, sizes): values must have one row of channels for each of the 2 tuples; their shape is (3, \
1).""",
    ),
    Case(
        "values on another device",
        TensorError,
        lambda: Sparse(PAIR, torch.zeros(2, 1, device="meta"), torch.tensor(3)),
        """\
Sparse(index, values, sizes): index is on cpu, but values are on meta.
Move one of them: index.to("meta").""",
    ),
    Case(
        "index was changed",
        SupportError,
        lambda: _after_a_layer([0, 1, 7, 2]),
        """\
the index of a Sparse was changed after it was made.
The graphs of its 4 tuples must be from 0 to 2, but 4 are from 0 to 7.
Leave index as it is, and make another one: Sparse(index, values, sizes).""",
    ),
    Case(
        "sizes that overflow together",
        SizesError,
        lambda: _sparse(torch.tensor([[0, 1], [0, 1], [1, 0]]), sizes=torch.tensor([2**62, 2**62])),
        """\
Sparse(index, values, sizes): sizes add up to more than 4,611,686,018,427,387,904 nodes.
Sizes are numbers of nodes.""",
    ),
    Case(
        "more nodes than memory",
        SizesError,
        lambda: _with_memory(6399, lambda: _edges("n n -> n")(_sparse(sizes=100))),
        """\
sizes: 100 nodes would take at least 6,400 bytes in a layer, which has memory for each node; this machine \
has 6,399.
Number only the nodes that occur: torch.unique(index, return_inverse=True).""",
    ),
    Case(
        "more nodes of a named set than memory",
        SizesError,
        lambda: _with_memory(10, lambda: _edges("u i -> u")(_ratings())),
        """\
sizes: 3 nodes of node set 'u' would take at least 192 bytes in a layer, which has memory for each node; \
this machine has 10.
Number only the nodes that occur: torch.unique(index, return_inverse=True).""",
    ),
    Case(
        "index was written to",
        SupportError,
        lambda: _written(lambda index: index.add_(5)),
        """\
the index of a Sparse was changed in place after the Sparse was made.
Leave x.support.index as it is, and make another one: Sparse(index, values, sizes).""",
    ),
    Case(
        "a hook on saved tensors",
        TensorError,
        lambda: _hooked(lambda saved: saved[:1]),
        """\
backward: a tensor of shape (2, 5, 5, 1), torch.strided, on cpu was saved, but a saved-tensor hook returned one of \
shape (1, 5, 5, 1), torch.strided, on cpu.
Return the same values from the unpack hook of torch.autograd.graph.saved_tensors_hooks.""",
    ),
    Case(
        "index is a list",
        SupportError,
        lambda: Sparse([[0], [1]], torch.zeros(1, 1), 3),
        """\
Sparse(index, values, sizes): index must be an int64 tensor, not builtins.list.""",
    ),
    Case(
        "index is an array",
        SupportError,
        lambda: Sparse(PAIR.numpy(), torch.zeros(2, 1), 3),
        """\
Sparse(index, values, sizes): index must be an int64 tensor, not numpy.ndarray.""",
    ),
    Case(
        "other values are a list",
        TensorError,
        lambda: _sparse().with_values([[1.0], [2.0]]),
        """\
Sparse.on(support, values): values must be a tensor, not builtins.list.""",
    ),
    Case(
        "other values on another device",
        TensorError,
        lambda: _sparse().with_values(torch.zeros(2, 1, device="meta")),
        """\
Sparse.on(support, values): the support is on cpu, but values are on meta.""",
    ),
    Case(
        "index is not int64",
        SupportError,
        lambda: _sparse(PAIR.int()),
        """\
Sparse(index, values, sizes): index must be int64, not torch.int32.
Convert it: index.to(torch.int64).""",
    ),
    Case(
        "index has one axis",
        SupportError,
        lambda: Sparse(torch.zeros(2).long(), torch.zeros(2, 1), 3),
        """\
Sparse(index, values, sizes): index must have two axes, one row for each slot, and one column for each tuple; \
its shape is (2,).""",
    ),
    Case(
        "a batch without slots",
        SupportError,
        lambda: _sparse(torch.zeros(1, 2, dtype=torch.int64), sizes=[2, 2]),
        """\
Sparse(index, values, sizes): index must have two axes, the number of the graph and one row for each slot, and \
one column for each tuple; its shape is (1, 2).""",
    ),
    Case(
        "a node out of range",
        SupportError,
        lambda: _sparse(torch.tensor([[0, 1], [1, 3]])),
        """\
Sparse(index, values, sizes): index[1, 1] is node 3, but node set 'n' has 3 nodes.
Nodes are numbered from 0 in every graph.""",
    ),
    Case(
        "a negative node",
        SupportError,
        lambda: _sparse(torch.tensor([[0, -1], [1, 0]])),
        """\
Sparse(index, values, sizes): index[0, 1] is node -1, but node set 'n' has 3 nodes.
Nodes are numbered from 0 in every graph.""",
    ),
    Case(
        "a node out of range of its graph",
        SupportError,
        lambda: _sparse(torch.tensor([[0, 1], [2, 2], [1, 0]]), sizes=[3, 2]),
        """\
Sparse(index, values, sizes): index[1, 1] is node 2, but node set 'n' of graph 1 has 2 nodes.
Nodes are numbered from 0 in every graph.""",
    ),
    Case(
        "a graph out of range",
        SupportError,
        lambda: _sparse(torch.tensor([[0, 2], [0, 1], [1, 0]]), sizes=[3, 3]),
        """\
Sparse(index, values, sizes): index[0, 1] is graph 2, but sizes are given for 2 graphs.
The first row of the index of a batch is the number of the graph; for one graph give one number, sizes=4.
Edges that are numbered through all graphs are for bellnet.data.sparse.from_edge_index(edge_index, batch=...).""",
    ),
    Case(
        "an index that is the wrong way round",
        ShapeError,
        lambda: Sparse(torch.tensor([[0, 1], [1, 0], [1, 2]]), torch.zeros(3, 4), 4),
        """\
Sparse(index, values, sizes): values must have one row of channels for each of the 2 tuples; their shape is (3, 4).
An index has one row for each slot and one column for each tuple; this one looks like index.T.""",
    ),
    Case(
        "a matrix without channels",
        ShapeError,
        lambda: Sparse.from_dense(torch.eye(3)),
        """\
Sparse.from_dense(x, "n n"): x must have 2 node axes and channels, and at most one batch axis in front; its \
shape is (3, 3).
A tensor without channels gets them from x.unsqueeze(-1).""",
    ),
    Case(
        "at tuples without their graph",
        SupportError,
        lambda: _sparse(torch.tensor([[0, 1], [0, 1], [1, 0]]), sizes=[3, 3]).at(torch.tensor([[0], [1]])),
        """\
Sparse.at(index): index has 2 rows, but that of the tensor has 3.
This is a batch: the first row is the number of the graph, and nodes are numbered from 0 in every graph.""",
    ),
    Case(
        "a tuple listed twice",
        SupportError,
        lambda: _sparse(torch.tensor([[0, 1, 0], [1, 0, 1]])),
        """\
Sparse(index, values, sizes): the tuple (0, 1) is listed twice, at places 0 and 2.
A tuple has one value. Add up or choose among values of equal tuples first; from_edge_index, from_pyg and \
from_ratings of bellnet.data.sparse add up with duplicates="sum".""",
    ),
    Case(
        "a tuple of a batch listed twice",
        SupportError,
        lambda: _sparse(torch.tensor([[1, 1], [0, 0], [1, 1]]), sizes=[3, 3]),
        """\
Sparse(index, values, sizes): the tuple (0, 1) of graph 1 is listed twice, at places 0 and 1.
A tuple has one value. Add up or choose among values of equal tuples first; from_edge_index, from_pyg and \
from_ratings of bellnet.data.sparse add up with duplicates="sum".""",
    ),
    Case(
        "unsorted although sorted was promised",
        SupportError,
        lambda: _sparse(torch.tensor([[1, 0], [0, 1]]), is_sorted=True),
        """\
Sparse(index, values, sizes): is_sorted=True promises ascending tuples, but (1, 0) at place 0 comes before (0, \
1) at place 1.
Leave out is_sorted, and tuples and values are sorted for you.""",
    ),
    Case(
        "a shape of another order",
        SupportError,
        lambda: _sparse(shape="n n n"),
        """\
Sparse(index, values, sizes): shape="n n n" has 3 slots, but the index has 2 rows.""",
    ),
    Case(
        "a shape with a set without size",
        SupportError,
        lambda: _sparse(sizes={"u": 3, "i": 4}, shape="u v"),
        """\
Sparse(index, values, sizes): shape="u v" has node set 'v', but sizes has no entry for it.""",
    ),
    Case(
        "slots that sizes do not tell",
        SupportError,
        lambda: _sparse(torch.zeros(3, 1).long(), sizes={"u": 3, "i": 4}),
        """\
Sparse(index, values, sizes): which slot runs over which node set? sizes names 'u', 'i', and the index has 3 slots.
Pass the shape as well: shape="u i u".""",
    ),
    Case(
        "nodes are a list",
        TensorError,
        lambda: Sparse.of_nodes([1.0], 1),
        """\
Sparse.of_nodes(values, sizes): values must be a tensor, not builtins.list.""",
    ),
    Case(
        "nodes of two sets",
        SupportError,
        lambda: Sparse.of_nodes(torch.zeros(2, 1), {"u": 1, "i": 1}),
        """\
Sparse.of_nodes(values, sizes): sizes has 2 node sets, but nodes are of one.""",
    ),
    Case(
        "a dense tensor with too many axes",
        ShapeError,
        lambda: Sparse.from_dense(torch.zeros(2, 2, 3, 3, 1)),
        """\
Sparse.from_dense(x, "n n"): x must have 2 node axes and channels, and at most one batch axis in front; its \
shape is (2, 2, 3, 3, 1).
A tensor without node axes has no tuples to list.""",
    ),
    Case(
        "a dense tensor that is a list",
        TensorError,
        lambda: Sparse.from_dense([[1.0]]),
        """\
Sparse.from_dense(x, "n n"): x must be a tensor or a Padded, not builtins.list.""",
    ),
    Case(
        "a dense tensor with two lengths for one set",
        ShapeError,
        lambda: Sparse.from_dense(torch.zeros(3, 4, 1)),
        """\
Sparse.from_dense(x, "n n"): the axes of node set 'n' have lengths 3 and 4; the shape of x is (3, 4, 1).
If they are different node sets, name them apart, as in "u i".""",
    ),
    Case(
        "a padded tensor without sizes",
        SupportError,
        lambda: Sparse.from_dense(Padded(torch.zeros(2, 3, 3, 1), {"u": [3, 1]}), "u i"),
        """\
Sparse.from_dense(x, "u i"): the Padded has no sizes for node set 'i'.""",
    ),
    Case(
        "at other rows",
        SupportError,
        lambda: _sparse().at(torch.tensor([[0], [0], [0]])),
        """\
Sparse.at(index): index has 3 rows, but that of the tensor has 2.""",
    ),
    Case(
        "at tuples on another device",
        SupportError,
        lambda: _sparse().at(PAIR.to("meta")),
        """\
Sparse.at(index): index is on meta, but the tensor is on cpu.""",
    ),
    Case(
        "the diagonal of a table",
        SupportError,
        lambda: _ratings().with_diagonal(),
        """\
Sparse.with_diagonal(): "u i" has slots of different node sets and so no diagonal.""",
    ),
    Case(
        "graphs of different sizes to dense",
        SupportError,
        lambda: _sparse(torch.zeros(3, 1).long(), sizes=[3, 2]).to_dense(),
        """\
Sparse.to_dense(): the graphs of this batch differ in size.
Use x.to_padded(), or x.unpack().""",
    ),
    Case(
        "one graph to padded",
        SupportError,
        lambda: _sparse().to_padded(),
        """\
Sparse.to_padded(): this is one graph and not a batch.
Use x.to_dense().""",
    ),
    Case(
        "no graphs to pack",
        SupportError,
        lambda: Sparse.pack([]),
        """\
Sparse.pack(graphs): there is no graph.""",
    ),
    Case(
        "tensors to pack",
        TensorError,
        lambda: Sparse.pack([_sparse(), torch.zeros(3, 3, 1)]),
        """\
Sparse.pack(graphs): graphs[1] must be a Sparse, not torch.Tensor.""",
    ),
    Case(
        "graphs with different channels to pack",
        ShapeError,
        lambda: Sparse.pack([_sparse(), _sparse(values=torch.zeros(2, 3))]),
        """\
Sparse.pack(graphs): graphs[1] has 3 channels, but graphs[0] has 1.""",
    ),
    Case(
        "graphs on different devices to pack",
        TensorError,
        lambda: Sparse.pack([_sparse(), _sparse().to("meta")]),
        """\
Sparse.pack(graphs): graphs[1] is on meta, but graphs[0] is on cpu.""",
    ),
    Case(
        "a batch to pack",
        SupportError,
        lambda: Sparse.pack([_sparse(), _batch()]),
        """\
Sparse.pack(graphs): graphs[1] is a batch; all must be single graphs of one shape, here "n n".""",
    ),
    Case(
        "graphs of different shapes to pack",
        SupportError,
        lambda: Sparse.pack([_sparse(), _ratings()]),
        """\
Sparse.pack(graphs): graphs[1] has the shape "u i"; all must be single graphs of one shape, here "n n".""",
    ),
    Case(
        "a layer over other slots",
        SupportError,
        lambda: _edges()(_ratings()),
        """\
EquivariantLinear("n n -> n n", 1, 2) takes a Sparse over "n n", but this one is over "u i".""",
    ),
    Case(
        "a sparse tensor where a vector is expected",
        SupportError,
        lambda: _edges("-> n n")(_sparse(), support=_sparse()),
        """\
EquivariantLinear("-> n n", 1, 2) takes one vector for each graph, a plain tensor, but this is a Sparse.""",
    ),
    Case(
        "listed values with other channels",
        ShapeError,
        lambda: _edges()(_sparse(values=torch.zeros(2, 5))),
        """\
EquivariantLinear("n n -> n n", 1, 2): 1 channels were declared, but the values of this Sparse have 5.""",
    ),
    Case(
        "a support that is none",
        SupportError,
        lambda: _edges()(_sparse(), support=PAIR),
        """\
EquivariantLinear("n n -> n n", 1, 2): support must be a bellnet.Sparse, whose tuples the result is to list, \
not Tensor.""",
    ),
    Case(
        "a support for a vector",
        SupportError,
        lambda: _edges("n n ->")(_sparse(), support=_sparse()),
        """\
EquivariantLinear("n n ->", 1, 2): the target has no slots, so there are no tuples to list.
Leave out support.""",
    ),
    Case(
        "a support over other slots",
        SupportError,
        lambda: _edges()(_sparse(), support=_ratings()),
        """\
EquivariantLinear("n n -> n n", 1, 2): the target is over "n n", but the support that was given is over "u i".""",
    ),
    Case(
        "a support of other sizes",
        SupportError,
        lambda: _edges()(_sparse(), support=_sparse(sizes=4)),
        """\
EquivariantLinear("n n -> n n", 1, 2): of node set 'n' graph 0 has 3 nodes by the input, but 4 by the support.
Both must be about the same nodes.""",
    ),
    Case(
        "sizes that the input has otherwise",
        SupportError,
        lambda: _edges()(_sparse(), sizes={"n": 5}),
        """\
EquivariantLinear("n n -> n n", 1, 2): of node set 'n' graph 0 has 3 nodes by the input, but 5 by sizes.
Both must be about the same nodes.""",
    ),
    Case(
        "sizes for another number of graphs",
        SizesError,
        lambda: _edges("n n -> m")(_batch(), sizes={"m": torch.tensor([1, 2, 3])}),
        """\
EquivariantLinear("n n -> m", 1, 2): the input is a batch of 2, but sizes['m'] has the shape (3,).
Give one number, or for a batch one for each graph.""",
    ),
    Case(
        "a support on another device",
        SupportError,
        lambda: _edges()(_sparse(), support=_sparse().to("meta")),
        """\
EquivariantLinear("n n -> n n", 1, 2): the input is on cpu, but the support is on meta.
Move one of them: support.to("cpu").""",
    ),
    Case(
        "a support of a batch",
        SupportError,
        lambda: _edges()(_sparse(), support=_batch()),
        """\
EquivariantLinear("n n -> n n", 1, 2): the input is one graph, but the support is that of a batch of 2.""",
    ),
    Case(
        "a support of more graphs",
        SupportError,
        lambda: _edges()(_batch(), support=_batch(3)),
        """\
EquivariantLinear("n n -> n n", 1, 2): the input is a batch of 2, but the support is that of a batch of 3.""",
    ),
    Case(
        "no support",
        SupportError,
        lambda: _edges("n n -> n n n")(_sparse()),
        """\
EquivariantLinear("n n -> n n n", 1, 2): which tuples over "n n n" is the result to list? The input lists \
tuples over "n n".
Pass them in the call: layer(x, support=...), with a bellnet.Sparse whose tuples are taken and whose values are \
not looked at.""",
    ),
    Case(
        "a node set of the target without size",
        SizesError,
        lambda: _edges("n n -> m")(_sparse()),
        """\
EquivariantLinear("n n -> m", 1, 2): only the target has node set 'm', so the input cannot tell its length.
Pass it in the call: layer(x, sizes={'m': 10}).""",
    ),
    Case(
        "a dense batch for the support of one graph",
        ShapeError,
        lambda: _edges("n -> n n")(torch.zeros(2, 3, 1), support=_sparse()),
        """\
EquivariantLinear("n -> n n", 1, 2): the support is that of one graph, so the input must have no batch axis; \
its shape is (2, 3, 1).""",
    ),
    Case(
        "fewer vectors than graphs",
        ShapeError,
        lambda: _edges("-> n n")(torch.zeros(3, 1), support=_batch()),
        """\
EquivariantLinear("-> n n", 1, 2): the support has 2 graphs, but the input has 3.""",
    ),
    Case(
        "pooling over other slots",
        SupportError,
        lambda: InvariantPool("n n n")(_sparse()),
        """\
InvariantPool("n n n") takes a Sparse over "n n n", but this one is over "n n".""",
    ),
    Case(
        "pooling of listed whole numbers",
        TensorError,
        lambda: InvariantPool("n n")(_sparse(values=torch.zeros(2, 1).long())),
        """\
InvariantPool("n n") takes floating point numbers, but the input is torch.int64.
Convert it: x.to(torch.float32).""",
    ),
    Case(
        "listed values that are not symmetric",
        DeclarationError,
        lambda: _edges(symmetric=True)(_sparse(values=torch.tensor([[1.0], [2.0]])), check=True),
        """\
EquivariantLinear("n n -> n n", 1, 2) was told that its inputs are symmetric, but exchanging slots 0 and 1 of \
node set 'n' changes this one by up to 1.
Leave out symmetric=True to use all maps, or symmetrise the input: (x + x.transpose(-2, -3)) / 2 for order 2.""",
    ),
    Case(
        "listed values on the diagonal",
        DeclarationError,
        lambda: _edges(hollow=True)(_sparse(torch.tensor([[1], [1]]), torch.tensor([[2.0]])), check=True),
        """\
EquivariantLinear("n n -> n n", 1, 2) was told that its inputs are hollow, but this one has values up to 2 \
where slots 0 and 1 of node set 'n' coincide.
Leave out hollow=True to use the maps that read this diagonal.""",
    ),
    Case(
        "an unknown choice of tuples to pool",
        OptionError,
        lambda: InvariantPool("n n", over="some"),
        """\
InvariantPool("n n"): over must be one of 'all', 'stored', not 'some'.""",
    ),
]
