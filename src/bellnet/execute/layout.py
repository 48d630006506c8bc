"""What the engine needs of a layout, that is of the way in which values over tuples of nodes are held."""

from collections.abc import Sequence
from typing import Any, Protocol

from torch import Tensor

from bellnet.execute.level_matrices import LevelMatrices
from bellnet.execute.means import Means
from bellnet.execute.plain import Moves
from bellnet.plan import Plan, Present

Channels = tuple[tuple[int, ...], tuple[int, ...]]
"""Those of every source and of every target."""


class Walk(Protocol):
    """Runs a plan on numbers, and its gradient."""

    def means(self, values: Sequence[Tensor]) -> Means:
        """How the sums of these values become means; the weights see to it, if they can."""

    def views(self, matrices: LevelMatrices, gathered: Tensor) -> Any:
        """The matrices as `forward` and `backward` use them."""

    def forward(
        self, values: Sequence[Tensor], matrices: Any, *, bias: Tensor | None, means: Means
    ) -> tuple[Sequence[Tensor], list[Tensor]]:
        """The results, and what was read but the values themselves."""

    def backward(
        self,
        gradients: Sequence[Tensor],
        values: Sequence[Tensor],
        read: list[Tensor],
        *,
        matrices: Any,
        of_matrices: Any,
        of_bias: Tensor | None,
        means: Means,
    ) -> Sequence[Tensor] | None:
        """The gradients of the values, if matrices are given; those of matrices and bias are added in place."""


class Layout(Protocol):
    """How values are held. Its moves are enough to run; a walk of its own makes it fast."""

    @property
    def has_axes(self) -> bool:
        """Whether values have an axis for every slot; those are then grouped by node set."""

    def key(self, values: Sequence[Tensor]) -> object:
        """What is prepared for one layout and its values serves all with an equal key; None for these alone."""

    def present(self, plan: Plan) -> Present | None:
        """The maps that have something to do; None for all of them."""

    def walk(self, plan: Plan, channels: Channels, values: Sequence[Tensor]) -> Walk | None:
        """What runs a plan with so many channels on these values; None to go by the moves."""

    def moves(self, plan: Plan, values: Sequence[Tensor], *, mean: bool) -> tuple[Moves, Means]:
        """The moves in plain operations, and how the sums of these values become means if they are wanted."""
