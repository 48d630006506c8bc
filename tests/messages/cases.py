"""One case for every way in which the core refuses something: the call, the class of the error, and its words."""

import warnings

import networkx
import torch

from bellnet import (
    EquivariantLinear,
    EquivariantNet,
    InvariantNet,
    InvariantPool,
    Padded,
    Spec,
    change_basis,
    from_message_passing,
    plan,
)
from bellnet._utils.optional import require
from bellnet.errors import (
    ConversionError,
    DataError,
    DeclarationError,
    MissingExtraError,
    OptionError,
    ShapeError,
    SizesError,
    SpecError,
    TensorError,
)
from bellnet.nn.message_passing import CompactSet, MessageFunctions, MessagePassingNet
from tests.messages.case import Case
from tests.messages.over_nodes_cases import OVER_NODES
from tests.messages.product_cases import PRODUCTS
from tests.messages.several_cases import SEVERAL
from tests.messages.sparse_cases import SPARSE
from tests.messages.unordered_cases import UNORDERED


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


def _padded(sizes, shape=(2, 3, 3, 1)):
    return Padded(torch.zeros(shape), sizes)


SPEC = [
    Case(
        "no arrow",
        SpecError,
        lambda: plan("n n"),
        """\
This spec cannot be read: the arrow '->' between source and target is missing.

    n n
       ^^
Write node set names separated by spaces around one arrow, for instance "n n -> n n" or "u i -> u".""",
    ),
    Case(
        "two arrows",
        SpecError,
        lambda: plan("n -> n -> n"),
        """\
This spec cannot be read: there is a second arrow.

    n -> n -> n
           ^^
Write node set names separated by spaces around one arrow, for instance "n n -> n n" or "u i -> u".""",
    ),
    Case(
        "commas",
        SpecError,
        lambda: Padded.pack([torch.zeros(2, 2, 1)], "n,n"),
        """\
This spec cannot be read: slots are separated by spaces, not commas.

    n,n
     ^
Write "n n".""",
    ),
    Case(
        "a mistake in one of several tensors",
        SpecError,
        lambda: plan("u i, u! -> u i"),
        """\
This spec cannot be read: '!' is not part of a node set name.

    u i, u! -> u i
          ^
Write node set names separated by spaces around one arrow, for instance "n n -> n n" or "u i -> u".""",
    ),
    Case(
        "a collection of one",
        SpecError,
        lambda: Spec((("n", "n"),), ("n",)),
        """\
Spec(source, target): source must be the names of one tensor, or at least two tuples of names, not (('n', 'n'),).
Give one name for each slot, for instance Spec(source=("n", "n"), target=("n",)).
Several tensors are a tuple of such tuples: Spec(source=(("n", "n"), ("n",)), target=("n",)).""",
    ),
    Case(
        "the source of several",
        SpecError,
        lambda: Spec((("n", "n"), ("n",)), ("n",)).source,
        'The spec "n n, n -> n" has 2 sources: see spec.sources for the shape of each.',
    ),
    Case(
        "shapes of several tensors",
        SpecError,
        lambda: Padded.pack([torch.zeros(2, 2, 1)], "u i, u"),
        """\
This spec cannot be read: commas part tensors, but this is the shape of one.

    u i, u
       ^
Name the slots of one tensor, for instance "n n".""",
    ),
    Case(
        "a length for a name",
        SpecError,
        lambda: plan("30 n -> n"),
        """\
This spec cannot be read: a node set name does not begin with a digit.

    30 n -> n
    ^
The string names node sets, not lengths: the same layer fits any number of nodes.""",
    ),
    Case(
        "a batch axis",
        SpecError,
        lambda: plan("... n n -> n"),
        """\
This spec cannot be read: '.' is not part of a node set name.

    ... n n -> n
    ^
Batch axes are not written: any number of them may stand in front, and channels come last.""",
    ),
    Case(
        "a character that is no name",
        SpecError,
        lambda: plan("n (n) -> n"),
        """\
This spec cannot be read: '(' is not part of a node set name.

    n (n) -> n
      ^
Write node set names separated by spaces around one arrow, for instance "n n -> n n" or "u i -> u".""",
    ),
    Case(
        "not a string",
        SpecError,
        lambda: plan(("n", "n")),
        """\
A spec is a string, but this is a tuple: ('n', 'n').
Write node set names separated by spaces around one arrow, for instance "n n -> n n" or "u i -> u".""",
    ),
    Case(
        "an arrow in a shape",
        SpecError,
        lambda: InvariantPool("n n -> n"),
        """\
This spec cannot be read: an arrow has no place here.

    n n -> n
        ^^
This takes the shape of one tensor, for instance "n n"; a map "n n -> n" is for EquivariantLinear.""",
    ),
    Case(
        "a name made of two",
        SpecError,
        lambda: Spec(("n n",), ("n",)),
        """\
Spec(source, target): 'n n' is not the name of a node set.
Give one name for each slot, for instance Spec(source=("n", "n"), target=("n",)).""",
    ),
    Case(
        "names in a list",
        SpecError,
        lambda: Spec(["n", "n"], ("n",)),
        """\
Spec(source, target): source must be a tuple of names, not ['n', 'n'].
Give one name for each slot, for instance Spec(source=("n", "n"), target=("n",)).""",
    ),
    Case(
        "too many maps",
        SpecError,
        lambda: plan("n n n n n n -> n n n n n n"),
        """\
The spec "n n n n n n -> n n n n n n" has 4,213,597 maps; plans are built for up to 50,000 (max_maps).
Lower the order, give some of the slots node sets of their own, or declare the input symmetric or hollow if it is.
If it is to be built all the same, raise max_maps: time and memory grow with the maps.""",
    ),
    Case(
        "too many maps to count",
        SpecError,
        lambda: EquivariantLinear("n " * 2500 + "-> n", 1, 1, symmetric=True),
        """\
The spec "n n n n n n n n n n n n n n n n n n ... (2,500 slots) -> (1 slot)" has at least 10^17 maps; \
plans are built for up to 50,000 (max_maps).
Lower the order, give some of the slots node sets of their own, or declare the input symmetric or hollow if it is.
If it is to be built all the same, raise max_maps: time and memory grow with the maps.""",
    ),
    Case(
        "too many slots",
        SpecError,
        lambda: plan(Spec(tuple(f"n{number}" for number in range(600)), ())),
        """\
The spec "n0 n1 n2 n3 n4 n5 n6 n7 n8 n9 n10 ... (600 slots) -> (0 slots)" has 600 slots; \
plans are built for up to 500.
A slot is one axis of a tensor; entries along an axis need no slots of their own.""",
    ),
    Case(
        "half a map",
        OptionError,
        lambda: plan("n -> n", max_maps=1.5),
        """\
The spec "n -> n": max_maps must be a whole number from 1 up, not 1.5.""",
    ),
]

