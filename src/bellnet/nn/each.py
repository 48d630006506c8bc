"""What modules that act on one tensor do with several: each by itself."""

from collections.abc import Mapping, Sequence

from torch import Tensor

from bellnet.errors import TensorError, type_name
from bellnet.nn.several import Collection, OverNodes
from bellnet.spec import Shape, text_of
from bellnet.tensors import Padded, Sparse, Support


def check_several(call: str, x: object, shapes: Sequence[Shape]) -> Collection:
    """A tuple with a tensor for every shape; nodes of all graphs in a row beside a batch of them become a `Sparse`."""
    if not isinstance(x, tuple | list) or len(x) != len(shapes):
        came = f"{len(x)} came" if isinstance(x, tuple | list) else f"this is a {type(x).__name__}"
        raise TensorError(
            f'{call} takes a tuple of {len(shapes)} tensors, over "{text_of(tuple(shapes))}", but {came}.'
        )
    for number, one in enumerate(x):
        if not isinstance(one, Tensor | Padded | Sparse):
            raise TensorError(
                f"{call} at x[{number}] takes a tensor, a bellnet.Padded or a bellnet.Sparse, not {type_name(one)}."
            )
    batches = {
        name: one.support
        for one, shape in zip(x, shapes, strict=True)
        if isinstance(one, Sparse) and one.support.counts.is_batch
        for name in shape
    }
    return tuple(_listed(one, shape, batches) for one, shape in zip(x, shapes, strict=True)) if batches else tuple(x)


def as_they_were(results: Sequence[OverNodes], x: Sequence[OverNodes]) -> Collection:
    """Results for what `check_several` gave, nodes in a row again where they were."""
    pairs = zip(results, x, strict=True)
    return tuple(one.values if isinstance(one, Sparse) and isinstance(was, Tensor) else one for one, was in pairs)


def _listed(x: OverNodes, shape: Shape, batches: Mapping[str, Support]) -> OverNodes:
    if not isinstance(x, Tensor) or len(shape) != 1 or x.ndim != 2 or shape[0] not in batches:
        return x
    batch, key = batches[shape[0]], ("every node of", shape)
    return Sparse.on(batch.cached(key, lambda: Support.every_node(batch.counts, shape[0])), x)
