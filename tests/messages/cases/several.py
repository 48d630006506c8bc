"""Mistakes with several tensors and with products."""

import torch

from bellnet import (
    EntryNorm,
    EquivariantLinear,
    EquivariantNet,
    InvariantNet,
    InvariantPool,
    Padded,
    Pointwise,
    Product,
    Sparse,
    change_basis,
    plan,
)

PAIR = torch.tensor([[0, 1], [1, 0]])


def _edges(sizes=3):
    return Sparse(PAIR, torch.zeros(2, 1), sizes)


def _batch(sizes=(3, 2)):
    return Sparse(torch.tensor([[0, 1], [0, 1], [1, 0]]), torch.zeros(2, 1), torch.tensor(sizes))


def _layer(spec="n n, n -> n n, n", **options):
    return EquivariantLinear(spec, 1, 2, **options)


def _padded(sizes, *axes):
    return Padded(torch.zeros(2, *axes, 1), torch.tensor(sizes))


def _product(contraction, spec="n n, n n -> n n"):
    return lambda: Product(spec, contraction)


def _matmul(*factors, **options):
    return Product("n n, n n -> n n")(*factors, **options)


def _square(*shape, **options):
    return torch.zeros(*(shape or (3, 3, 2)), **options)


def _listed(index, n=3):
    return Sparse(torch.tensor(index), torch.zeros(len(index[0]), 2), n)