PLAN = [
    Case(
        "cost without a size",
        SizesError,
        lambda: plan("u i -> u").cost({"u": 3}),
        """\
plan("u i -> u").cost(sizes=...) needs the size of every node set; there is none for 'i'.
Pass one number for all, or a dict such as {'u': 10, 'i': 10}.""",
    ),
    Case(
        "cost of an unknown node set",
        SizesError,
        lambda: plan("n -> n").cost({"n": 2, "m": 3}),
        """\
plan("n -> n").cost(sizes=...) has an entry for 'm', but the node sets are 'n'.""",
    ),
    Case(
        "cost of half a node",
        SizesError,
        lambda: plan("n -> n").cost(2.5),
        """\
plan("n -> n").cost(sizes=...): the size of 'n' must be a whole number, not 2.5.""",
    ),
    Case(
        "cost of a negative size",
        SizesError,
        lambda: plan("n -> n").cost(-2),
        """\
plan("n -> n").cost(sizes=...): the size of 'n' is negative: -2.""",
    ),
]

OPTIONS = [
    Case(
        "an unknown basis",
        OptionError,
        lambda: _edges(basis="orbits"),
        """\
EquivariantLinear("n n -> n n", 16, 32): basis must be one of 'diagram', 'orbit', not 'orbits'.""",
    ),
    Case(
        "an unknown normalisation",
        OptionError,
        lambda: _edges(normalize=None),
        """\
EquivariantLinear("n n -> n n", 16, 32): normalize must be one of 'mean', 'stored', 'sum', not None.""",
    ),
    Case(
        "an unknown reduction",
        OptionError,
        lambda: InvariantPool("n n", "min"),
        """\
InvariantPool("n n"): reduce must be one of 'max', 'sum', 'mean', not 'min'.""",
    ),
    Case(
        "an unknown reduction among several",
        OptionError,
        lambda: InvariantPool("n n", ("max", "min")),
        """\
InvariantPool("n n"): reduce[1] must be one of 'max', 'sum', 'mean', not 'min'.""",
    ),
    Case(
        "a reduction twice",
        OptionError,
        lambda: InvariantPool("n n", ("max", "max")),
        """\
InvariantPool("n n"): reduce must name each of max, sum and mean once at most, not ('max', 'max').""",
    ),
    Case(
        "an unknown basis to change to",
        OptionError,
        lambda: change_basis("n ->", torch.ones(1), to="orbits"),
        """\
change_basis("n ->"): to must be one of 'orbit', 'diagram', not 'orbits'.""",
    ),
    Case(
        "the orbit basis with means",
        OptionError,
        lambda: _edges(basis="orbit"),
        """\
EquivariantLinear("n n -> n n", 16, 32): basis="orbit" goes with normalize="sum" only, not 'mean'.
Orbits and diagrams differ by sums that a division by the number of terms would not respect. \
Pass normalize="sum", or basis="diagram".""",
    ),
    Case(
        "more channels than can be counted",
        OptionError,
        lambda: EquivariantLinear("n -> n", 2**31 - 1, 2**31 - 1, device="meta"),
        """\
EquivariantLinear("n -> n", 2147483647, 2147483647): its weight of 2 x 2147483647 x 2147483647 numbers would take \
36,893,488,113,059,364,872 bytes to make.
Torch counts up to 9,223,372,036,854,775,807. Take fewer channels, or a spec with fewer maps. On the meta device \
(device="meta") a layer takes no memory.""",
    ),
    Case(
        "more channels than a layer can have",
        OptionError,
        lambda: EquivariantLinear("n -> n", 10**18, 4, device="meta"),
        """\
EquivariantLinear("n -> n", 1000000000000000000, 4): in_channels must be below 2**31; it is larger.""",
    ),
    Case(
        "more channels than Python writes digits",
        OptionError,
        lambda: EquivariantLinear("n n -> n n", 4, 10**5000),
        """\
EquivariantLinear("n n -> n n", 4, <int too long to be written>): out_channels must be below 2**31; it is larger.""",
    ),
    Case(
        "fewer channels than Python writes digits",
        OptionError,
        lambda: EquivariantLinear("n n -> n n", -(10**5000), 4),
        """\
EquivariantLinear("n n -> n n", <int too long to be written>, 4): in_channels must be a whole number from 1 up, \
not <int too long to be written>.""",
    ),
    Case(
        "a network of more channels than Python writes digits",
        OptionError,
        lambda: InvariantNet("n n", [4, 10**5000], 10**5000),
        """\
InvariantNet("n n", <list too long to be written>, <int too long to be written>): channels[1] must be below 2**31; \
it is larger.""",
    ),
    Case(
        "a basis that is a number of 5000 digits",
        OptionError,
        lambda: EquivariantLinear("n -> n", 1, 1, basis=10**5000),
        """\
EquivariantLinear("n -> n", 1, 1): basis must be one of 'diagram', 'orbit', not <int too long to be written>.""",
    ),
    Case(
        "no channels",
        OptionError,
        lambda: EquivariantLinear("n -> n", 0, 3),
        """\
EquivariantLinear("n -> n", 0, 3): in_channels must be a whole number from 1 up, not 0.""",
    ),
    Case(
        "half a channel",
        OptionError,
        lambda: EquivariantLinear("n -> n", 3, 0.5),
        """\
EquivariantLinear("n -> n", 3, 0.5): out_channels must be a whole number from 1 up, not 0.5.""",
    ),
    Case(
        "parameters that are whole numbers",
        OptionError,
        lambda: _edges(dtype=torch.int64),
        """\
EquivariantLinear("n n -> n n", 16, 32): dtype must be a floating point type such as torch.float32, not torch.int64.""",
    ),
]

