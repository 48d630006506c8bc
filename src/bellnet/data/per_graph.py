"""What a network says of a batch, back per graph and without padding.

For nodes and pairs of nodes `Padded.unpack("n")` and `Padded.unpack("n n")` do it; here are the listed edges, and the
way back from the order of a loader.
"""

from collections.abc import Iterable, Sequence
from typing import TypeVar

from torch import Tensor

from bellnet.data.convert import read_by
from bellnet.data.kinds import Names
from bellnet.errors import DataError
from bellnet.tensors import Padded, Sparse

T = TypeVar("T")


def at_edges(pairs: Padded | Sparse, graphs: Iterable[object]) -> list[Tensor]:
    """Of values on pairs of nodes, those at the edges of each graph: (edges, channels), in the order of its edges.

    Args:
        pairs: Values of shape (graphs, n, n, channels), for instance what a network "n n -> n n" returns; or a batch of
            listed pairs, of which those that are not listed are zero.
        graphs: The graphs of the batch, of any kind that `as_graph` takes.

    >>> path = torch.tensor([[0, 1, 0], [1, 0, 1], [0, 1, 0]])
    >>> at_edges(Padded(torch.arange(9.0).reshape(1, 3, 3, 1), torch.tensor([3])), [path])[0].flatten()
    tensor([1., 3., 5., 7.])
    """
    known = read_by(graphs, Names((), (), (), ()))  # edges alone matter here
    apart: Sequence[Tensor | Sparse] = pairs.unpack() if isinstance(pairs, Sparse) else pairs.unpack("n n")
    sizes = [graph.sizes if isinstance(graph, Sparse) else len(graph) for graph in apart]
    came = [graph.n for graph in known]
    if came != sizes:
        raise DataError(
            f"at_edges(pairs, graphs): the values are of {len(sizes)} graphs with {_some(sizes)} nodes, but the graphs "
            f"are {len(came)} with {_some(came)} nodes.\nPass the graphs of this batch, in its order."
        )
    return [
        values.at(graph.edge_index) if isinstance(values, Sparse) else values[graph.edge_index[0], graph.edge_index[1]]
        for values, graph in zip(apart, known, strict=True)
    ]


def in_order(batches: Iterable[tuple[Sequence[T], Tensor]]) -> list[T]:
    """What was found batch by batch, one thing for each graph, in the order of the graphs before they were shuffled.

    Args:
        batches: For each batch what was found for its graphs, and their places, as a `Loader` gives them.

    >>> in_order([(["c", "a"], torch.tensor([2, 0])), (["b"], torch.tensor([1]))])
    ['a', 'b', 'c']
    """
    found: dict[int, T] = {}
    for things, places in batches:
        if len(things) != len(places):
            raise DataError(f"in_order(batches): a batch of {len(places)} graphs came with {len(things)} results.")
        found.update(zip(places.tolist(), things, strict=True))
    if sorted(found) != list(range(len(found))):
        missing = next(place for place in range(len(found)) if place not in found)
        raise DataError(f"in_order(batches): there is nothing for graph {missing}.\nPass all batches of an epoch.")
    return [found[place] for place in range(len(found))]


def _some(sizes: Sequence[object]) -> str:
    return ", ".join(map(str, sizes[:4])) + (", ..." if len(sizes) > 4 else "")