CASES = {
    # several tensors
    "several tensors one by one": lambda: _layer()(torch.zeros(3, 3, 1), torch.zeros(3, 1)),
    "many tensors one by one for a network": lambda: EquivariantNet("n n, n, n, -> n", [1, 2])(
        *[torch.zeros(3, 1)] * 4
    ),
    "several tensors one by one for a classifier": lambda: InvariantNet("n n, n", [1, 2], 3)(
        torch.zeros(3, 3, 1), torch.zeros(3, 1)
    ),
    "several tensors one by one to pool": lambda: InvariantPool("n n, n")(torch.zeros(3, 3, 1), torch.zeros(3, 1)),
    "several tensors one by one to normalise": lambda: EntryNorm(1, "n n, n")(torch.zeros(3, 3, 1), torch.zeros(3, 1)),
    "several tensors one by one for an activation": lambda: Pointwise(torch.nn.ReLU())(
        torch.zeros(3, 3, 1), torch.zeros(3, 1)
    ),
    "several tensors for a spec of one": lambda: _layer("n n -> n")(torch.zeros(3, 3, 1), torch.zeros(3, 1)),
    "sizes without their name": lambda: _layer("n -> n m")(torch.zeros(3, 1), {"m": 4}),
    "a layer called as a convolution": lambda: _layer()(torch.zeros(3, 1), PAIR, torch.zeros(2, 1)),
    "None for one of several tensors that are normalised": lambda: EntryNorm(1, "n n, n")((torch.zeros(3, 3, 1), None)),
    "tensors of other graphs for a pool": lambda: InvariantPool("n n, n")(
        (torch.zeros(5, 3, 3, 1), torch.zeros(4, 3, 1))
    ),
    "one tensor of coefficients for several pairs": lambda: change_basis("n n, n -> n", torch.zeros(7), to="orbit"),
    "coefficients for other pairs": lambda: change_basis("n n, n -> n", [torch.zeros(5)] * 3, to="orbit"),
    "coefficients of another pair": lambda: change_basis("n n, n -> n", [torch.zeros(5), torch.zeros(5)], to="orbit"),
    "one of several tensors of another type": lambda: _layer()(
        (torch.zeros(3, 3, 1), torch.zeros(3, 1, dtype=torch.float64))
    ),
    "channels of some of several tensors": lambda: EquivariantLinear("n n, n -> n", (1, 2, 3), 4),
    "channels of several tensors for one": lambda: EquivariantLinear("n n, n -> n", 1, (4, 4)),
    "the cost of other channels": lambda: plan("n n, n -> n").cost(10, (1, 2, 3)),
    "a tensor for several": lambda: _layer()(torch.zeros(3, 3, 1)),
    "a tensor for several that may be slots": lambda: _layer("u, i -> u")(torch.zeros(3, 3, 1)),
    "too many tensors": lambda: _layer()([torch.zeros(3, 3, 1), torch.zeros(3, 1), torch.zeros(1)]),
    "a wrong axis in one of several": lambda: _layer()((torch.zeros(3, 3, 1), torch.zeros(3, 2))),
    "other graphs": lambda: _layer()((torch.zeros(4, 3, 3, 1), torch.zeros(5, 3, 1))),
    "other nodes": lambda: _layer()((torch.zeros(3, 3, 1), torch.zeros(4, 1))),
    "some are padded": lambda: _layer()((_padded([3, 2], 3, 3), torch.zeros(2, 3, 1))),
    "other sizes": lambda: _layer()((_padded([3, 2], 3, 3), _padded([3, 1], 3))),
    "no sizes for a set of targets": lambda: _layer("n n, n -> n m")((torch.zeros(3, 3, 1), torch.zeros(3, 1))),
    "a Sparse of other graphs": lambda: _layer("n n, n -> n")((_batch(), Sparse.of_nodes(torch.zeros(3, 1), 3))),
    "a Sparse on another device": lambda: _layer("n n, n -> n n")(
        (_edges(), torch.zeros(3, 1)), support=_edges().to("meta")
    ),
    "a Sparse of other nodes": lambda: _layer()((_batch(), _padded([3, 1], 3))),
    "supports for some targets": lambda: _layer()((_edges(), torch.zeros(3, 1)), support=(_edges(),)),
    "no support": lambda: _layer()((_edges(), torch.zeros(3, 1)), support=3),
    "a support for no target": lambda: _layer("n n, n -> n, ")((_edges(), torch.zeros(3, 1)), support=_edges()),
    "no support for one of the targets": lambda: _layer()((_edges(), torch.zeros(3, 1)), support=(None, 3)),
    "a support over other slots": lambda: _layer()((_edges(), torch.zeros(3, 1)), support=(None, _edges())),
    "a support for a vector": lambda: _layer("n n, n -> n, ")((_edges(), torch.zeros(3, 1)), support=(None, _edges())),
    "a batch beside one graph": lambda: _layer()((_edges(), torch.zeros(2, 3, 1))),
    "other graphs beside a batch": lambda: _layer("n n, -> n n, n")((_batch(), torch.zeros(3, 1))),
    "nodes in a row that are too few": lambda: _layer()((_batch(), torch.zeros(4, 1))),
    "nodes in a row of an unknown number": lambda: _layer("n n, m -> n n")((_batch(), torch.zeros(4, 1))),
    "sizes of another form beside a Sparse": lambda: _layer("n n, n -> m")(
        (_edges(), torch.zeros(3, 1)), sizes={"m": torch.tensor([2, 3])}
    ),
    "one tensor to pool for several": lambda: InvariantPool("u i, u")(torch.zeros(3, 2, 1)),
    "tensors to normalise that are too few": lambda: EntryNorm(1, "u i, u")((torch.zeros(3, 2, 1),)),
    "which tuples": lambda: _layer("n n, n -> n n n, n")((_edges(), torch.zeros(3, 1))),
    "no sizes beside a Sparse": lambda: _layer("n n, n -> m, n")((_edges(), torch.zeros(3, 1))),
    # products
    "a product of one tensor": _product(None, "n n -> n n"),
    "a product with braces": _product(None, "{n n}, n n -> n n"),
    "a product that is not usual": _product(None, "u i, u i -> u u"),
    "an integer for a contraction": _product(7),
    "a contraction without an arrow": _product("ab,bc"),
    "a contraction without a comma": _product("abbc->ac"),
    "a contraction with a number": _product("ab,b1->a1"),
    "a contraction with too few letters": _product("ab,b->a"),
    "a contraction with a diagonal": _product("aa,ab->ab"),
    "a letter of two node sets": _product("ab,ac->bc", "u i, i v -> u v"),
    "a letter out of nothing": _product("ab,ab->ac"),
    "a letter of one factor alone": _product("ab,cd->ac"),
    "a product divided by something else": lambda: Product("n n, n n -> n n", normalize="max"),
    "factors with other channels": lambda: _matmul(_square(), _square(3, 3, 5)),
    "factors on other devices": lambda: _matmul(_square(), _square(device="meta")),
    "factors of other types": lambda: _matmul(_square(), _square(dtype=torch.float64)),
    "factors over other nodes": lambda: _matmul(_square(), _square(4, 4, 2)),
    "a padded factor beside a tensor": lambda: _matmul(
        _square(2, 3, 3, 2), Padded(_square(2, 3, 3, 2), torch.tensor([3, 1]))
    ),
    "a product at unknown pairs": lambda: Product("n n, n n -> n n n", "ab,bc->abc")(
        _listed([[0], [1]]), _listed([[1], [2]])
    ),
    "two factors as one tuple": lambda: _matmul((_square(), _square())),
    "two factors as one list, and a support": lambda: _matmul([_square(), _square()], support=_listed([[0], [1]])),
    "one factor": lambda: _matmul(_square()),
    "nothing for a factor, and a third thing": lambda: _matmul(_square(), None, _listed([[0], [1]])),
    "a support without its name": lambda: _matmul(_square(), _square(), _listed([[0], [1]])),
}
