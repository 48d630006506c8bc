"""Networks that learn to name the skip of circular skip link graphs: ten classes, fifteen renumbered copies of each.

Up to renumbering there are ten graphs, and what tells them apart is faint: of all pairs of nodes few have a common
neighbour more or less, and pools take means over all pairs. Three things bring it out. Entries are normalised graph by
graph, so that training and testing do the same. Pooled values are normalised over the batch, with so small a constant
beside the variance that differences of 10^-4 survive. And the layers over triples begin at the product of matrices: up
from pairs to (i, k) and (k, j), down to the mean over k; other maps begin at zero and are learned, slowly.
"""

from collections.abc import Callable
from dataclasses import dataclass
from time import perf_counter

import torch
from torch import Tensor, nn

from bellnet import PPGN, EntryNorm, EquivariantLinear, InvariantNet, InvariantPool, data
from experiments.expressive.networks import matrices

CLASSES, COPIES, SPLITS = 10, 15, 10
CHANNELS, HIDDEN = 8, 32
STEPS = 100
RATE, RATE_OF_HEAD = 2e-4, 2e-2
POOL = ("mean", "max")
TINY = 1e-10
"""Added to the variance of pooled values, in place of 1e-5, which is more than what tells classes apart."""


@dataclass(frozen=True)
class Learned:
    """The accuracy of a network on each test set, and how long learning took altogether."""

    name: str
    accuracies: tuple[float, ...]
    seconds: float

    @property
    def mean(self) -> float:
        """The mean accuracy."""
        return sum(self.accuracies) / len(self.accuracies)


class Classifier(nn.Module):
    """A network from graphs to pooled values, which are normalised and classified."""

    def __init__(self, body: nn.Module, pooled: int) -> None:
        super().__init__()
        self.body = body
        self.norm = nn.BatchNorm1d(pooled, eps=TINY, momentum=None)  # the mean over all batches since it was reset
        self.head = nn.Sequential(nn.Linear(pooled, HIDDEN), nn.ReLU(), nn.Linear(HIDDEN, CLASSES))

    def forward(self, x: Tensor) -> Tensor:
        """From (graphs, n, n, 2) to (graphs, classes)."""
        scores: Tensor = self.head(self.norm(self.body(x)))
        return scores


class OverTriples(nn.Module):
    """Blocks that lead from pairs of nodes to triples and back; every block is pooled."""

    def __init__(self, blocks: int) -> None:
        super().__init__()
        self.first = EntryNorm(2, "n n", over="graph")
        widths = [2, *[CHANNELS] * blocks]
        self.blocks = nn.ModuleList(_TripleBlock(before) for before in widths[:-1])
        self.pool = InvariantPool("n n", POOL)

    def forward(self, x: Tensor) -> Tensor:
        """From (graphs, n, n, 2) to what is pooled of every block."""
        x, pooled = self.first(x), []
        for block in self.blocks:
            x = block(x)
            pooled.append(self.pool(x))
        return torch.cat(pooled, -1)


class _TripleBlock(nn.Module):
    def __init__(self, before: int) -> None:
        super().__init__()
        self.up = EquivariantLinear("n n -> n n n", before, CHANNELS)
        self.down = EquivariantLinear("n n n -> n n", CHANNELS, CHANNELS)
        self.across = EquivariantLinear("n n -> n n", before, CHANNELS)
        self.norm = EntryNorm(CHANNELS, "n n", over="graph")
        _begin_with(self.up, "ab->acb", "ab->cba")
        _begin_with(self.down, "abc->ab")
        assert self.up.bias is not None
        nn.init.normal_(self.up.bias, std=0.5)

    def forward(self, x: Tensor) -> Tensor:
        found: Tensor = self.across(x) + self.norm(self.down(torch.relu(self.up(x))))
        return found


def _begin_with(layer: EquivariantLinear, *names: str) -> None:
    """Let some maps have all of the weight, so that the second moment stays."""
    nn.init.zeros_(layer.weight)
    for place, diagram in enumerate(layer.plan.diagrams):
        if diagram.name in names:
            nn.init.normal_(layer.weight[place], std=(2 / layer.weight.shape[1] / len(names)) ** 0.5)


def _order_2() -> Classifier:
    widths = [2, *[CHANNELS] * 3]
    net = InvariantNet("n n", widths, 1, norm="graph", reduce=POOL, jumping_knowledge=True)
    return _classifier(net)


def _with_products() -> Classifier:
    return _classifier(PPGN("n n", [2, *[2 * CHANNELS] * 3], 1, norm="graph", reduce=POOL))


def _order_3() -> Classifier:
    return Classifier(OverTriples(3), 3 * 2 * len(POOL) * CHANNELS)


def _classifier(net: InvariantNet | PPGN) -> Classifier:
    """What a network pools, with a head that classifies it in place of its own."""
    last = net.head[-1]
    assert isinstance(last, nn.Linear)
    net.head = nn.Sequential()
    return Classifier(net, last.in_features)


NETWORKS: dict[str, Callable[[], Classifier]] = {
    "order 2": _order_2,
    "order 2 with products": _with_products,
    "order 3": _order_3,
}


def learn(name: str, *, splits: int = SPLITS, steps: int = STEPS, seed: int = 0) -> Learned:
    """Train a network on nine tenths of the graphs and test it on the rest, for each tenth in turn."""
    start = perf_counter()
    graphs, labels = data.generated.skip_links(CLASSES * COPIES, seed=seed)
    inputs = torch.stack([matrices(graph) for graph in graphs]).float()
    inputs = inputs.reshape(COPIES, CLASSES, *inputs.shape[1:])  # classes take turns
    wanted = labels[:CLASSES]
    accuracies = []
    for split in range(splits):
        tested = torch.arange(COPIES) % SPLITS == split
        with torch.random.fork_rng([]):
            torch.default_generator.manual_seed(seed + split)
            net = NETWORKS[name]()
        _train(net, inputs[~tested], wanted, steps)
        with torch.no_grad():
            right = [net(copy).argmax(-1) == wanted for copy in inputs[tested]]
        accuracies.append(float(torch.cat(right).double().mean()))
    return Learned(name, tuple(accuracies), perf_counter() - start)


def _train(net: Classifier, inputs: Tensor, wanted: Tensor, steps: int) -> None:
    readout = [*net.norm.parameters(), *net.head.parameters()]
    groups = [{"params": net.body.parameters(), "lr": RATE}, {"params": readout, "lr": RATE_OF_HEAD}]
    optimizer = torch.optim.Adam(groups)
    pace = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, steps)
    net.train()
    for step in range(steps):
        loss = nn.functional.cross_entropy(net(inputs[step % len(inputs)]), wanted)
        optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        optimizer.step()
        pace.step()
    net.norm.reset_running_stats()  # of weights that still changed; those at rest have others
    with torch.no_grad():
        for copy in inputs:
            net(copy)
    net.eval()