INPUTS = [
    Case(
        "not a tensor",
        TensorError,
        lambda: _edges()([[1.0]]),
        """\
EquivariantLinear("n n -> n n", 16, 32) takes a tensor, a bellnet.Padded or a bellnet.Sparse, not builtins.list.""",
    ),
    Case(
        "a list of tensors",
        TensorError,
        lambda: _edges()([torch.zeros(3, 3, 16), torch.zeros(2, 2, 16)]),
        """\
EquivariantLinear("n n -> n n", 16, 32) takes a tensor, a bellnet.Padded or a bellnet.Sparse, not builtins.list.
Graphs of one size become one tensor by torch.stack, of several sizes a bellnet.Padded by Padded.pack.""",
    ),
    Case(
        "an array of numpy",
        TensorError,
        lambda: _edges()(torch.zeros(3, 3, 16).numpy()),
        """\
EquivariantLinear("n n -> n n", 16, 32) takes a tensor, a bellnet.Padded or a bellnet.Sparse, not numpy.ndarray.
Pass torch.from_numpy(x), in floating point numbers such as those of the layer.""",
    ),
    Case(
        "a graph of networkx",
        TensorError,
        lambda: _edges()(networkx.path_graph(3)),
        """\
EquivariantLinear("n n -> n n", 16, 32) takes a tensor, a bellnet.Padded or a bellnet.Sparse, not \
networkx.classes.graph.Graph.
bellnet.data.to_sparse([graph]) makes a Sparse of it, and bellnet.data.to_padded([graph]) a Padded.""",
    ),
    Case(
        "a batch of PyTorch Geometric",
        TensorError,
        lambda: _edges()(_pyg_batch()),
        """\
EquivariantLinear("n n -> n n", 16, 32) takes a tensor, a bellnet.Padded or a bellnet.Sparse, not abc.DataBatch.
bellnet.data.sparse.from_pyg(data) makes a Sparse of it.""",
    ),
    Case(
        "too few axes",
        ShapeError,
        lambda: _edges()(torch.zeros(30, 30)),
        """\
EquivariantLinear("n n -> n n", 16, 32) cannot take this tensor.

    expected  (n, n, 16)
    got       (30, 30)

The tensor has 2 axes; 2 node axes and the channels need at least 3.
A tensor without channels gets them from x.unsqueeze(-1).""",
    ),
    Case(
        "far too few axes",
        ShapeError,
        lambda: _edges()(torch.zeros(30)),
        """\
EquivariantLinear("n n -> n n", 16, 32) cannot take this tensor.

    expected  (n, n, 16)
    got       (30)

The tensor has 1 axes; 2 node axes and the channels need at least 3.""",
    ),
    Case(
        "axes of one node set with two lengths",
        ShapeError,
        lambda: _edges()(torch.zeros(8, 30, 31, 16)),
        """\
EquivariantLinear("n n -> n n", 16, 32) cannot take this tensor.

    expected  (batch, n , n , 16)
    got       (8    , 30, 31, 16)
                      ^^  ^^
Axes 1 and 2 both run over node set 'n', so they must have one length; here they have 30 and 31.
If rows and columns are different node sets, write "u i -> u i" (4 maps instead of 15).""",
    ),
    Case(
        "channels before the nodes",
        ShapeError,
        lambda: _edges()(torch.zeros(8, 16, 30, 30)),
        """\
EquivariantLinear("n n -> n n", 16, 32) cannot take this tensor.

    expected  (batch, n , n , 16)
    got       (8    , 16, 30, 30)
                      ^^  ^^
Axes 1 and 2 both run over node set 'n', so they must have one length; here they have 16 and 30.
If channels stand before the nodes, as in convolutions, move them: x.movedim(-3, -1).""",
    ),
    Case(
        "channels before nodes of several sets",
        ShapeError,
        lambda: EquivariantLinear("u i -> u", 3, 1)(torch.zeros(3, 5, 4)),
        """\
EquivariantLinear("u i -> u", 3, 1) cannot take this tensor.

    expected  (u, i, 3)
    got       (3, 5, 4)
                     ^
The last axis holds the channels: 3 were declared, 4 came.
If channels stand before the nodes, as in convolutions, move them: x.movedim(-3, -1).""",
    ),
    Case(
        "a batch without channels",
        ShapeError,
        lambda: _edges(channels=(1, 32))(torch.zeros(8, 30, 30)),
        """\
EquivariantLinear("n n -> n n", 1, 32) cannot take this tensor.

    expected  (n, n , 1 )
    got       (8, 30, 30)
               ^  ^^
Axes 0 and 1 both run over node set 'n', so they must have one length; here they have 8 and 30.
If the tensor has no channels, x.unsqueeze(-1) gives it one.""",
    ),
    Case(
        "unequal axes that are not neighbours",
        ShapeError,
        lambda: InvariantPool("u i u")(torch.zeros(7, 6, 5, 1)),
        """\
InvariantPool("u i u") cannot take this tensor.

    expected  (u, i, u, channels)
    got       (7, 6, 5, 1       )
               ^     ^
Axes 0 and 2 both run over node set 'u', so they must have one length; here they have 7 and 5.""",
    ),
    Case(
        "the wrong number of channels",
        ShapeError,
        lambda: _edges()(torch.zeros(5, 8, 30, 30, 3)),
        """\
EquivariantLinear("n n -> n n", 16, 32) cannot take this tensor.

    expected  (batch, batch, n , n , 16)
    got       (5    , 8    , 30, 30, 3 )
                                     ^
The last axis holds the channels: 16 were declared, 3 came.""",
    ),
    Case(
        "another floating point type",
        TensorError,
        lambda: _edges()(torch.zeros(3, 3, 16, dtype=torch.float64)),
        """\
EquivariantLinear("n n -> n n", 16, 32) has parameters of type torch.float32, but the input is torch.float64.
Convert the input: x.to(torch.float32), or the layer: layer.to(torch.float64).""",
    ),
    Case(
        "whole numbers",
        TensorError,
        lambda: _edges()(torch.zeros(3, 3, 16, dtype=torch.int64)),
        """\
EquivariantLinear("n n -> n n", 16, 32) has parameters of type torch.float32, but the input is torch.int64.
Convert the input: x.to(torch.float32).""",
    ),
    Case(
        "pooling whole numbers",
        TensorError,
        lambda: InvariantPool("n n")(torch.zeros(3, 3, 1, dtype=torch.int64)),
        """\
InvariantPool("n n") takes floating point numbers, but the input is torch.int64.
Convert it: x.to(torch.float32).""",
    ),
    Case(
        "another device",
        TensorError,
        lambda: _edges()(torch.zeros(3, 3, 16, device="meta")),
        """\
EquivariantLinear("n n -> n n", 16, 32) has its parameters on cpu, but the input is on meta.
Move one of them: layer.to("meta") or x.to("cpu").""",
    ),
    Case(
        "not symmetric",
        DeclarationError,
        lambda: _edges(channels=(1, 1), symmetric=True)(torch.tensor([[[0.0], [1.0]], [[3.5], [0.0]]]), check=True),
        """\
EquivariantLinear("n n -> n n", 1, 1) was told that its inputs are symmetric, but exchanging slots 0 and 1 \
of node set 'n' changes this one by up to 2.5.
Leave out symmetric=True to use all maps, or symmetrise the input: (x + x.transpose(-2, -3)) / 2 for order 2.""",
    ),
    Case(
        "not hollow",
        DeclarationError,
        lambda: _edges(channels=(1, 1), hollow=True)(torch.full((2, 2, 1), -0.25), check=True),
        """\
EquivariantLinear("n n -> n n", 1, 1) was told that its inputs are hollow, but this one has values up to \
0.25 where slots 0 and 1 of node set 'n' coincide.
Leave out hollow=True to use the maps that read this diagonal.""",
    ),
    Case(
        "coefficients in a list",
        TensorError,
        lambda: change_basis("n ->", [1.0], to="orbit"),
        """\
change_basis("n ->"): coefficients must be a tensor, not list.""",
    ),
    Case(
        "coefficients for another plan",
        ShapeError,
        lambda: change_basis("n n -> n n", torch.zeros(11, 3), to="orbit"),
        """\
change_basis("n n -> n n"): coefficients must have 15 entries on their first axis, one for each map, \
but their shape is (11, 3).""",
    ),
]

