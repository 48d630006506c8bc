"""The paper's statements about dimensions, bases and norms, checked on the layers as they are installed.

The number of maps is the rank of the matrices of a layer on the standard basis, one weight at a time.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from itertools import permutations, product
from math import comb, prod

import torch
from torch import Tensor

from bellnet import EquivariantLinear
from bellnet.errors import EquivarianceError
from bellnet.testing import assert_equivariant, assert_padding_invariant, matrix_of

TICK, CROSS = "✓", "✗"


@dataclass(frozen=True)
class Row:
    """One statement, its expected value, and the value found."""

    statement: str
    expected: str
    found: str
    ok: bool


def verify(*, seed: int = 0) -> list[Row]:
    """Check the paper's statements; one row for each."""
    checks = (_dimensions, _few_nodes, _moments, _orbits, _norms, _declared, _by_hand, _random_layers)
    with torch.random.fork_rng([]), torch.no_grad():
        torch.default_generator.manual_seed(seed)
        return [row for check in checks for row in check()]


def show(rows: Sequence[Row]) -> str:
    """The rows as a table, a tick or a cross in front of each.

    >>> print(show([Row("2 and 2 are 4", "4", "4", True), Row("Bell(3) is 5", "5", "6", False)]))
       statement      expected  found
    ✓  2 and 2 are 4  4         4
    ✗  Bell(3) is 5   5         6
    <BLANKLINE>
    1 of 2 statements hold.
    """
    cells = [(" ", "statement", "expected", "found")]
    cells += [(TICK if row.ok else CROSS, row.statement, row.expected, row.found) for row in rows]
    widths = [max(len(line[column]) for line in cells) for column in range(4)]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip() for line in cells]
    return "\n".join([*lines, "", f"{sum(row.ok for row in rows)} of {len(rows)} statements hold."])


def _dimensions() -> Iterator[Row]:
    specs = ("n ->", "n -> n", "n n ->", "-> n n", "n n -> n", "n n -> n n", "n n n -> n", "n n n -> n n")
    for spec in (*specs, "n n n -> n n n"):
        order = spec.count("n")
        yield _row(f'"{spec}" has Bell({order}) maps (n = {order})', _bell(order), _rank(_maps(spec, {"n": order})))
    for spec, sizes in (
        ("u i -> u i", {"u": 2, "i": 3}),
        ("u u i ->", {"u": 2, "i": 3}),
        ("u u i -> u i", {"u": 3, "i": 2}),
        ("a b c -> a b c", {"a": 2, "b": 3, "c": 2}),
    ):
        orders = [spec.split().count(name) for name in sizes]
        factors = " x ".join(f"Bell({order})" for order in orders)
        expected = prod(_bell(order) for order in orders)
        yield _row(f'"{spec}" has {factors} maps ({_shown(sizes)})', expected, _rank(_maps(spec, sizes)))
    parameters = EquivariantLinear("n n -> n n", 3, 5).parameters()
    statement = '"n n -> n n" has d e Bell(4) + e Bell(2) parameters (channels d = 3, e = 5)'
    yield _row(statement, 3 * 5 * _bell(4) + 5 * _bell(2), sum(parameter.numel() for parameter in parameters))


def _few_nodes() -> Iterator[Row]:
    for size in (1, 2, 3):
        patterns = {tuple(map(index.index, index)) for index in product(range(size), repeat=4)}
        statement = f'"n n -> n n" has as many maps as 4 indices have equality patterns (n = {size})'
        yield _row(statement, len(patterns), _rank(_maps("n n -> n n", {"n": size})))


def _moments() -> Iterator[Row]:
    for size, power in ((3, 3), (4, 2), (5, 4), (6, 6)):
        traces = [int(torch.eye(size)[list(order)].trace()) for order in permutations(range(size))]
        moment = Fraction(sum(trace**power for trace in traces), len(traces))
        yield _row(
            f"the mean of tr(P)^{power} over all permutations is Bell({power}) (n = {size})", _bell(power), moment
        )


def _orbits() -> Iterator[Row]:
    for spec in ("n n -> n n", "n n n -> n"):
        maps = _maps(spec, {"n": 4}, basis="orbit", normalize="sum").flatten(1)
        products = maps @ maps.T
        overlap = (products - products.diag().diag()).abs().max()
        yield _row(f'orbits of "{spec}" are orthogonal: largest inner product (n = 4)', 0, overlap)
        yield _row(f'orbits of "{spec}" add up to all ones: largest error (n = 4)', 0, (maps.sum(0) - 1).abs().max())


def _norms() -> Iterator[Row]:
    for spec, sizes in (("n n -> n n", {"n": 1}), ("n n -> n n", {"n": 5}), ("u u i -> u i", {"u": 3, "i": 4})):
        norms = _maps(spec, sizes).abs().sum(2).amax(1)
        statement = f'maps of "{spec}" have unit max operator norm: largest error ({_shown(sizes)})'
        yield _row(statement, 0, (norms - 1).abs().max())


