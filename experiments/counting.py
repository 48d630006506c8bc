"""Networks predict the number of occurrences of small patterns that contain each node.

With matrix products, networks of order 2 can count cycles of up to six nodes and more; linear layers alone cannot even
count triangles. The error is the mean absolute error on test graphs divided by the standard deviation of the numbers.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from bellnet import PPGN, EquivariantLinear, EquivariantNet, Padded, Pointwise, data
from experiments.data.patterns import PATTERNS, count_pattern
from experiments.machine import circumstances
from experiments.page import Table
from experiments.records import Records

NETWORKS = ("order 2", "products")
PUBLISHED = {"3-cycle": 0.0003, "4-cycle": 0.0009, "5-cycle": 0.0036, "6-cycle": 0.0071}
"""The published errors of PPGN, on other random graphs and after longer training."""


@dataclass(frozen=True)
class Counting:
    """The options of a training.

    Attributes:
        graphs: The number of graphs for training; a quarter as many are for testing.
        nodes: The minimum and maximum number of nodes.
        degree: The mean number of neighbours.
        channels: The width of the network.
        blocks: The number of blocks with a product, or of layers without.
        epochs: The number of epochs.
        batch_size: The number of graphs in a batch.
        learning_rate: The maximum of the one-cycle schedule.
        seed: The seed of graphs and weights.
    """

    graphs: int = 1500
    nodes: tuple[int, int] = (12, 20)
    degree: float = 4
    channels: int = 24
    blocks: int = 3
    epochs: int = 60
    batch_size: int = 16
    learning_rate: float = 0.005
    seed: int = 0

    def key(self, network: str, pattern: str) -> str:
        """The key of a training in the records."""
        options = "-".join(str(value).replace(" ", "") for value in asdict(self).values())
        return f"counting-{pattern}-{network}-{options}".replace(" ", "-")


QUICK = Counting(graphs=200, epochs=3)


def counting_net(network: str, plan: Counting) -> nn.Module:
    """A network from (*batch, n, n, 1) to (*batch, n, 1)."""
    width = plan.channels
    if network == "order 2":
        return EquivariantNet("n n -> n", [1, *[width] * (plan.blocks + 1), 1], activation="silu")
    body = PPGN("n n", [1, *[width] * plan.blocks], 1, activation="silu", norm=None)
    readout = EquivariantLinear("n n -> n", width, 2 * width), Pointwise(nn.SiLU()), Pointwise(nn.Linear(2 * width, 1))
    return nn.Sequential(body.first, *body.blocks, *readout)


def run_counting(
    out: Path,
    plan: Counting,
    *,
    patterns: Sequence[str] = tuple(PATTERNS),
    progress: Callable[[str], None] = lambda line: None,
) -> list[dict[str, Any]]:
    """Train both networks on every pattern for which there is no record yet; the records."""
    records = Records(out)
    keys = {plan.key(network, pattern): (network, pattern) for pattern in patterns for network in NETWORKS}
    for key, (network, pattern) in keys.items():
        if key not in records.read():
            found = {"network": network, "pattern": pattern, **asdict(plan), **_train(network, pattern, plan, progress)}
            records.add({"key": key, **found, **circumstances()})
    finished = records.read()
    return [finished[key] for key in keys]


def counting_table(records: Sequence[Mapping[str, Any]]) -> Table:
    """The records as a table with a row for each pattern."""
    found = {(record["pattern"], record["network"]): record for record in records}

    def row(pattern: str) -> tuple[str, ...]:
        errors = [found.get((pattern, network), {}).get("error") for network in NETWORKS]
        figures = [f"{error:.4f}" if error is not None else "-" for error in (*errors, PUBLISHED.get(pattern))]
        seconds = found.get((pattern, "products"), {}).get("seconds")
        return pattern, *figures, "-" if seconds is None else f"{seconds:.0f}"

    return Table(
        "Counting patterns: mean error over the standard deviation",
        ("pattern", *NETWORKS, "PPGN, published", "seconds"),
        tuple(row(pattern) for pattern in PATTERNS if any(pattern == known for known, _ in found)),
        (
            "The number of copies of the pattern that contain each node, on test graphs.",
            "Seconds are those of the network with products, on one core. The published errors are on other random "
            "graphs, after longer training.",
        ),
    )


def _train(network: str, pattern: str, plan: Counting, progress: Callable[[str], None]) -> dict[str, float]:
    start = time.process_time()
    torch.manual_seed(plan.seed)
    graphs, counts = _draw(plan, plan.graphs, pattern, plan.seed)
    test = _draw(plan, plan.graphs // 4, pattern, plan.seed + 1)
    known = counts[graphs.mask("n n").diagonal(dim1=1, dim2=2)]
    mean, deviation = known.mean(), known.std()
    net = counting_net(network, plan)
    optimizer = torch.optim.Adam(net.parameters())
    n_steps = plan.epochs * -(-plan.graphs // plan.batch_size)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, plan.learning_rate, n_steps)

    def error(graphs: Padded, counts: Tensor) -> Tensor:
        """In standard deviations, as are the outputs of the network."""
        outputs: Padded = net(graphs)
        return (outputs.values[..., 0] - (counts - mean) / deviation)[outputs.mask("n")].abs().mean()

    for epoch in range(1, plan.epochs + 1):
        for batch in torch.randperm(plan.graphs).split(plan.batch_size):  # type: ignore[no-untyped-call]
            optimizer.zero_grad()
            torch.autograd.backward(error(graphs[batch], counts[batch]))
            nn.utils.clip_grad_norm_(net.parameters(), 1.0)
            optimizer.step()
            schedule.step()
        if epoch % 5 == 0 or epoch == plan.epochs:
            with torch.no_grad():
                test_error = float(error(*test))
            progress(f"{pattern}, {network}: error {test_error:.4f} after {epoch} of {plan.epochs} epochs")
    return {"error": test_error, "seconds": round(time.process_time() - start, 1)}


def _draw(plan: Counting, count: int, pattern: str, seed: int) -> tuple[Padded, Tensor]:
    """Random graphs, and the targets (graphs, n)."""
    drawn = data.generated.random_graphs(count, nodes=plan.nodes, degree=plan.degree, seed=seed)
    graphs = Padded.pack([data.to_dense(graph).unsqueeze(-1) for graph in drawn])
    return graphs, count_pattern(graphs.values[..., 0], pattern).float()
