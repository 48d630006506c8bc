"""Several networks that answer together: what they say is the mean of what each of them says.

They differ in nothing but the weights they begin with and the channels they drop. What one network makes of few graphs
is partly chance, and chance goes a different way in each; their mean misses fewer labels than most of them do.
"""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from bellnet.data import Graph
from bellnet.estimator.nets import LabelNet, OverNodes


class Ensemble(nn.Module):
    """Networks of one kind, each of which learns by itself.

    Args:
        members: The networks.
    """

    def __init__(self, members: Sequence[LabelNet]) -> None:
        super().__init__()
        self.nets = nn.ModuleList(members)

    @property
    def members(self) -> tuple[LabelNet, ...]:
        """The networks, one after the other."""
        return tuple(self.nets)  # type: ignore[arg-type]

    def reset_parameters(self, generator: torch.Generator) -> None:
        """Draw new weights for every network, each after the one before."""
        for member in self.members:
            member.reset_parameters(generator)

    def scale_by(self, scale: Tensor) -> None:
        """Let all networks multiply every channel of the input by its factor."""
        for member in self.members:
            member.scale_by(scale)

    def rates(self, learning_rate: float) -> list[dict[str, Any]]:
        """The weights of all networks in groups, as `LabelNet.rates` has them."""
        return [group for member in self.members for group in member.rates(learning_rate)]

    @contextmanager
    def dropping_by(self, generator: torch.Generator) -> Iterator[None]:
        """While this lasts, what is dropped is drawn from a generator alone."""
        with ExitStack() as stack:
            for member in self.members:
                stack.enter_context(member.dropping_by(generator))
            yield

    def forward(self, batch: OverNodes | tuple[OverNodes, ...], graphs: Sequence[Graph]) -> Tensor:
        """The mean of what the networks say, see `LabelNet.forward`."""
        return torch.stack([member(batch, graphs) for member in self.members]).mean(0)
