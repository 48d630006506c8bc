"""An ensemble: its members, how their outputs are combined, and the logits of graphs.

The members are networks that differ in their initial weights and in the channels that dropout drops. On few graphs much
of what one network learns is due to chance, which differs between networks, so the mean of their outputs is usually
better than most of them.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from bellnet import ChannelDropout
from bellnet.data import Graph, Loader
from bellnet.estimator.model import LabelNet, NetConfig, OverNodes


class Ensemble(nn.Module):
    """Members with one kind of outputs; each is trained on its own loss.

    `state_dict` has the weights of all members, and `Ensemble(config).load_state_dict` restores them.

    Args:
        config: The architecture of the members, and their number.
    """

    members: Sequence[LabelNet]

    def __init__(self, config: NetConfig) -> None:
        super().__init__()
        members = nn.ModuleList(LabelNet(config) for _ in range(config.n_estimators))
        self.members = members.float()  # type: ignore[assignment]

    @classmethod
    def on_meta(cls, config: NetConfig) -> "Ensemble":
        """An ensemble on the meta device, where it takes no memory."""
        with torch.device("meta"):
            return cls(config)

    def reset_parameters(self, generator: torch.Generator, scale: Tensor) -> None:
        """Draw new weights for the members, one after the other, and set the factors of their input channels."""
        for member in self.members:
            member.reset_parameters(generator)
            member.scale.copy_(scale)

    def parameter_groups(self, learning_rate: float) -> list[dict[str, Any]]:
        """The parameters of all members in groups, see `LabelNet.parameter_groups`."""
        return [group for member in self.members for group in member.parameter_groups(learning_rate)]

    @contextmanager
    def dropout_from(self, generator: torch.Generator) -> Iterator[None]:
        """Draw dropout from a generator on the device of the ensemble within this context."""
        layers = [module for module in self.modules() if isinstance(module, ChannelDropout)]
        try:
            for layer in layers:
                layer.generator = generator
            yield
        finally:
            for layer in layers:
                layer.generator = None

    @staticmethod
    def combine(outputs: Sequence[Tensor]) -> Tensor:
        """The outputs of the ensemble for those of its members: their mean."""
        return torch.stack(list(outputs)).mean(0)

    def forward(self, batch: OverNodes | tuple[OverNodes, ...], graphs: Sequence[Graph]) -> Tensor:
        """The outputs for the labels of a batch, see `LabelNet.forward`."""
        return self.combine([member(batch, graphs) for member in self.members])

    @torch.no_grad()
    def predict_logits(self, loader: Loader, graphs: Sequence[Graph], counts: NDArray[np.int64]) -> Tensor:
        """The outputs for the labels of all graphs of a loader, graph after graph.

        Args:
            loader: Batches of the graphs in any order.
            graphs: The graphs.
            counts: The number of labels of each graph.
        """
        parts: list[Tensor] = [torch.empty(0)] * len(graphs)
        for batch, _, indices in loader:
            chosen = indices.tolist()
            outputs = self(batch, [graphs[index] for index in chosen]).cpu()
            for index, part in zip(chosen, outputs.split(counts[chosen].tolist()), strict=True):
                parts[index] = part
        return torch.cat(parts)
