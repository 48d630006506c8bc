"""Networks learn in how many small patterns every node of a graph takes part.

With products of matrices, networks of order two can count cycles of up to six nodes and more; with linear layers alone
they cannot even count triangles. What is measured is the mean distance of the answer from the true number, over the
standard deviation of the true numbers, on graphs that were not trained on.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

import torch
from torch import Tensor, nn

from bellnet import PPGN, EquivariantLinear, EquivariantNet, Padded, Pointwise, data
from bellnet.errors import OptionError
from experiments.data.patterns import PATTERNS, count_pattern
from experiments.machine import circumstances
from experiments.records import FINISHED, Records
from experiments.tables import Table

NETWORKS = ("order 2", "products")
"""The kinds of networks: linear layers of order two, and those with products."""

PUBLISHED: Mapping[str, float] = MappingProxyType(
    {"3-cycle": 0.0003, "4-cycle": 0.0009, "5-cycle": 0.0036, "6-cycle": 0.0071}
)
"""What is published for PPGN, on other random graphs and after longer training."""


@dataclass(frozen=True)
class Counting:
    """How a network is trained to count.

    Attributes:
        graphs: The number of graphs that are trained on; there are a quarter as many to test.
        nodes: The least and the largest number of nodes.
        degree: How many neighbours a node has on average.
        channels: The width of the network.
        blocks: Blocks with a product, or layers without.
        epochs: How often all graphs are seen.
        batch_size: Graphs in a step.
        rate: The highest learning rate; it rises to that and falls again.
        seed: Where graphs and weights come from.
    """

    graphs: int = 1500
    nodes: tuple[int, int] = (12, 20)
    degree: float = 4
    channels: int = 24
    blocks: int = 3
    epochs: int = 60
    batch_size: int = 16
    rate: float = 0.005
    seed: int = 0

    def key(self, network: str, pattern: str) -> str:
        """What names a training in the records."""
        settings = "-".join(str(value).replace(" ", "") for value in asdict(self).values())
        return f"counting-{pattern}-{network}-{settings}".replace(" ", "-")


QUICK = replace(Counting(), graphs=200, epochs=3)
"""Too little to learn much; to see that it runs."""


def counting_net(network: str, plan: Counting) -> nn.Module:
    """A network from (*batch, n, n, 1) to (*batch, n, 1)."""
    width = plan.channels
    if network == "order 2":
        return EquivariantNet("n n -> n", [1, *[width] * (plan.blocks + 1), 1], activation="silu")
    body = PPGN("n n", [1, *[width] * plan.blocks], 1, activation="silu", norm=None)
    return nn.Sequential(
        body.first,
        *body.blocks,
        EquivariantLinear("n n -> n", width, 2 * width),
        Pointwise(nn.SiLU()),
        Pointwise(nn.Linear(2 * width, 1)),
    )


def run_counting(
    out: Path,
    plan: Counting,
    *,
    patterns: Sequence[str] = tuple(PATTERNS),
    networks: Sequence[str] = NETWORKS,
    tell: Callable[[str], None] | None = None,
) -> list[dict[str, Any]]:
    """Train every network on every pattern, and write a record for each; those that are there are not trained again.

    Returns:
        The records of these patterns and networks.
    """
    for name, values, known in (("patterns", patterns, tuple(PATTERNS)), ("networks", networks, NETWORKS)):
        for value in values:
            if value not in known:
                raise OptionError(f"run_counting: {name} must be among {', '.join(known)}; one is {value!r}.")
    records = Records(out)
    records.repair()
    asked = [(pattern, network) for pattern in patterns for network in networks]
    for pattern, network in asked:
        if plan.key(network, pattern) not in records.finished():
            records.append(_train(network, pattern, plan, tell or (lambda line: None)))
    return [records.finished()[plan.key(network, pattern)] for pattern, network in asked]


def counting_table(records: Sequence[Mapping[str, Any]]) -> Table:
    """The records as a table: a line for each pattern."""
    found = {(record["pattern"], record["network"]): record for record in records}
    patterns = [pattern for pattern in PATTERNS if any(pattern == key[0] for key in found)]
    return Table(
        "Counting patterns: mean error over the standard deviation",
        ("pattern", *NETWORKS, "PPGN, published", "seconds"),
        tuple(
            (
                pattern,
                *(f"{found[pattern, name]['error']:.4f}" if (pattern, name) in found else "-" for name in NETWORKS),
                f"{PUBLISHED[pattern]:.4f}" if pattern in PUBLISHED else "-",
                f"{found[pattern, NETWORKS[1]]['seconds']:.0f}" if (pattern, NETWORKS[1]) in found else "-",
            )
            for pattern in patterns
        ),
        (
            "For every node: in how many copies of the pattern it takes part. On graphs that were not trained on.",
            "Seconds of one processor to train the network with products. What is published is of other random "
            "graphs, after longer training.",
        ),
    )


@dataclass(frozen=True)
class _Counted:
    """Graphs as padded matrices, how many nodes each has, and the numbers of their nodes."""

    matrices: Tensor
    sizes: Tensor
    counts: Tensor

    def __len__(self) -> int:
        return len(self.sizes)

    def take(self, places: Tensor) -> "_Counted":
        return _Counted(self.matrices[places], self.sizes[places], self.counts[places])

    def at_nodes(self, values: Tensor) -> Tensor:
        """The values at nodes that are no padding."""
        return values[torch.arange(values.shape[1]) < self.sizes[:, None]]


def _train(network: str, pattern: str, plan: Counting, tell: Callable[[str], None]) -> dict[str, Any]:
    before = time.process_time()
    torch.manual_seed(plan.seed)
    train = _counted(plan, plan.graphs, pattern, plan.seed)
    test = _counted(plan, plan.graphs // 4, pattern, plan.seed + 1)
    known = train.at_nodes(train.counts)
    mean, deviation = known.mean(), known.std()
    net = counting_net(network, plan)
    optimizer = torch.optim.Adam(net.parameters())
    n_steps = plan.epochs * -(-len(train) // plan.batch_size)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, plan.rate, n_steps)

    def error(some: _Counted) -> Tensor:
        """In standard deviations, since that is what the network is asked for."""
        answers: Padded = net(Padded(some.matrices, some.sizes))
        return some.at_nodes((answers.values[..., 0] - (some.counts - mean) / deviation).abs()).mean()

    for epoch in range(plan.epochs):
        order = torch.randperm(len(train))
        for start in range(0, len(train), plan.batch_size):
            optimizer.zero_grad()
            torch.autograd.backward(error(train.take(order[start : start + plan.batch_size])))
            nn.utils.clip_grad_norm_(net.parameters(), 1.0)
            optimizer.step()
            schedule.step()
        if epoch % 5 == 4 or epoch == plan.epochs - 1:
            with torch.no_grad():
                left = float(error(test))
            tell(f"{pattern}, {network}: error {left:.4f} after {epoch + 1} of {plan.epochs} epochs")
    return {
        "kind": FINISHED,
        "key": plan.key(network, pattern),
        "pattern": pattern,
        "network": network,
        **asdict(plan),
        "error": left,
        "seconds": round(time.process_time() - before, 1),
        **circumstances(),
    }


def _counted(plan: Counting, count: int, pattern: str, seed: int) -> _Counted:
    drawn = data.generated.random_graphs(count, nodes=plan.nodes, degree=plan.degree, seed=seed)
    sizes = torch.tensor([graph.n for graph in drawn])
    matrices = torch.zeros(count, plan.nodes[1], plan.nodes[1], 1)
    for matrix, graph in zip(matrices, drawn, strict=True):
        matrix[: graph.n, : graph.n, 0] = data.to_dense(graph)
    return _Counted(matrices, sizes, count_pattern(matrices[..., 0], pattern).float())
