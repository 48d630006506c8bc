"""Networks that classify circular skip links: ten classes, fifteen permuted copies of each graph.

Differences between classes are small: few of all pairs of nodes have a common neighbour more or less, and pools are
means over all pairs. Three things help: entries are normalised by graph, in training and evaluation; pooled values are
normalised over the batch, with so small an eps that differences of 10^-4 survive; and layers over triples start at the
matrix product, from pairs to (i, k) and (k, j), then to the mean over k, with all other maps at zero.
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
LEARNING_RATE, LEARNING_RATE_OF_HEAD = 2e-4, 2e-2
POOL = ("mean", "max")


@dataclass(frozen=True)
class Learned:
    """The accuracy of a network on each test set, and the time of all trainings."""

    name: str
    accuracies: tuple[float, ...]
    seconds: float

    @property
    def mean(self) -> float:
        """The mean accuracy."""
        return sum(self.accuracies) / len(self.accuracies)


class SkipLinkClassifier(nn.Module):
    """A network from graphs (graphs, n, n, 2) to pooled values, which are normalised and classified."""

    def __init__(self, body: nn.Module, pooled: int) -> None:
        super().__init__()
        self.body = body
        # The variance of pooled values is less than the default eps. Without momentum, statistics are those of all
        # batches since their reset.
        self.norm = nn.BatchNorm1d(pooled, eps=1e-10, momentum=None)
        self.head = nn.Sequential(nn.Linear(pooled, HIDDEN), nn.ReLU(), nn.Linear(HIDDEN, CLASSES))

    def forward(self, x: Tensor) -> Tensor:
        scores: Tensor = self.head(self.norm(self.body(x)))
        return scores


class TripleNet(nn.Module):
    """Blocks from pairs of nodes to triples and back; every block is pooled."""

    def __init__(self, blocks: int) -> None:
        super().__init__()
        self.first = EntryNorm(2, "n n", over="graph")
        self.blocks = nn.ModuleList(TripleBlock(before) for before in [2, *[CHANNELS] * (blocks - 1)])
        self.pool = InvariantPool("n n", POOL)

    def forward(self, x: Tensor) -> Tensor:
        x, pooled = self.first(x), []
        for block in self.blocks:
            x = block(x)
            pooled.append(self.pool(x))
        return torch.cat(pooled, -1)


class TripleBlock(nn.Module):
    """Layers from pairs to triples and back, initially a matrix product."""

    def __init__(self, before: int) -> None:
        super().__init__()
        self.up = EquivariantLinear("n n -> n n n", before, CHANNELS)
        self.down = EquivariantLinear("n n n -> n n", CHANNELS, CHANNELS)
        self.across = EquivariantLinear("n n -> n n", before, CHANNELS)
        self.norm = EntryNorm(CHANNELS, "n n", over="graph")
        _start_with(self.up, "ab->acb", "ab->cba")
        _start_with(self.down, "abc->ab")
        assert self.up.bias is not None
        nn.init.normal_(self.up.bias, std=0.5)

    def forward(self, x: Tensor) -> Tensor:
        found: Tensor = self.across(x) + self.norm(self.down(torch.relu(self.up(x))))
        return found


def _start_with(layer: EquivariantLinear, *names: str) -> None:
    """Set the weights of all other maps to zero, and keep the second moment."""
    nn.init.zeros_(layer.weight)
    for index, diagram in enumerate(layer.plan.diagrams):
        if diagram.name in names:
            nn.init.normal_(layer.weight[index], std=(2 / layer.weight.shape[1] / len(names)) ** 0.5)


def _order_2() -> SkipLinkClassifier:
    widths = [2, *[CHANNELS] * 3]
    return _without_head(InvariantNet("n n", widths, 1, norm="graph", reduce=POOL, jumping_knowledge=True))


def _with_products() -> SkipLinkClassifier:
    return _without_head(PPGN("n n", [2, *[2 * CHANNELS] * 3], 1, norm="graph", reduce=POOL))


def _without_head(net: InvariantNet | PPGN) -> SkipLinkClassifier:
    last = net.head[-1]
    assert isinstance(last, nn.Linear)
    net.head = nn.Sequential()
    return SkipLinkClassifier(net, last.in_features)


NETWORKS: dict[str, Callable[[], SkipLinkClassifier]] = {
    "order 2": _order_2,
    "order 2 with products": _with_products,
    "order 3": lambda: SkipLinkClassifier(TripleNet(3), 3 * 2 * len(POOL) * CHANNELS),
}


def cross_validate(name: str, *, splits: int = SPLITS, steps: int = STEPS, seed: int = 0) -> Learned:
    """Train a network on nine tenths of the graphs and test it on the rest, for each tenth in turn."""
    start = perf_counter()
    graphs, labels = data.generated.skip_links(CLASSES * COPIES, seed=seed)  # of the classes in turn
    inputs = torch.stack([matrices(graph) for graph in graphs]).float()
    inputs = inputs.reshape(COPIES, CLASSES, *inputs.shape[1:])
    accuracies = []
    for split in range(splits):
        test = torch.arange(COPIES) % SPLITS == split
        with torch.random.fork_rng([]):
            torch.default_generator.manual_seed(seed + split)
            net = NETWORKS[name]()
        train(net, inputs[~test], labels[:CLASSES], steps)
        with torch.no_grad():
            correct = [net(copy).argmax(-1) == labels[:CLASSES] for copy in inputs[test]]
        accuracies.append(float(torch.cat(correct).double().mean()))
    return Learned(name, tuple(accuracies), perf_counter() - start)


def train(net: SkipLinkClassifier, inputs: Tensor, labels: Tensor, steps: int) -> None:
    """Train on batches in turn, each with one graph of every class, and compute the statistics again at the end."""
    readout = [*net.norm.parameters(), *net.head.parameters()]
    groups = [{"params": net.body.parameters(), "lr": LEARNING_RATE}, {"params": readout, "lr": LEARNING_RATE_OF_HEAD}]
    optimizer = torch.optim.Adam(groups)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, steps)
    net.train()
    for step in range(steps):
        loss = nn.functional.cross_entropy(net(inputs[step % len(inputs)]), labels)
        optimizer.zero_grad()
        torch.autograd.backward(loss)
        optimizer.step()
        schedule.step()
    net.norm.reset_running_stats()
    with torch.no_grad():
        for copy in inputs:
            net(copy)
    net.eval()
