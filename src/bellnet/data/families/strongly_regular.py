"""Strongly regular graphs: nodes have equally many neighbours, linked ones equally many in common, and others too.

Colour refinement of dimension 2 leaves two of them with the same parameters alike, and so do networks of order 3.
"""

from collections.abc import Callable
from itertools import product

import torch
from torch import Tensor

from bellnet.data.graph import Graph, undirected
from bellnet.data.refinement import refine_colours
from bellnet.errors import OptionError

LATIN_SQUARES = ("01234 12340 23401 34012 40123", "01234 10342 24013 32401 43120")
"""One of each of the two kinds of Latin squares with five symbols."""
SIGNS = "++++++-+-++--"
"""The first row of a matrix of thirteen rows that is the same after a shift of both; see `_of_circulants`."""


def strongly_regular(n: int, degree: int, common: int, other: int) -> list[Graph]:
    """All strongly regular graphs with these parameters, none of them twice.

    Two kinds are made here. (16, 6, 2, 2) has two graphs: where a rook can go on a board of 4 x 4, and Shrikhande's.
    (25, 12, 5, 6) has fifteen (Paulus, 1973), in four classes that switching leads through: those of the two kinds of
    Latin squares, the first of which is Paley's graph, that of two circulant matrices, and one that comes from there by
    switching four nodes. Colour refinement that knows the cliques of four tells all fifteen apart.

    Args:
        n: The number of nodes.
        degree: The number of neighbours of a node.
        common: The number of common neighbours of two nodes that are linked.
        other: The number of common neighbours of two that are not.
    """
    wanted = (n, degree, common, other)
    if wanted not in MADE:
        raise OptionError(
            f"strongly_regular: the parameters must be {' or '.join(map(str, MADE))}, not {wanted}.\n"
            "Graphs with others can be read from files: bellnet.data.graph6.load."
        )
    return [undirected(n, matrix.triu().nonzero()) for matrix in MADE[wanted]()]


def _of_sixteen() -> list[Tensor]:
    places = torch.tensor(list(product(range(4), repeat=2)))
    apart = (places[:, None] - places) % 4
    rook = (apart == 0).sum(-1) == 1
    steps = torch.tensor([(0, 1), (0, 3), (1, 0), (3, 0), (1, 1), (3, 3)])
    shrikhande = (apart[:, :, None] == steps).all(-1).any(-1)
    return [rook, shrikhande]


def _of_twenty_five() -> list[Tensor]:
    circulant = _of_circulants()
    starts = [*map(_of_latin_square, LATIN_SQUARES), circulant, _with_four_switched(circulant)]
    found = torch.stack([matrix for start in starts for matrix in (start, *_descendants(start))])
    kinds = refine_colours(_by_cliques(found)).kinds
    return [found[kinds.index(kind)] for kind in sorted(set(kinds))]


def _of_latin_square(rows: str) -> Tensor:
    """Fields of a square are linked if they share row, column or symbol."""
    lines = enumerate(rows.split())
    fields = torch.tensor([(row, column, int(symbol)) for row, line in lines for column, symbol in enumerate(line)])
    return (fields[:, None] == fields).sum(-1) == 1


def _of_circulants() -> Tensor:
    """What is left of a symmetric conference matrix of two circulant ones when a node is isolated and removed.

    Of the matrix [A B; B^T -A] any two rows are orthogonal. A says which differences are squares modulo 13.
    """
    squares = {number * number % 13 for number in range(1, 13)}
    symbols = torch.tensor([0, *(1 if number in squares else -1 for number in range(1, 13))])
    signs = torch.tensor([1 if sign == "+" else -1 for sign in SIGNS])
    apart = (torch.arange(13) - torch.arange(13)[:, None]) % 13
    a, b = symbols[apart], signs[apart]
    matrix = torch.cat([torch.cat([a, b], 1), torch.cat([b.T, -a], 1)])
    first = matrix[0, 1:]
    return matrix[1:, 1:] * first * first[:, None] == -1


def _descendants(matrix: Tensor) -> list[Tensor]:
    """What is left when a node without links is added, then links are switched so that another has none and goes.

    To switch nodes is to exchange links and gaps between them and the rest. These graphs stay strongly regular then,
    with the same parameters, since matrices of the signs of links and gaps keep their spectrum.
    """
    found = []
    for node, near in enumerate(matrix):
        switched = torch.zeros(len(matrix) + 1, len(matrix) + 1, dtype=torch.bool)
        switched[:-1, :-1] = matrix ^ near ^ near[:, None]
        switched[-1, :-1] = switched[:-1, -1] = near
        kept = torch.arange(len(matrix) + 1) != node
        found.append(switched[kept][:, kept])
    return found


def _with_four_switched(matrix: Tensor) -> Tensor:
    """The graph after the switching of Godsil and McKay (1982), which keeps the spectrum.

    It takes four nodes with equally many links among themselves, such that any other node is linked with none, two or
    all of them; those with two get the other two.
    """
    fours = torch.combinations(torch.arange(len(matrix)), 4)
    links = matrix.long()[:, fours].sum(-1)
    inside = links.gather(0, fours.T)
    outside = links.scatter(0, fours.T, 0)
    fits = (inside == inside[0]).all(0) & (outside % 2 == 0).all(0) & (outside == 2).any(0)
    four, half = fours[fits][0], outside[:, fits][:, 0] == 2
    switched = matrix.clone()
    switched[half.nonzero(), four] ^= True
    switched[four[:, None], half.nonzero().T] ^= True
    return switched


def _by_cliques(matrices: Tensor) -> Tensor:
    """Pairs coloured by whether they are linked and how many links there are among their common neighbours."""
    links = matrices.long()
    shared = links[:, :, None] * links[:, None]
    among = ((shared @ links[:, None]) * shared).sum(-1)
    return torch.where(torch.eye(links.shape[1], dtype=torch.bool), 0, 2 * among + links + 1)


MADE: dict[tuple[int, int, int, int], Callable[[], list[Tensor]]] = {
    (16, 6, 2, 2): _of_sixteen,
    (25, 12, 5, 6): _of_twenty_five,
}
