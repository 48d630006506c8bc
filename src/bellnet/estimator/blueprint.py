"""The network that the options of an estimator ask for, before there is one: how wide it is, and what it would cost."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from bellnet.estimator.cost import (
    Held,
    check_prediction,
    check_training,
    check_weights,
    fewest_weights,
    kept_bytes,
    largest_batch,
    prediction_bytes,
    training_bytes,
)
from bellnet.estimator.ensemble import Ensemble
from bellnet.estimator.nets import LabelNet


@dataclass(frozen=True, kw_only=True)
class Blueprint:
    """What `LabelNet` takes, and how many of them answer together."""

    target: str
    given: int | tuple[int, int]
    channels: Sequence[int]
    order: int
    hidden: Sequence[int]
    outputs: int
    pool: str | Sequence[str]
    jumping_knowledge: bool
    norm: str | None
    residual: bool
    dropout: float
    layout: str
    n_estimators: int

    @property
    def widths(self) -> list[int]:
        """The widths of all layers, that of the input first."""
        given = sum(self.given) if isinstance(self.given, tuple) else self.given
        return [given, *self.channels, *self.hidden, self.outputs]

    def net(self) -> LabelNet | Ensemble:
        """The network in single precision, without weights: on the meta device, where it takes no memory."""
        with torch.device("meta"):
            members = [self._member().float() for _ in range(self.n_estimators)]
        return members[0] if self.n_estimators == 1 else Ensemble(members)

    def _member(self) -> LabelNet:
        return LabelNet(
            self.target,
            self.given,
            self.channels,
            order=self.order,
            hidden=self.hidden,
            outputs=self.outputs,
            pool=self.pool,
            jumping_knowledge=self.jumping_knowledge,
            norm=self.norm,
            residual=self.residual,
            dropout=self.dropout,
            layout=self.layout,
        )

    def affordable_net(self, call: str, allowed: int) -> LabelNet | Ensemble:
        """The same, if its weights take no more bytes than allowed; those of too wide layers cannot be described."""
        check_weights(call, self.n_estimators * fewest_weights(self.widths), allowed, n_estimators=self.n_estimators)
        n_weights = sum(map(Tensor.numel, replace(self, n_estimators=1).net().parameters()))
        check_weights(call, self.n_estimators * n_weights, allowed, n_estimators=self.n_estimators)
        return self.net()

    def check_training(self, call: str, sizes: Sequence[int], *, batch_size: int, allowed: int) -> None:
        """Refuse to train on graphs of such sizes if that takes more bytes than allowed, before any of it is taken."""
        if self.layout != "padded":
            return
        batch = largest_batch(sizes, batch_size, self.order)
        maximum = self.order == 3 or (self.target == "graph" and "max" in self.pool)
        step = training_bytes(self._n_entries(batch), self._held_widths(), maximum=maximum, held=self._held(batch))
        needed = step + kept_bytes(sizes, *self._of_pairs_and_nodes(), torch.float32)
        check_training(call, batch, needed, allowed, order=self.order)

    def check_prediction(self, call: str, sizes: Sequence[int], *, batch_size: int, allowed: int) -> None:
        """The same for predictions."""
        if self.layout != "padded":
            return
        batch = largest_batch(sizes, batch_size, self.order)
        widths = [0, *[max(self.channels)] * 2] if self.order == 3 else self._held_widths()
        needed = prediction_bytes(self._n_entries(batch), widths, self._held(batch))
        check_prediction(call, batch, needed, allowed, order=self.order)

    def _of_pairs_and_nodes(self) -> tuple[int, int]:
        return self.given if isinstance(self.given, tuple) else (self.given, 0)

    def _held_widths(self) -> list[int]:
        """The channels of all that is held for every pair of nodes, or for every triple, the input first."""
        if self.order == 3:  # what is held for pairs is little beside
            return [0, *self.channels]
        of_pairs, _ = self._of_pairs_and_nodes()
        return [of_pairs, *(self.widths[1:] if self.target == "edge" else self.channels)]

    def _n_entries(self, batch: tuple[int, int]) -> int:
        n_graphs, n_nodes = batch
        return n_graphs * int(n_nodes**self.order)

    def _held(self, batch: tuple[int, int]) -> Held:
        if self.order == 3:  # triples are activated, and everything else is done to pairs
            return Held(dropout=0, norm=None, residual=False, jumping_knowledge=False, padded=batch[0] > 1)
        return Held(self.dropout, self.norm, self.residual, self.jumping_knowledge, padded=batch[0] > 1)