SIZES = [
    Case(
        "no length for new nodes",
        SizesError,
        lambda: _new_nodes()(torch.zeros(3, 1)),
        """\
EquivariantLinear("u -> u i", 1, 1): only the target has node set 'i', so the input cannot tell its length.
Pass it in the call: layer(x, sizes={'i': 10}).""",
    ),
    Case(
        "one number for a dict of lengths",
        SizesError,
        lambda: _new_nodes()(torch.zeros(3, 1), sizes=5),
        """\
EquivariantLinear("u -> u i", 1, 1): sizes must be a dict from node sets to numbers of nodes, not 5.
Pass for instance sizes={'i': 10}.""",
    ),
    Case(
        "a length that is not whole",
        SizesError,
        lambda: _new_nodes()(torch.zeros(3, 1), sizes={"i": 2.5}),
        """\
EquivariantLinear("u -> u i", 1, 1): the size of node set 'i' must be a whole number, or a tensor with one \
for each graph, not 2.5.""",
    ),
    Case(
        "lengths that are not whole",
        SizesError,
        lambda: _new_nodes()(torch.zeros(2, 3, 1), sizes={"i": torch.tensor([2.0, 1.0])}),
        """\
EquivariantLinear("u -> u i", 1, 1): the size of node set 'i' must be a whole number, or a tensor with one \
for each graph, not a tensor of torch.float32.""",
    ),
    Case(
        "a length for unknown nodes",
        SizesError,
        lambda: _new_nodes()(torch.zeros(3, 1), sizes={"j": 3}),
        """\
EquivariantLinear("u -> u i", 1, 1): sizes has an entry for 'j', but the node sets are 'u', 'i'.""",
    ),
    Case(
        "a length that the input contradicts",
        SizesError,
        lambda: _new_nodes()(torch.zeros(3, 1), sizes={"u": 4, "i": 2}),
        """\
EquivariantLinear("u -> u i", 1, 1): sizes['u'] is 4, but the input already has 3 nodes of that set.
The call gives lengths only for node sets that the input does not have; \
for graphs of different sizes pass bellnet.Padded(values, sizes).""",
    ),
    Case(
        "sizes for padding in the wrong place",
        SizesError,
        lambda: _new_nodes()(torch.zeros(2, 3, 1), sizes={"u": torch.tensor([3, 1]), "i": 2}),
        """\
EquivariantLinear("u -> u i", 1, 1): sizes['u'] is a tensor, but the input already has 3 nodes of that set.
The call gives lengths only for node sets that the input does not have; \
for graphs of different sizes pass bellnet.Padded(values, sizes).""",
    ),
    Case(
        "a size of a target that no memory has",
        SizesError,
        lambda: _new_nodes()(torch.zeros(3, 1), sizes={"i": 2**31}),
        """\
EquivariantLinear("u -> u i", 1, 1): the size of node set 'i' is 2147483648: a tensor over so many nodes does not fit \
into memory.
Sizes are numbers of nodes, below 2,147,483,648.""",
    ),
    Case(
        "a negative length",
        SizesError,
        lambda: _new_nodes()(torch.zeros(3, 1), sizes={"i": -1}),
        """\
EquivariantLinear("u -> u i", 1, 1): the size of node set 'i' is negative: -1.""",
    ),
    Case(
        "a negative length among others",
        SizesError,
        lambda: _new_nodes()(torch.zeros(2, 3, 1), sizes={"i": torch.tensor([4, -2])}),
        """\
EquivariantLinear("u -> u i", 1, 1): the size of node set 'i' is negative: -2.""",
    ),
    Case(
        "too few lengths",
        SizesError,
        lambda: _new_nodes()(torch.zeros(2, 3, 1), sizes={"i": torch.tensor([4, 2, 1])}),
        """\
EquivariantLinear("u -> u i", 1, 1): the sizes of node set 'i' have shape (3,), but the batch axes are (2,).
There must be one size for each graph.""",
    ),
    Case(
        "sizes larger than the padding",
        SizesError,
        lambda: _edges(channels=(1, 1))(Padded(torch.zeros(2, 6, 3, 3, 1), torch.tensor([3, 5]))),
        """\
EquivariantLinear("n n -> n n", 1, 1): the sizes of node set 'n' go up to 5, but the values are padded to 3.
Sizes count the nodes before padding.""",
    ),
    Case(
        "sizes for another node set",
        SizesError,
        lambda: EquivariantLinear("u i -> u", 1, 1)(_padded({"u": torch.tensor([3, 1])})),
        """\
EquivariantLinear("u i -> u", 1, 1): the Padded input has no sizes for node set 'i', but for 'u'.
Pass Padded(values, {'u': ..., 'i': ...}).""",
    ),
    Case(
        "sizes of more axes than the batch has",
        SizesError,
        lambda: InvariantPool("n n")(_padded(torch.zeros(2, 3, dtype=torch.int64))),
        """\
InvariantPool("n n"): the sizes of node set 'n' have shape (2, 3), but the batch axes are (2,).
There must be one size for each graph.""",
    ),
]

