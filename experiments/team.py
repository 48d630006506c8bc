"""One training on several processes: who takes part, which part of a batch is whose, and what they tell each other.

Processes are told of each other as torchrun tells them: rank and number are in the environment. The first of them
leads: it has the records, the checkpoints and the display. The others follow, and know nothing but the cells that it
names.
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
class Team:
    """The processes that train one network together, as one of them sees them.

    Attributes:
        rank: Which one this is; the first, 0, leads.
        size: How many there are.
        here: How many there are on this machine.
    """

    rank: int = 0
    size: int = 1
    here: int = 1

    @property
    def leads(self) -> bool:
        """Whether this is the process that has the records; so it is where it is the only one."""
        return self.rank == 0

    @property
    def on_gpus(self) -> bool:
        """Whether each process has a GPU of its own. One process alone never uses any."""
        return self.size > 1 and torch.cuda.device_count() >= self.here

    def share(self, batch: Sequence[T]) -> list[T]:
        """What this process takes of a batch: everything goes to exactly one of them."""
        return list(batch[self.rank :: self.size])

    def tell(self, value: Any = None) -> Any:
        """What the first process says; the others say nothing and listen."""
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
        """How Lightning has to be told of this."""
        if self.size == 1:
            return {"accelerator": "cpu", "devices": 1}
        from lightning.fabric.plugins.environments.torchelastic import TorchElasticEnvironment
        from lightning.pytorch.strategies import DDPStrategy

        return {
            "accelerator": "gpu" if self.on_gpus else "cpu",
            "devices": self.here,
            "num_nodes": self.size // self.here,
            "strategy": DDPStrategy(cluster_environment=TorchElasticEnvironment()),
            "use_distributed_sampler": False,  # every batch is dealt by `share`
        }


def this_team() -> Team:
    """The processes that this one trains with, as the environment says."""
    if MARK not in os.environ:
        return Team()
    rank, size, here = (int(os.environ[name]) for name in ("RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE"))
    return Team(rank, size, here)


def is_first() -> bool:
    """Whether this process is the only one, or the first of those that torchrun has started: the one that records."""
    return this_team().leads


def membership(rank: int, size: int) -> dict[str, str]:
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
def joined(store: Path | None = None) -> Iterator[Team]:
    """The team of this process, its members connected for as long as the context lasts."""
    team = this_team()
    if team.size == 1:
        yield team
        return
    if team.on_gpus:
        torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    # If it were imported later, by DDP, its functions would hold the group for good, as what they take by default. Then
    # threads of gloo outlive the group, and one that is late kills a process that is about to end.
    import_module("torch.distributed.nn.functional")
    torch.distributed.init_process_group(
        "cpu:gloo,cuda:nccl" if team.on_gpus else "gloo",
        init_method="env://" if store is None else store.as_uri(),
        rank=team.rank,
        world_size=team.size,
        timeout=DAY,  # whoever follows waits while the first tests, and for the next cell
    )
    try:
        yield team
    finally:
        torch.distributed.destroy_process_group()
