"""The matrices of the maps of layers, and spaces spanned by matrices.

The matrices come from `EquivariantLinear` applied to the standard basis of its inputs, never from the oracle.
"""

from itertools import product

import torch

from bellnet import EquivariantLinear
from bellnet.spec import parse_spec
from bellnet.testing import matrix_of

BELL = (1, 1, 2, 5, 15, 52, 203, 877)

# STIRLING[s][m]: the ways to split s things into m non-empty blocks.
STIRLING = (
    (1,),
    (0, 1),
    (0, 1, 1),
    (0, 1, 3, 1),
    (0, 1, 7, 6, 1),
    (0, 1, 15, 25, 10, 1),
    (0, 1, 31, 90, 65, 15, 1),
)

EVERY_BASIS = (
    {"basis": "diagram", "normalize": "mean"},
    {"basis": "diagram", "normalize": "sum"},
    {"basis": "orbit", "normalize": "sum"},
)


def maps(spec, sizes, **options):
    """(n_maps, target entries, source entries): the matrix of the layer for one weight after the other."""
    layer = EquivariantLinear(spec, 1, 1, bias=False, dtype=torch.float64, **options)
    found = []
    with torch.no_grad():
        for number in range(layer.plan.n_maps):
            layer.weight.zero_()
            layer.weight[number] = 1
            found.append(matrix_of(layer, spec, sizes))
    return torch.stack(found)


def maps_side_by_side(spec, sizes, **options):
    """The same in one call, each map in an output channel of its own; for those too large to do one by one."""
    n_maps = EquivariantLinear(spec, 1, 1, **options).plan.n_maps
    layer = EquivariantLinear(spec, 1, n_maps, bias=False, dtype=torch.float64, **options)
    with torch.no_grad():
        layer.weight.copy_(torch.eye(n_maps).unsqueeze(1))
        matrix = matrix_of(layer, spec, sizes)
    return matrix.reshape(matrix.shape[0] // n_maps, n_maps, matrix.shape[1]).transpose(0, 1)


def written(operations, spec, sizes):
    """The same for operations that are written down for one tensor without batch and channels."""
    return torch.stack([matrix_of(_on_a_batch(operation), spec, sizes) for operation in operations])


def _on_a_batch(operation):
    return lambda x: torch.stack([operation(one.squeeze(-1)).unsqueeze(-1) for one in x])


def rank(matrices):
    """The dimension of the space that these matrices span."""
    return int(torch.linalg.matrix_rank(matrices.flatten(1)))


def assert_same_space(ours, theirs):
    """Two lists of matrices span one space: neither adds anything to the other."""
    together = rank(torch.cat([ours.flatten(1), theirs.flatten(1)]))
    assert (rank(ours), rank(theirs)) == (together, together)


def random_layer(spec, in_channels=1, out_channels=1, **options):
    """A layer whose weights and biases are all drawn from the normal distribution."""
    layer = EquivariantLinear(spec, in_channels, out_channels, dtype=torch.float64, **options)
    with torch.no_grad():
        for parameter in layer.parameters():
            parameter.normal_()
    return layer


def declared_inputs(spec, sizes, *, symmetric, hollow):
    """A basis, as columns, of the inputs that are symmetric or hollow: indices that must hold one value together."""
    source = parse_spec(spec).source
    shape = [sizes[name] for name in source]
    columns = {}
    for index in product(*map(range, shape)):
        pairs = list(zip(source, index, strict=True))
        if hollow and len(set(pairs)) < len(pairs):
            continue
        together = tuple(sorted(pairs)) if symmetric else index
        columns.setdefault(together, torch.zeros(shape, dtype=torch.float64))[index] = 1
    return torch.stack([column.flatten() for column in columns.values()], 1)


def of_orders(k, l):
    """The spec of the maps from order k to order l over one node set."""
    return " ".join(["n"] * k + ["->"] + ["n"] * l)


ORDERS_UP_TO_4 = [(k, total - k) for total in range(5) for k in range(total + 1)]
