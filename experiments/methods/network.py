"""Message passing networks on PyTorch Geometric: one loop for all, the epoch chosen by graphs kept aside."""

import time
from abc import abstractmethod
from collections.abc import Iterable, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from experiments.cell import Record
from experiments.methods.base import Method, Options, Task
from experiments.methods.examples import Together, examples_of


class Network(Method):
    """A network that is trained by Adam on the cross-entropy.

    The epoch counts that classifies most of the graphs kept aside; of several, that of the least loss on them.
    """

    packages: tuple[str, ...] = ("torch_geometric",)
    epochs_option = "epochs"
    rate_option = "rate"

    @abstractmethod
    def make(self, task: Task, channels: int, options: Options) -> nn.Module:
        """The network, from graphs that are `Together` to a row of numbers for each."""

    def loss(self, net: nn.Module, batch: Together) -> Tensor:
        """The mean loss of a batch."""
        return cross_entropy(net(batch), batch.y)

    def run(self, task: Task, options: Options, record: Record) -> dict[str, Any]:
        """Train; after every epoch measure what is kept aside, and the test graphs, which have no say in anything."""
        began = time.process_time()
        examples = examples_of(task.graphs)
        validating, testing = (examples.in_turn(places) for places in (task.parts.validation, task.parts.test))
        best: dict[str, Any] = {}
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(task.seed)
            net = self.make(task, examples.x[0].shape[1], options)
            optimizer = torch.optim.Adam(net.parameters(), lr=options["rate"], weight_decay=options["weight_decay"])
            for epoch in range(options["epochs"]):
                start = time.process_time()
                for group in optimizer.param_groups:
                    group["lr"] = options["rate"] * 0.5 ** (epoch // options["halve_every"])
                order = torch.Generator().manual_seed(task.seed * 1_000_003 + epoch)
                loss = self._learn(net, optimizer, examples.dealt(task.parts.train, options["batch"], order))
                validation, validation_loss = _measure(net, validating)
                test, _ = _measure(net, testing)
                found = {
                    "epoch": epoch,
                    "loss": loss,
                    "validation": validation,
                    "validation_loss": validation_loss,
                    "test": test,
                    "seconds": round(time.process_time() - start, 3),
                }
                record(found)
                if not best or (validation, -validation_loss) > (best["validation"], -best["validation_loss"]):
                    best = found
        return {
            "accuracy": best["test"],
            "validation": best["validation"],
            "best_epoch": best["epoch"],
            "parameters": sum(weight.numel() for weight in net.parameters()),
            "seconds": round(time.process_time() - began, 3),
        }

    def _learn(self, net: nn.Module, optimizer: torch.optim.Optimizer, batches: Iterable[Together]) -> float:
        """One epoch; its mean loss."""
        net.train()
        total, count = 0.0, 0
        for batch in batches:
            optimizer.zero_grad(set_to_none=True)
            loss = self.loss(net, batch)
            loss.backward()  # type: ignore[no-untyped-call]
            optimizer.step()
            total, count = total + float(loss.detach()) * len(batch.y), count + len(batch.y)
        return total / count


@torch.no_grad()
def _measure(net: nn.Module, batches: Sequence[Together]) -> tuple[float, float]:
    """Accuracy and mean loss."""
    net.eval()
    hits, total, count = 0, 0.0, 0
    for batch in batches:
        said = net(batch)
        hits += int((said.argmax(1) == batch.y).sum())
        total += float(cross_entropy(said, batch.y, reduction="sum"))
        count += len(batch.y)
    return hits / count, total / count