PADDED = [
    Case(
        "an activation of a Padded",
        TensorError,
        lambda: torch.nn.ReLU()(_padded(torch.tensor([3, 1]))),
        """\
relu takes tensors, but got a Padded.
A module that acts on every entry alone takes it in a Pointwise, bellnet.Pointwise(torch.nn.ReLU()),
and a function in its map, x.map(torch.relu). Its tensor is x.values.""",
    ),
    Case(
        "a sum of a tensor and a Padded",
        TensorError,
        lambda: torch.zeros(2, 3, 3, 1) + _padded(torch.tensor([3, 1])),
        """\
add takes tensors, but got a Padded.
A module that acts on every entry alone takes it in a Pointwise, bellnet.Pointwise(torch.nn.ReLU()),
and a function in its map, x.map(torch.relu). Its tensor is x.values.""",
    ),
    Case(
        "values that are no tensor",
        TensorError,
        lambda: Padded([[1.0]], torch.tensor([1])),
        """\
Padded(values, sizes): values must be a tensor, not builtins.list.""",
    ),
    Case(
        "sizes that are no numbers",
        SizesError,
        lambda: _padded("many"),
        """\
Padded(values, sizes): sizes must be a tensor of integers, not builtins.str.""",
    ),
    Case(
        "sizes that are not whole",
        SizesError,
        lambda: _padded(torch.tensor([3.0, 1.0])),
        """\
Padded(values, sizes): sizes must hold integers, but its dtype is torch.float32.
Sizes are numbers of nodes; for a boolean mask of nodes pass mask.sum(-1).""",
    ),
    Case(
        "a mask for sizes",
        SizesError,
        lambda: _padded({"n": torch.ones(2, 3, dtype=torch.bool)}),
        """\
Padded(values, sizes): sizes['n'] must hold integers, but its dtype is torch.bool.
Sizes are numbers of nodes; for a boolean mask of nodes pass mask.sum(-1).""",
    ),
    Case(
        "sizes for another batch",
        SizesError,
        lambda: _padded(torch.tensor([3, 1, 2])),
        """\
Padded(values, sizes): sizes must have the shape of the batch axes in front of values.

    values  (2, 3, 3, 1)
    sizes   (3,)

There must be one size for each graph.""",
    ),
    Case(
        "sizes for another batch, by name",
        SizesError,
        lambda: _padded({"n": torch.tensor([3, 1, 2])}),
        """\
Padded(values, sizes): sizes['n'] must have the shape of the batch axes in front of values.

    values      (2, 3, 3, 1)
    sizes['n']  (3,)

There must be one size for each graph.""",
    ),
    Case(
        "negative sizes",
        SizesError,
        lambda: _padded(torch.tensor([3, -1])),
        """\
Padded(values, sizes): sizes holds a negative number, -1.""",
    ),
    Case(
        "nothing to pack",
        SizesError,
        lambda: Padded.pack([]),
        """\
Padded.pack(graphs): there is no graph.""",
    ),
    Case(
        "packing what is no tensor",
        TensorError,
        lambda: Padded.pack([torch.zeros(1, 1, 1), 3]),
        """\
Padded.pack(graphs, "n n"): graphs[1] must be a tensor, not builtins.int.""",
    ),
    Case(
        "packing what has no channels",
        ShapeError,
        lambda: Padded.pack([torch.zeros(2, 2)]),
        """\
Padded.pack(graphs, "n n"): graphs[0] must have 2 node axes and the channels, but its shape is (2, 2).""",
    ),
    Case(
        "packing different channels",
        ShapeError,
        lambda: Padded.pack([torch.zeros(2, 2, 3), torch.zeros(2, 2, 4)]),
        """\
Padded.pack(graphs, "n n"): graphs[1] has 4 channels, but graphs[0] has 3.""",
    ),
    Case(
        "packing a graph that is not square",
        ShapeError,
        lambda: Padded.pack([torch.zeros(2, 3, 1)]),
        """\
Padded.pack(graphs, "n n"): graphs[0] has axes of lengths 2 and 3 for one node set 'n'; its shape is (2, 3, 1).""",
    ),
    Case(
        "unpacking more axes than there are",
        ShapeError,
        lambda: _padded(torch.tensor(1), shape=(3, 1)).unpack("n n"),
        """\
Padded.unpack("n n"): values have 2 axes, (3, 1); 2 node axes and the channels need at least 3.""",
    ),
    Case(
        "unpacking sizes of too many axes",
        SizesError,
        lambda: _padded(torch.zeros(2, 3, dtype=torch.int64)).unpack(),
        """\
Padded.unpack("n n"): the sizes of node set 'n' have shape (2, 3), but the batch axes are (2,).""",
    ),
    Case(
        "unpacking sizes beyond the padding",
        SizesError,
        lambda: Padded(torch.zeros(2, 6, 3, 3, 1), torch.tensor([3, 5])).unpack(),
        """\
Padded.unpack("n n"): the sizes of node set 'n' go up to 5, but the values are padded to 3.""",
    ),
    Case(
        "unpacking without sizes",
        SizesError,
        lambda: _padded({"u": torch.tensor([3, 1])}).unpack("u i"),
        """\
Padded.unpack("u i"): there are no sizes for node set 'i'.""",
    ),
]

