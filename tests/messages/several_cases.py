"""Cases of several tensors that are refused: the call, the class of the error, and its words."""

import torch

from bellnet import (
    EntryNorm,
    EquivariantLinear,
    EquivariantNet,
    InvariantNet,
    InvariantPool,
    Padded,
    Pointwise,
    Sparse,
    change_basis,
    plan,
)
from bellnet.errors import OptionError, ShapeError, SizesError, SupportError, TensorError
from tests.messages.case import Case

PAIR = torch.tensor([[0, 1], [1, 0]])


def _edges(sizes=3):
    return Sparse(PAIR, torch.zeros(2, 1), sizes)


def _batch(sizes=(3, 2)):
    return Sparse(torch.tensor([[0, 1], [0, 1], [1, 0]]), torch.zeros(2, 1), torch.tensor(sizes))


def _layer(spec="n n, n -> n n, n", **options):
    return EquivariantLinear(spec, 1, 2, **options)


def _padded(sizes, *axes):
    return Padded(torch.zeros(2, *axes, 1), torch.tensor(sizes))


SEVERAL = [
    Case(
        "several tensors one by one",
        TensorError,
        lambda: _layer()(torch.zeros(3, 3, 1), torch.zeros(3, 1)),
        """\
EquivariantLinear("n n, n -> n n, n", 1, 2) takes its 2 tensors as one tuple, but 2 things came one by one.
Put parentheses around them: module((x, y)).""",
    ),
    Case(
        "many tensors one by one for a network",
        TensorError,
        lambda: EquivariantNet("n n, n, n, -> n", [1, 2])(*[torch.zeros(3, 1)] * 4),
        """\
EquivariantNet("n n, n, n, -> n") takes its 4 tensors as one tuple, but 4 things came one by one.
Put parentheses around them: module((x, y, z, ...)).""",
    ),
    Case(
        "several tensors one by one for a classifier",
        TensorError,
        lambda: InvariantNet("n n, n", [1, 2], 3)(torch.zeros(3, 3, 1), torch.zeros(3, 1)),
        """\
InvariantNet("n n, n") takes its 2 tensors as one tuple, but 2 things came one by one.
Put parentheses around them: module((x, y)).""",
    ),
    Case(
        "several tensors one by one to pool",
        TensorError,
        lambda: InvariantPool("n n, n")(torch.zeros(3, 3, 1), torch.zeros(3, 1)),
        """\
InvariantPool("n n, n") takes its 2 tensors as one tuple, but 2 things came one by one.
Put parentheses around them: module((x, y)).""",
    ),
    Case(
        "several tensors one by one to normalise",
        TensorError,
        lambda: EntryNorm("n n, n", 1)(torch.zeros(3, 3, 1), torch.zeros(3, 1)),
        """\
EntryNorm("n n, n") takes its 2 tensors as one tuple, but 2 things came one by one.
Put parentheses around them: module((x, y)).""",
    ),
    Case(
        "several tensors one by one for an activation",
        TensorError,
        lambda: Pointwise(torch.nn.ReLU())(torch.zeros(3, 3, 1), torch.zeros(3, 1)),
        """\
Pointwise(ReLU()) takes one tensor, or several as one tuple, but 2 things came one by one.
Put parentheses around them: module((x, y)).""",
    ),
    Case(
        "several tensors for a spec of one",
        TensorError,
        lambda: _layer("n n -> n")(torch.zeros(3, 3, 1), torch.zeros(3, 1)),
        """\
EquivariantLinear("n n -> n", 1, 2) takes one tensor, but 2 things came one by one.
For several tensors write commas in the spec, "n n, n -> n n", and pass them as one tuple.""",
    ),
    Case(
        "sizes without their name",
        TensorError,
        lambda: _layer("n -> n m")(torch.zeros(3, 1), {"m": 4}),
        """\
EquivariantLinear("n -> n m", 1, 2) takes one tensor, but 2 things came one by one.
Options have names: layer(x, sizes=..., support=...).""",
    ),
    Case(
        "a layer called as a convolution",
        TensorError,
        lambda: _layer()(torch.zeros(3, 1), PAIR, torch.zeros(2, 1)),
        """\
EquivariantLinear("n n, n -> n n, n", 1, 2) takes its 2 tensors as one tuple, but 3 things came one by one.
Of edge_index and edge_attr bellnet.data.sparse.from_edge_index(edge_index, edge_attr) makes one Sparse, and of a \
batch of PyTorch Geometric bellnet.data.sparse.from_pyg(batch).""",
    ),
    Case(
        "nothing in the place of one of several tensors that are normalised",
        TensorError,
        lambda: EntryNorm("n n, n", 1)((torch.zeros(3, 3, 1), None)),
        """\
EntryNorm("n n, n", 1) at x[1] takes a tensor, a bellnet.Padded or a bellnet.Sparse, not builtins.NoneType.""",
    ),
    Case(
        "tensors of other graphs for a pool",
        ShapeError,
        lambda: InvariantPool("n n, n")((torch.zeros(5, 3, 3, 1), torch.zeros(4, 3, 1))),
        """\
InvariantPool("n n, n"): the batch axes of x[0] are (5,), but those of x[1] are (4,).
All tensors must be about the same graphs.""",
    ),
    Case(
        "one tensor of coefficients for several pairs",
        TensorError,
        lambda: change_basis("n n, n -> n", torch.zeros(7), to="orbit"),
        """\
change_basis("n n, n -> n"): coefficients must be a tuple with one tensor for each of 2 pairs of a source and a \
target, not torch.Tensor.""",
    ),
    Case(
        "coefficients for other pairs",
        TensorError,
        lambda: change_basis("n n, n -> n", [torch.zeros(5)] * 3, to="orbit"),
        """\
change_basis("n n, n -> n"): coefficients must be a tuple with one tensor for each of 2 pairs of a source and a \
target, 3 came.""",
    ),
    Case(
        "coefficients of a pair in the place of another",
        ShapeError,
        lambda: change_basis("n n, n -> n", [torch.zeros(5), torch.zeros(5)], to="orbit"),
        """\
change_basis("n n, n -> n"): coefficients[1] must have 2 entries on their first axis, one for each map, but their \
shape is (5,).""",
    ),
    Case(
        "one of several tensors of another type",
        TensorError,
        lambda: _layer()((torch.zeros(3, 3, 1), torch.zeros(3, 1, dtype=torch.float64))),
        """\
EquivariantLinear("n n, n -> n n, n", 1, 2) has parameters of type torch.float32, but x[1] is torch.float64.
Convert it: x[1].to(torch.float32), or the layer: layer.to(torch.float64).""",
    ),
    Case(
        "channels of some of several tensors",
        OptionError,
        lambda: EquivariantLinear("n n, n -> n", (1, 2, 3), 4),
        """\
EquivariantLinear("n n, n -> n", (1, 2, 3), 4): in_channels must be 2 numbers, one for each tensor, or one for all, \
not (1, 2, 3).""",
    ),
    Case(
        "channels of several tensors for one",
        OptionError,
        lambda: EquivariantLinear("n n, n -> n", 1, (4, 4)),
        """\
EquivariantLinear("n n, n -> n", 1, (4, 4)): out_channels must be one number, not (4, 4).""",
    ),
    Case(
        "the cost of other channels",
        SizesError,
        lambda: plan("n n, n -> n").cost(10, (1, 2, 3)),
        """\
plan("n n, n -> n").cost(in_channels=...) must have one number for each of 2 tensors, not (1, 2, 3).""",
    ),
    Case(
        "a tensor for several",
        TensorError,
        lambda: _layer()(torch.zeros(3, 3, 1)),
        """\
EquivariantLinear("n n, n -> n n, n", 1, 2) takes a tuple of 2 tensors, over "n n, n", not torch.Tensor.""",
    ),
    Case(
        "a tensor for several that may be slots",
        TensorError,
        lambda: _layer("u, i -> u")(torch.zeros(3, 3, 1)),
        """\
EquivariantLinear("u, i -> u", 1, 2) takes a tuple of 2 tensors, over "u, i", not torch.Tensor.
If they are the slots of one tensor, write "u i", without commas.""",
    ),
    Case(
        "too many tensors",
        TensorError,
        lambda: _layer()([torch.zeros(3, 3, 1), torch.zeros(3, 1), torch.zeros(1)]),
        """\
EquivariantLinear("n n, n -> n n, n", 1, 2) takes a tuple of 2 tensors, over "n n, n", but 3 came.""",
    ),
    Case(
        "a wrong axis in one of several",
        ShapeError,
        lambda: _layer()((torch.zeros(3, 3, 1), torch.zeros(3, 2))),
        """\
EquivariantLinear("n n, n -> n n, n", 1, 2) at x[1] cannot take this tensor.

    expected  (n, 1)
    got       (3, 2)
                  ^
The last axis holds the channels: 1 were declared, 2 came.
If the tensor has no channels, x.unsqueeze(-1) gives it one.""",
    ),
    Case(
        "other graphs",
        ShapeError,
        lambda: _layer()((torch.zeros(4, 3, 3, 1), torch.zeros(5, 3, 1))),
        """\
EquivariantLinear("n n, n -> n n, n", 1, 2): the batch axes of x[0] are (4,), but those of x[1] are (5,).
All tensors must be about the same graphs.""",
    ),
    Case(
        "other nodes",
        ShapeError,
        lambda: _layer()((torch.zeros(3, 3, 1), torch.zeros(4, 1))),
        """\
EquivariantLinear("n n, n -> n n, n", 1, 2): node set 'n' has length 3 in x[0], but 4 in x[1].
All tensors must be about the same nodes.""",
    ),
    Case(
        "some are padded",
        SizesError,
        lambda: _layer()((_padded([3, 2], 3, 3), torch.zeros(2, 3, 1))),
        """\
EquivariantLinear("n n, n -> n n, n", 1, 2): x[0] is a Padded with sizes of node set 'n', but x[1] is a tensor without.
Pass Padded(x[1], sizes) with the same sizes.""",
    ),
    Case(
        "other sizes",
        SizesError,
        lambda: _layer()((_padded([3, 2], 3, 3), _padded([3, 1], 3))),
        """\
EquivariantLinear("n n, n -> n n, n", 1, 2): of node set 'n' graph 1 has 2 nodes in x[0], but 1 in x[1].
All tensors must be about the same nodes.""",
    ),
    Case(
        "no sizes for a set of targets",
        SizesError,
        lambda: _layer("n n, n -> n m")((torch.zeros(3, 3, 1), torch.zeros(3, 1))),
        """\
EquivariantLinear("n n, n -> n m", 1, 2): only targets have node set 'm', so the input cannot tell its length.
Pass it in the call: layer(x, sizes={'m': 10}).""",
    ),
    Case(
        "a Sparse of other graphs",
        SupportError,
        lambda: _layer("n n, n -> n")((_batch(), Sparse.of_nodes(torch.zeros(3, 1), 3))),
        """\
EquivariantLinear("n n, n -> n", 1, 2): x[0] is a batch of 2, but x[1] is that of one graph.""",
    ),
    Case(
        "a Sparse on another device",
        SupportError,
        lambda: _layer("n n, n -> n n")((_edges(), torch.zeros(3, 1)), support=_edges().to("meta")),
        """\
EquivariantLinear("n n, n -> n n", 1, 2): x[0] is on cpu, but the support is on meta.
Move one of them: .to("cpu").""",
    ),
    Case(
        "a Sparse of other nodes",
        SupportError,
        lambda: _layer()((_batch(), _padded([3, 1], 3))),
        """\
EquivariantLinear("n n, n -> n n, n", 1, 2): of node set 'n' graph 1 has 2 nodes by x[0], but 1 by x[1].
All tensors must be about the same nodes; Sparse(..., sizes=) and from_edge_index(..., n_nodes=) say how many.""",
    ),
    Case(
        "supports for some targets",
        SupportError,
        lambda: _layer()((_edges(), torch.zeros(3, 1)), support=(_edges(),)),
        """\
EquivariantLinear("n n, n -> n n, n", 1, 2): support must have an entry for each of 2 targets, None for those that \
list what an input of the same shape does, but 1 came.""",
    ),
    Case(
        "no support",
        SupportError,
        lambda: _layer()((_edges(), torch.zeros(3, 1)), support=3),
        """\
EquivariantLinear("n n, n -> n n, n", 1, 2): support must be a bellnet.Sparse, whose tuples a result is to list, or a \
tuple with one for each target, not int.""",
    ),
    Case(
        "a support for no target",
        SupportError,
        lambda: _layer("n n, n -> n, ")((_edges(), torch.zeros(3, 1)), support=_edges()),
        """\
EquivariantLinear("n n, n -> n,", 1, 2): targets are over "n", "", but the support that was given is over "n n".""",
    ),
    Case(
        "no support for one of the targets",
        SupportError,
        lambda: _layer()((_edges(), torch.zeros(3, 1)), support=(None, 3)),
        """\
EquivariantLinear("n n, n -> n n, n", 1, 2): support[1] must be a bellnet.Sparse, whose tuples the result is to list, \
or None, not int.""",
    ),
    Case(
        "a support over other slots",
        SupportError,
        lambda: _layer()((_edges(), torch.zeros(3, 1)), support=(None, _edges())),
        """\
EquivariantLinear("n n, n -> n n, n", 1, 2): support[1] is over "n n", but that target is over "n".""",
    ),
    Case(
        "a support for a vector",
        SupportError,
        lambda: _layer("n n, n -> n, ")((_edges(), torch.zeros(3, 1)), support=(None, _edges())),
        """\
EquivariantLinear("n n, n -> n,", 1, 2): support[1] is over "n n", but that target is without slots.""",
    ),
    Case(
        "a batch beside one graph",
        ShapeError,
        lambda: _layer()((_edges(), torch.zeros(2, 3, 1))),
        """\
EquivariantLinear("n n, n -> n n, n", 1, 2): x[0] is one graph, so x[1] must have no batch axis; its shape is (2, 3, \
1).""",
    ),
    Case(
        "other graphs beside a batch",
        ShapeError,
        lambda: _layer("n n, -> n n, n")((_batch(), torch.zeros(3, 1))),
        """\
EquivariantLinear("n n, -> n n, n", 1, 2): x[0] is a batch of 2, so x[1] must have one batch axis of length 2; its \
shape is (3, 1).""",
    ),
    Case(
        "nodes in a row that are too few",
        ShapeError,
        lambda: _layer()((_batch(), torch.zeros(4, 1))),
        """\
EquivariantLinear("n n, n -> n n, n", 1, 2): x[0] is a batch of 2, so x[1] must have a row for every node of node set \
'n' in all of them, or one batch axis.
Of these there are 5, and its shape is (4, 1).""",
    ),
    Case(
        "nodes in a row of nobody knows how many",
        ShapeError,
        lambda: _layer("n n, m -> n n")((_batch(), torch.zeros(4, 1))),
        """\
EquivariantLinear("n n, m -> n n", 1, 2): x[0] is a batch of 2, so x[1] must have a row for every node of node set \
'm' in all of them, or one batch axis.
Of these nobody says how many there are, and its shape is (4, 1).""",
    ),
    Case(
        "sizes of another form beside a Sparse",
        SizesError,
        lambda: _layer("n n, n -> m")((_edges(), torch.zeros(3, 1)), sizes={"m": torch.tensor([2, 3])}),
        """\
EquivariantLinear("n n, n -> m", 1, 2): x[0] is one graph, but sizes['m'] has the shape (2,).
Give one number, or for a batch one for each graph.""",
    ),
    Case(
        "one tensor to pool for several",
        TensorError,
        lambda: InvariantPool("u i, u")(torch.zeros(3, 2, 1)),
        """\
InvariantPool("u i, u") takes a tuple of 2 tensors, over "u i, u", but this is a Tensor.""",
    ),
    Case(
        "tensors to normalise that are too few",
        TensorError,
        lambda: EntryNorm("u i, u", 1)((torch.zeros(3, 2, 1),)),
        """\
EntryNorm("u i, u", 1) takes a tuple of 2 tensors, over "u i, u", but 1 came.""",
    ),
    Case(
        "which tuples",
        SupportError,
        lambda: _layer("n n, n -> n n n, n")((_edges(), torch.zeros(3, 1))),
        """\
EquivariantLinear("n n, n -> n n n, n", 1, 2): which tuples over "n n n" is a result to list? No input is over these \
slots.
Pass them in the call: layer(x, support=...), with a bellnet.Sparse whose tuples are taken and whose values are not \
looked at; or a tuple with one for each target.""",
    ),
    Case(
        "no sizes beside a Sparse",
        SizesError,
        lambda: _layer("n n, n -> m, n")((_edges(), torch.zeros(3, 1))),
        """\
EquivariantLinear("n n, n -> m, n", 1, 2): only targets have node set 'm', so the input cannot tell its length.
Pass it in the call: layer(x, sizes={'m': 10}).""",
    ),
]
