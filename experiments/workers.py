"""Workers: the processes that train one network together by torch.distributed, as torchrun starts them.

Rank and world size are in the environment. The worker of rank 0 leads: it has the records, the checkpoints and the
display. The others train the cells that it broadcasts.
"""

import os
import socket
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from importlib import import_module
from pathlib import Path
from typing import Any, TypeVar

import torch

T = TypeVar("T")
MARK = "TORCHELASTIC_RUN_ID"
DAY = timedelta(days=1)


@dataclass(frozen=True)
class Worker:
    """One of the processes that train a network together.

    Attributes:
        rank: Which one this is; the first, 0, leads.
        size: How many there are.
        local_size: How many there are on this machine.
    """

    rank: int = 0
    size: int = 1
    local_size: int = 1

    @property
    def is_leader(self) -> bool:
        """Whether this is the process that has the records; so it is where it is the only one."""
        return self.rank == 0

    @property
    def on_gpus(self) -> bool:
        """Whether each process has a GPU of its own. One process alone never uses any."""
        return self.size > 1 and torch.cuda.device_count() >= self.local_size

    def share(self, batch: Sequence[T]) -> list[T]:
        """The share of a batch that this worker takes: everything goes to exactly one of them."""
        return list(batch[self.rank :: self.size])

    def broadcast(self, value: Any = None) -> Any:
        """The value of the first worker, which the others receive."""
        if self.size == 1:
            return value
        said = [value]
        torch.distributed.broadcast_object_list(said, src=0)
        return said[0]

    def total(self, number: int) -> int:
        """The sum of a number over all processes."""
        if self.size == 1:
            return number
        numbers = torch.tensor(number, device="cuda" if self.on_gpus else "cpu")
        torch.distributed.all_reduce(numbers)
        return int(numbers)

    def trainer_options(self) -> dict[str, Any]:
        """The arguments of Lightning's Trainer."""
        if self.size == 1:
            return {"accelerator": "cpu", "devices": 1}
        from lightning.fabric.plugins.environments.torchelastic import TorchElasticEnvironment
        from lightning.pytorch.strategies import DDPStrategy

        return {
            "accelerator": "gpu" if self.on_gpus else "cpu",
            "devices": self.local_size,
            "num_nodes": self.size // self.local_size,
            "strategy": DDPStrategy(cluster_environment=TorchElasticEnvironment()),
            "use_distributed_sampler": False,  # every batch is dealt by `share`
        }


def this_worker() -> Worker:
    """This process as a worker, from the environment variables of torchrun."""
    if MARK not in os.environ:
        return Worker()
    rank, size, local_size = (int(os.environ[name]) for name in ("RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE"))
    return Worker(rank, size, local_size)


def is_leading_process() -> bool:
    """Whether this process is the only one, or the first of those that torchrun has started: the one that records."""
    return this_worker().is_leader


def worker_environment(rank: int, size: int) -> dict[str, str]:
    """The environment of one of so many processes on this machine, which speak over the loopback interface."""
    loopback = [name for _, name in socket.if_nameindex() if name in ("lo", "lo0")]
    return {
        MARK: "bellnet",
        "RANK": str(rank),
        "LOCAL_RANK": str(rank),
        "GROUP_RANK": "0",
        "WORLD_SIZE": str(size),
        "LOCAL_WORLD_SIZE": str(size),
        **({"GLOO_SOCKET_IFNAME": loopback[0]} if loopback else {}),
    }


@contextmanager
def process_group(store: Path | None = None) -> Iterator[Worker]:
    """This worker, connected with the others for as long as the context lasts."""
    worker = this_worker()
    if worker.size == 1:
        yield worker
        return
    if worker.on_gpus:
        torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    # If it were imported later, by DDP, its functions would hold the group for good, as what they take by default. Then
    # threads of gloo outlive the group, and one that is late kills a process that is about to end.
    import_module("torch.distributed.nn.functional")
    torch.distributed.init_process_group(
        "cpu:gloo,cuda:nccl" if worker.on_gpus else "gloo",
        init_method="env://" if store is None else store.as_uri(),
        rank=worker.rank,
        world_size=worker.size,
        timeout=DAY,  # whoever follows waits while the first tests, and for the next cell
    )
    try:
        yield worker
    finally:
        torch.distributed.destroy_process_group()