EXTRAS = [
    Case(
        "an optional package that is missing",
        MissingExtraError,
        lambda: require("not_installed_anywhere", extra="draw", call="bellnet.draw"),
        """\
bellnet.draw needs not_installed_anywhere, which is not installed.
Install it: pip install 'bellnet[draw]'""",
    ),
]

REQUESTS = [
    Case(
        "a cost of less than no channels",
        SizesError,
        lambda: plan("n -> n").cost(3, in_channels=-2),
        """\
plan("n -> n").cost(in_channels=...) must be a whole number from 0 up, not -2.""",
    ),
    Case(
        "a trace",
        TensorError,
        lambda: _traced(EquivariantLinear("n n ->", 1, 1), torch.zeros(3, 3, 1)),
        """\
EquivariantLinear("n n ->", 1, 1) cannot be traced by torch.jit.trace, which would fix the number of nodes.
Use torch.export.export(module, (x,)), or torch.compile(module).""",
    ),
    Case(
        "a script",
        TensorError,
        lambda: _scripted(EquivariantLinear("n n ->", 1, 1)),
        """\
EquivariantLinear cannot be compiled by torch.jit.script, which reads source code and knows tensors alone.
Use torch.export.export(module, (x,), dynamic_shapes=...), or torch.compile(module).""",
    ),
    Case(
        "a sparse tensor",
        TensorError,
        lambda: EquivariantLinear("n n ->", 1, 1)(torch.eye(3).unsqueeze(-1).to_sparse()),
        """\
EquivariantLinear("n n ->", 1, 1) takes a dense tensor, but this one is torch.sparse_coo.
Pass x.to_dense(), or bellnet.data.sparse.from_torch(x).""",
    ),
]

