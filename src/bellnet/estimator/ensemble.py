"""An ensemble: several networks whose outputs are averaged.

The networks differ in their initial weights and in the channels that dropout drops. On few graphs much of what one
network learns is due to chance, which differs between networks, so the ensemble is usually better than most of them.
"""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from bellnet.data import Graph
from bellnet.estimator.model import LabelNet, NetConfig, OverNodes


def build_net(config: NetConfig) -> "LabelNet | Ensemble":
    """A network or an ensemble in float32 on the meta device, where it takes no memory."""
    with torch.device("meta"):
        members = [LabelNet(config).float() for _ in range(config.n_estimators)]
    return members[0] if config.n_estimators == 1 else Ensemble(members)


class Ensemble(nn.Module):
    """Networks of one architecture, each trained on its own loss.

    Args:
        members: The networks.
    """

    def __init__(self, members: Sequence[LabelNet]) -> None:
        super().__init__()
        self.nets = nn.ModuleList(members)

    @property
    def members(self) -> tuple[LabelNet, ...]:
        """The networks."""
        return tuple(self.nets)  # type: ignore[arg-type]

    def reset_parameters(self, generator: torch.Generator) -> None:
        """Draw new weights for all networks, one after the other."""
        for member in self.members:
            member.reset_parameters(generator)

    def set_scale(self, scale: Tensor) -> None:
        """Set the factor of every input channel in all networks."""
        for member in self.members:
            member.set_scale(scale)

    def parameter_groups(self, learning_rate: float) -> list[dict[str, Any]]:
        """The parameters of all networks in groups, see `LabelNet.parameter_groups`."""
        return [group for member in self.members for group in member.parameter_groups(learning_rate)]

    @contextmanager
    def dropout_from(self, generator: torch.Generator) -> Iterator[None]:
        """Draw the dropout of all networks from a generator within this context."""
        with ExitStack() as stack:
            for member in self.members:
                stack.enter_context(member.dropout_from(generator))
            yield

    def forward(self, batch: OverNodes | tuple[OverNodes, ...], graphs: Sequence[Graph]) -> Tensor:
        """The mean of the outputs of the networks, see `LabelNet.forward`."""
        return torch.stack([member(batch, graphs) for member in self.members]).mean(0)
