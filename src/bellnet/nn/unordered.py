"""Results over unordered slots: averages over all exchanges of those, equal to the last bit.

A map whose result does not change when slots are exchanged is any map followed by such an average. Of maps that differ
by an exchange of target slots the averages are equal, so a plan has one of them, and makes fewer products for it.
"""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from bellnet.errors import SupportError
from bellnet.execute import Layout, Supports
from bellnet.spec import Groups, Spec
from bellnet.tensors import Support

Exchange = Callable[[Tensor, int, int], Tensor]
"""Values with two slots exchanged."""


class Unordered:
    """The average over all exchanges of slots that have braces around them, for the results of a layer.

    Args:
        call: How messages name the layer.
        spec: The spec of the layer.
    """

    def __init__(self, call: str, spec: Spec) -> None:
        self._call = call
        self._groups = [spec.unordered_of(target) for target in range(len(spec.targets))]

    def __call__(self, results: Sequence[Tensor], layout: Layout) -> list[Tensor]:
        """For every target (batch, *axes, channels), or values on the tuples that are listed."""
        if not isinstance(layout, Supports):
            return [averaged(one, groups) for one, groups in zip(results, self._groups, strict=True)]
        several = zip(results, layout.targets, self._groups, strict=True)
        return [averaged_listed(self._call, *one) for one in several]


def averaged(values: Tensor, groups: Groups) -> Tensor:
    """(batch, *axes, channels), averaged over all exchanges of the axes of each group of slots."""
    return _averaged(values, groups, lambda tensor, one, other: tensor.transpose(one + 1, other + 1))


def averaged_listed(call: str, values: Tensor, support: Support, groups: Groups) -> Tensor:
    """The same for values (tuples, channels) on the tuples of a support, which has those with exchanged slots too."""

    def exchanged(tensor: Tensor, one: int, other: int) -> Tensor:
        places = support.once(("exchanged", one, other), lambda: _places(call, support, one, other))
        return tensor.index_select(0, places)

    return _averaged(values, groups, exchanged)


def _averaged(values: Tensor, groups: Groups, exchange: Exchange) -> Tensor:
    for group in groups:
        for last in range(1, len(group)):
            total = values
            for place in range(last):
                total = total + exchange(values, group[place], group[last])
            values = total / (last + 1)
        if len(group) > 2:  # sums in another order differ by rounding, the largest of them is one number
            for last in range(1, len(group)):
                for place in range(last):
                    values = torch.maximum(values, exchange(values, group[place], group[last]))
    return values


def _places(call: str, support: Support, one: int, other: int) -> Tensor:
    """For every tuple the place of that with two slots exchanged."""
    order = list(range(support.order))
    order[one], order[other] = other, one
    places = support.places(support.nodes[order])
    if bool((places < 0).any()):
        missing = int((places < 0).nonzero()[0])
        raise SupportError(
            f"{call}: slots {one} and {other} of the result are unordered, but {support.show(missing)} is listed "
            "without the tuple that has them exchanged.\nList both, or write no braces around these slots."
        )
    return places