def _declared() -> Iterator[Row]:
    spec, size = "n n -> n n", {"n": 5}
    every = _maps(spec, size)
    for words, hollow, expected in (("symmetric inputs", False, 11), ("symmetric inputs with zero diagonal", True, 6)):
        inputs = _symmetric_inputs(5, hollow=hollow)
        kept = _maps(spec, size, symmetric=True, hollow=hollow)
        yield _row(f'"{spec}" has {expected} maps on {words} (n = 5)', expected, _span(every @ inputs, kept @ inputs))
        yield _row(f"the layer declared so has {expected} weights", expected, len(kept))


def _by_hand() -> Iterator[Row]:
    ours, theirs = _maps("u i -> u i", {"u": 3, "i": 4}), _operations(HARTFORD, "u i -> u i", {"u": 3, "i": 4})
    yield _row('the 4 operations of Hartford et al. span "u i -> u i" (u = 3, i = 4)', 4, _span(ours, theirs))
    ours, theirs = _maps("n n -> n n", {"n": 4}), _operations(APPENDIX_A, "n n -> n n", {"n": 4})
    yield _row('the 15 operations of appendix A span "n n -> n n" (n = 4)', 15, _span(ours, theirs))


def _random_layers() -> Iterator[Row]:
    for spec in ("n n -> n n", "n n ->", "n n n -> n", "u u i -> u i", "-> n n", "u -> u i"):
        layer = EquivariantLinear(spec, 2, 3, dtype=torch.float64)
        for parameter in layer.parameters():
            parameter.normal_()
        for statement, check in (
            (f'a random layer "{spec}" commutes with permutations', assert_equivariant),
            (f'a random layer "{spec}" does not depend on padding, nor do its gradients', assert_padding_invariant),
        ):
            yield _row(statement, "yes", _passes(check, layer, spec))


HARTFORD = ("xy", "ky", "xk", "kl")
"""The indices of A in each operation, summed over k and l and broadcast to the entries (x, y)."""
APPENDIX_A = ("xy", "yx", "xk", "ky", "kx", "yk", "kl", "kk", "xx", "yy", "xx,D", "xk,D", "kx,D", "kl,D", "kk,D")
"""Operations with D are on the diagonal alone."""


def _maps(spec: str, sizes: Mapping[str, int], **options: str | bool) -> Tensor:
    """The matrices of a layer's maps, (n_maps, target entries, source entries), one output channel for each."""
    n_maps = EquivariantLinear(spec, 1, 1, **options).plan.n_maps  # type: ignore[arg-type]
    layer = EquivariantLinear(spec, 1, n_maps, bias=False, dtype=torch.float64, **options)  # type: ignore[arg-type]
    layer.weight.copy_(torch.eye(n_maps).unsqueeze(1))
    matrix = matrix_of(layer, spec, sizes)
    return matrix.reshape(-1, n_maps, matrix.shape[1]).transpose(0, 1)


def _operations(operations: Sequence[str], spec: str, sizes: Mapping[str, int]) -> Tensor:
    """The matrices of operations on one matrix."""

    def apply(operation: str, x: Tensor) -> Tensor:
        indices, _, diagonal = operation.partition(",")
        entries = torch.eye(*x.shape[1:3], dtype=x.dtype) if diagonal else torch.ones_like(x[0, ..., 0])
        return torch.einsum(f"b{indices},xy->bxy", x[..., 0], entries)[..., None]

    return torch.stack([matrix_of(partial(apply, operation), spec, sizes) for operation in operations])


def _symmetric_inputs(size: int, *, hollow: bool) -> Tensor:
    """A basis of the symmetric matrices, as columns; of those with zero diagonal if hollow."""
    rows, columns = torch.triu_indices(size, size, offset=int(hollow))
    matrices = torch.zeros(len(rows), size, size, dtype=torch.float64)
    matrices[range(len(rows)), rows, columns] = matrices[range(len(rows)), columns, rows] = 1
    return matrices.flatten(1).T


def _rank(maps: Tensor) -> int:
    return int(torch.linalg.matrix_rank(maps.flatten(1)))


def _span(ours: Tensor, theirs: Tensor) -> int | str:
    """The dimension of a space, if ours and theirs are the same space; otherwise what is known of them."""
    dimensions = _rank(ours), _rank(theirs), _rank(torch.cat([ours, theirs]))
    return dimensions[0] if len(set(dimensions)) == 1 else "{} and {}, together {}".format(*dimensions)


def _bell(order: int) -> int:
    return 1 if order == 0 else sum(comb(order - 1, others) * _bell(others) for others in range(order))


def _passes(check: Callable[..., None], layer: EquivariantLinear, spec: str) -> str:
    try:
        check(layer, spec)
    except EquivarianceError as wrong:
        facts = str(wrong).splitlines()
        return next((" ".join(fact.split()) for fact in facts if "largest difference" in fact), "no")
    return "yes"


def _row(statement: str, expected: int | str, found: int | str | Fraction | Tensor) -> Row:
    if isinstance(found, Tensor):
        ok, found = bool(found.abs() < 1e-9), f"{float(found):.2g}"
        return Row(statement, str(expected), "0" if ok else found, ok)
    return Row(statement, str(expected), str(found), found == expected)


def _shown(sizes: Mapping[str, int]) -> str:
    return ", ".join(f"{name} = {size}" for name, size in sizes.items())
