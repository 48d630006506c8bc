"""What the engine needs of a layout, that is of the way in which values over tuples of nodes are held."""

from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

from torch import Tensor

from bellnet.backends.means import Means
from bellnet.backends.moves import Primitives
from bellnet.plan import Plan, RestrictedPlan

Channels = tuple[tuple[int, ...], tuple[int, ...]]
"""Those of every source and of every target."""


class Needs(NamedTuple):
    """Whose gradients are needed."""

    weights: bool
    biases: bool
    values: bool


class Gradients(NamedTuple):
    """Those of all weights, of all biases and of all values; None where they were not needed."""

    weights: Sequence[Tensor] | None
    biases: Sequence[Tensor] | None
    values: Sequence[Tensor] | None


class Backend(Protocol):
    """Runs a plan on numbers, and its gradient."""

    def takes(self, values: Sequence[Tensor], weights: Sequence[Tensor], biases: Sequence[Tensor] | None) -> bool:
        """Whether it runs with such tensors; else plain operations do, or say what is wrong."""

    def takes_back(self, gradients: Sequence[Tensor], kept: Sequence[Any]) -> bool:
        """Whether it runs back with such gradients and what was kept for them."""

    def forward(
        self, values: Sequence[Tensor], weights: Sequence[Tensor], biases: Sequence[Tensor] | None, *, needed: bool
    ) -> tuple[Sequence[Tensor], Sequence[Tensor | None]]:
        """The results, and what is kept for the gradient; `needed` says whether that of the values will be."""

    def backward(
        self,
        gradients: Sequence[Tensor],
        values: Sequence[Tensor],
        weights: Sequence[Tensor],
        biases: Sequence[Tensor],
        kept: Sequence[Any],
        needs: Needs,
    ) -> Gradients:
        """The gradients of weights, biases and values, as far as they are needed."""


class Layout(Protocol):
    """How values are held. Its moves are enough to run."""

    @property
    def has_axes(self) -> bool:
        """Whether values have an axis for every slot; those are then grouped by node set."""

    def key(self, values: Sequence[Tensor]) -> object:
        """What is prepared for one layout and its values serves all with an equal key; None for these alone."""

    def present(self, plan: Plan) -> RestrictedPlan | None:
        """The maps that have something to do; None for all of them."""

    def compiled(
        self, left: RestrictedPlan, channels: Channels, values: Sequence[Tensor], *, mean: bool
    ) -> Backend | None:
        """What runs a plan with so many channels on these values by kernels; None if there are none for them."""

    def moves(self, plan: Plan, values: Sequence[Tensor], *, mean: bool, in_place: bool) -> tuple[Primitives, Means]:
        """The moves, perhaps in place, and how the sums of these values become means if they are wanted.

        The weights may see to means only if moves are in place.
        """
