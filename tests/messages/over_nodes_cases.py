"""How arithmetic and conversions of `Padded` and `Sparse` refuse what they cannot do."""

import torch

from bellnet import Padded, Sparse
from bellnet.errors import NotATensorError, ShapeError, SizesError, SupportError, TensorError
from tests.messages.case import Case


def _padded(*shape, sizes=(3, 1)):
    return Padded(torch.zeros(shape or (2, 3, 3, 2)), torch.tensor(sizes))


def _sparse(*nodes):
    return Sparse(torch.tensor([nodes, nodes]), torch.ones(len(nodes), 1), sizes=4)


OVER_NODES = [
    Case(
        "sizes beyond every axis",
        SizesError,
        lambda: _padded(sizes=(5, 1)),
        """\
Padded(values, sizes): sizes goes up to 5, but no axis of values, which are (2, 3, 3, 2), is longer than 3.
Sizes count the nodes before padding.""",
    ),
    Case(
        "a sum of a Padded and a Sparse",
        TensorError,
        lambda: _padded() + _sparse(0),
        """\
Padded + Sparse: both must be of one kind.
Convert one of them, x.to_padded() for instance.""",
    ),
    Case(
        "a sum of different numbers of channels",
        ShapeError,
        lambda: _padded() + _padded(2, 3, 3, 4),
        """\
Padded + Padded: they have 2 and 4 channels.""",
    ),
    Case(
        "a product with a tensor that has no place",
        ShapeError,
        lambda: _padded() * torch.ones(3),
        """\
Padded * Tensor: a tensor must hold one number, or one for each of the 2 channels; its shape is (3,).
For other tensors use x.with_values(x.values * tensor).""",
    ),
    Case(
        "a difference of graphs of other sizes",
        SizesError,
        lambda: _padded() - _padded(sizes=(3, 2)),
        """\
Padded - Padded: their graphs differ in size.
Both must come from the same graphs.""",
    ),
    Case(
        "a sum of values that are padded to other lengths",
        ShapeError,
        lambda: _padded() + _padded(2, 4, 4, 2),
        """\
Padded + Padded: their values have shapes (2, 3, 3, 2) and (2, 4, 4, 2).""",
    ),
    Case(
        "a sum of listed values for graphs of other sizes",
        SizesError,
        lambda: _sparse(0) + Sparse(torch.tensor([[0], [0]]), torch.ones(1, 1), sizes=9),
        """\
Sparse + Sparse: their graphs differ in size.
Both must come from the same graphs.""",
    ),
    Case(
        "a sum of values on other tuples",
        SupportError,
        lambda: _sparse(0) + _sparse(1),
        """\
Sparse + Sparse: they list different tuples.
Bring one to the tuples of the other: Sparse.on(x, y.at(x.index)) has the values of y, and zeros, where x lists \
something.""",
    ),
    Case(
        "moving to what is no place",
        TensorError,
        lambda: _padded().to([1]),
        """\
to(): expected a device, a dtype or a tensor, not builtins.list.""",
    ),
    Case(
        "a dense tensor beyond a bound",
        SizesError,
        lambda: _sparse(0).to_dense(max_gigabytes=1e-9),
        """\
Sparse.to_dense(): a tensor of 4 x 4 x 1 numbers would take 64 bytes; max_gigabytes allows 1.
Stay sparse: layers take a Sparse, and Encoding.encode, Loader and the estimators have layout="sparse".""",
    ),
    Case(
        "the mean of a Padded",
        NotATensorError,
        lambda: _padded().mean(),
        """\
A Padded is no tensor and has no 'mean'.
bellnet.InvariantPool("n n", "mean") takes the entries of every graph together, and so does a layer without target \
slots, "n n ->".
x.values is the tensor, with whatever stands in its padding.""",
    ),
    Case(
        "the largest entry of a Sparse",
        NotATensorError,
        lambda: _sparse(0).amax(),
        """\
A Sparse is no tensor and has no 'amax'.
bellnet.InvariantPool("n n", "max") takes the entries of every graph together, and so does a layer without target \
slots, "n n ->".
x.values is the tensor of the listed values, those of all graphs in a row.""",
    ),
    Case(
        "an activation as a method",
        NotATensorError,
        lambda: _padded().relu(),
        """\
A Padded is no tensor and has no 'relu'.
A function that acts on every entry alone goes into x.map(torch.relu), a module into a Pointwise.
x.values is the tensor, with whatever stands in its padding.""",
    ),
    Case(
        "a conversion by name",
        NotATensorError,
        lambda: _sparse(0).double(),
        """\
A Sparse is no tensor and has no 'double'.
Write x.to(torch.float64).""",
    ),
]