NETWORKS = [
    Case(
        "a network without layers",
        OptionError,
        lambda: EquivariantNet("n -> n", [1]),
        """\
EquivariantNet("n -> n", [1]): channels must have at least 2 entries, not 1.
Give the channels of the input and after each layer: [1, 8, 1].""",
    ),
    Case(
        "a dropout that is no probability",
        OptionError,
        lambda: EquivariantNet("n -> n", [1, 1], dropout=1.5),
        """\
EquivariantNet("n -> n", [1, 1]): dropout must be a probability below 1, not 1.5.""",
    ),
    Case(
        "an unknown activation",
        OptionError,
        lambda: EquivariantNet("n -> n", [1, 1, 1], activation="rely"),
        """\
EquivariantNet("n -> n", [1, 1, 1]): activation must be a name or something that makes a module, not 'rely'.
Names are 'relu', 'leaky_relu', 'elu', 'gelu', 'silu', 'softplus', 'tanh', 'sigmoid', 'identity'. A class or a function
makes a module for each layer: torch.nn.PReLU, or lambda: torch.nn.ELU(0.5); one module for all would not.""",
    ),
]


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


MESSAGE_PASSING = [
    Case(
        "a convolution that cannot be converted",
        ConversionError,
        lambda: from_message_passing(_convolution(aggr="max"), product="exact"),
        """\
from_message_passing cannot convert SAGEConv(2, 2, aggr=max): it aggregates by 'max', and a message passing layer sums.
Message passing here adds messages up: aggr="add" or aggr="mean".""",
    ),
    Case(
        "no compact set",
        OptionError,
        lambda: from_message_passing(_convolution()),
        """\
from_message_passing: product="relu" needs on=..., the compact set on which products are to be right.
Pass on=CompactSet(size=..., neighbours=...), or product="exact" to multiply exactly.""",
    ),
    Case(
        "a limit that is none",
        OptionError,
        lambda: CompactSet(size=3, neighbours=-1),
        """\
CompactSet: neighbours must be a number from 0 up, not -1.""",
    ),
    Case(
        "a module whose range is not known",
        ConversionError,
        lambda: _message_passing(
            _functions(message=torch.nn.Sequential(torch.nn.Linear(4, 3), torch.nn.LayerNorm(3)))
        ).approximate(CompactSet(3, 2)),
        """\
product="relu" needs the range of every message, and it is not known what LayerNorm does to a range.
Build M and U of Linear, ReLU, LeakyReLU, ELU, Softplus, Tanh, Sigmoid, GELU, SiLU
and Sequential, or pass product="exact".""",
    ),
    Case(
        "an input outside the compact set",
        DeclarationError,
        lambda: _message_passing().approximate(CompactSet(3, 2))(torch.full((4, 4, 3), 2.0), check=True),
        """\
MessagePassingNet: this input is outside the compact set on which products were approximated: size 4 > 3, \
neighbours 4 > 2, adjacency 2 > 1, node 2 > 1.
Call approximate(on=...) with a larger set, for instance net.compact_set(x).""",
    ),
    Case(
        "an approximation after training",
        OptionError,
        lambda: _trained().approximate(CompactSet(3, 2)),
        """\
MessagePassingNet.approximate: the equivariant layers have been trained, and no longer pass messages alone, so the \
ranges of their outputs are not known.
Approximate before training.""",
    ),
    Case(
        "no messages",
        OptionError,
        lambda: _message_passing(torch.nn.ReLU()),
        """\
MessagePassingNet(steps): there is no step that passes messages, no MessageFunctions.""",
    ),
    Case(
        "a step that takes other channels",
        OptionError,
        lambda: _message_passing(_functions(), torch.nn.Linear(2, 3), _functions()),
        """\
MessagePassingNet(steps): step 2 takes node_channels=2, but 3 channels arrive there.""",
    ),
    Case(
        "an update that takes other channels",
        OptionError,
        lambda: _message_passing(_functions(update=torch.nn.Linear(9, 1))),
        """\
MessagePassingNet(steps): step 0, update: the module cannot take a tensor (..., 5), entry by entry.
M takes h_u, h_v and e_uv, joined; U takes h_u and m_u, joined; every other module takes h_u.""",
    ),
    Case(
        "edge features of two kinds",
        OptionError,
        lambda: _message_passing(_functions(edge_channels=1), _functions(edge_channels=2)),
        """\
MessagePassingNet(steps): all steps read the same edge features, but they take [1, 2] channels of them.""",
    ),
    Case(
        "a graph without edges, not even none",
        DataError,
        lambda: _message_passing().prepare(_graph(edge_index=None)),
        """\
prepare(graphs): edge_index, the edges, is missing, and the network reads it.""",
    ),
    Case(
        "a graph with other features",
        DataError,
        lambda: _message_passing().prepare(_graph(x=torch.ones(2, 5))),
        """\
prepare(graphs): x must have shape (nodes, 2), but has (2, 5).""",
    ),
    Case(
        "a graph without edge features",
        DataError,
        lambda: _message_passing(_functions(message=torch.nn.Linear(7, 3), edge_channels=3)).prepare(_graph()),
        """\
prepare(graphs): edge_attr must have shape (edges, 3), but there is none.""",
    ),
    Case(
        "an edge between graphs",
        DataError,
        lambda: _message_passing().prepare(_graph(batch=torch.tensor([0, 1]))),
        """\
prepare(graphs): an edge joins nodes of two graphs.
batch must give both ends of every edge the same graph.""",
    ),
    Case(
        "parallel edges with features",
        DataError,
        lambda: _message_passing(_functions(message=torch.nn.Linear(7, 3), edge_channels=3)).prepare(
            _graph(edge_index=torch.tensor([[0, 0], [1, 1]]), edge_attr=torch.ones(2, 3))
        ),
        """\
prepare(graphs): there are parallel edges, and edge features.
A pair of nodes has room for one edge: merge them, for instance with torch_geometric.utils.coalesce.""",
    ),
]

CASES = [
    *SPEC,
    *PLAN,
    *OPTIONS,
    *INPUTS,
    *SIZES,
    *PADDED,
    *REQUESTS,
    *NETWORKS,
    *MESSAGE_PASSING,
    *EXTRAS,
    *SPARSE,
    *OVER_NODES,
    *PRODUCTS,
    *SEVERAL,
    *UNORDERED,
]
