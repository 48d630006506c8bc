"""What modules say to those who hand over several things in another way than they take them.

Several tensors are one tuple, and the two factors of a product come one by one.
"""

from collections.abc import Mapping
from typing import NoReturn

from torch import Tensor

from bellnet.errors import TensorError


def refuse_more(call: str, given: tuple[object, ...], n_tensors: int | None) -> NoReturn:
    """Refuse more than one input, with the way out that what came asks for.

    Args:
        call: How the message names the module.
        given: All that came.
        n_tensors: How many the module takes; None for any number.
    """
    takes = {None: "one tensor, or several as one tuple", 1: "one tensor"}
    said = takes.get(n_tensors, f"its {n_tensors} tensors as one tuple")
    if any(_is_edge_index(one) for one in given):
        advice = (
            "Of edge_index and edge_attr bellnet.data.sparse_inputs.from_edge_index(edge_index, edge_attr) makes one "
            "Sparse, and of a batch of PyTorch Geometric bellnet.data.sparse_inputs.from_pyg(batch)."
        )
    elif any(one is None or isinstance(one, Mapping) for one in given[1:]):
        advice = "Options have names: layer(x, sizes=..., support=...)."
    elif n_tensors == 1:
        advice = 'For several tensors write commas in the spec, "n n, n -> n n", and pass them as one tuple.'
    else:
        advice = f"Put parentheses around them: module(({', '.join('xyz'[: len(given)])}{', ...' * (len(given) > 3)}))."
    raise TensorError(f"{call} takes {said}, but {len(given)} things came one by one.\n{advice}")


def refuse_as_factors(call: str, given: tuple[object, ...]) -> NoReturn:
    """Refuse all that is not two factors one by one, with the way out that what came asks for.

    Args:
        call: How the message names the product.
        given: All that came.
    """
    if len(given) == 1 and isinstance(given[0], tuple | list):
        came = f"a {type(given[0]).__name__} of {len(given[0])} came"
        advice = "Leave out its parentheses, product(x, y), or write a star before it, product(*pair)."
    elif len(given) == 1:
        came, advice = "one thing came", "Pass both of them: product(x, y), and product(x, x) for a square."
    else:
        came, advice = f"{len(given)} things came", "Options have names: product(x, y, support=...)."
    raise TensorError(f"{call} takes its two factors one by one, but {came}.\n{advice}")


def _is_edge_index(given: object) -> bool:
    """Whether it looks like the edges of a graph as PyTorch Geometric has them: whole numbers, (2, edges)."""
    return isinstance(given, Tensor) and given.ndim == 2 and len(given) == 2 and not given.is_floating_point()
