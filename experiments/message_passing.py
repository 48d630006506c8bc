"""The paper's theorem on message passing: a small GIN is trained, converted, and compared with its conversion.

The graphs are like small molecules: trees with some rings, nodes of four kinds, and bonds of one, two or three edges.
The target is the mean number of edges beyond four of a node. Bonds of several edges make the adjacency take values
between zero and its maximum, where the product network is not exact.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Any

import torch
from torch import nn

from bellnet import Padded, plan
from bellnet.nn.message_passing import CompactSet, MessagePassingNet, ReluProduct, from_message_passing
from experiments.machine import require
from experiments.plots import MethodPanels

if TYPE_CHECKING:
    from matplotlib.figure import Figure

KINDS, MAX_BOND, MAX_EDGES, WIDTH = 4, 3, 4, 8
DEPTHS = tuple(range(2, 13))
ROUNDING = 1e-10


@dataclass(frozen=True)
class ErrorCurve:
    """The largest measured error at each of `DEPTHS`, and the bound on it."""

    title: str
    note: str
    measured: Sequence[float]
    bound: Sequence[float]


@dataclass(frozen=True)
class Outcome:
    """The results of a run.

    Attributes:
        loss: The mean square error of the trained model, and of predicting the mean.
        exact: The largest difference between the model and its conversion with exact products.
        net: The converted network.
        on: The compact set of the test graphs.
        product: The error of the product alone.
        network: The error of the whole network.
    """

    loss: tuple[float, float]
    exact: float
    net: MessagePassingNet
    on: CompactSet
    product: ErrorCurve
    network: ErrorCurve

    @property
    def holds(self) -> bool:
        """Whether the conversion is exact and every measured error is within its bound, up to rounding."""
        curves = (self.product, self.network)
        pairs = [pair for curve in curves for pair in zip(curve.measured, curve.bound, strict=True)]
        return self.exact < ROUNDING and all(measured <= bound + ROUNDING for measured, bound in pairs)


def run(*, seed: int = 0, n_graphs: int = 300, epochs: int = 200) -> Outcome:
    """Train, convert and measure."""
    require("torch_geometric", extra="pyg", call="message-passing")
    from torch_geometric.data import Batch
    from torch_geometric.nn import GIN, global_mean_pool

    with torch.random.fork_rng():
        torch.manual_seed(seed)
        train, test = (Batch.from_data_list([molecule() for _ in range(n)]) for n in (n_graphs, n_graphs // 2))
        gin, head = GIN(KINDS, WIDTH, num_layers=2).double(), nn.Linear(WIDTH, 1).double()
        optimizer = torch.optim.AdamW([*gin.parameters(), *head.parameters()], lr=0.03, weight_decay=0.3)
        schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, epochs)
        for _ in range(epochs):
            predictions = head(global_mean_pool(gin(train.x, train.edge_index), train.batch))
            optimizer.zero_grad()
            torch.autograd.backward((predictions - train.y).square().mean())
            optimizer.step()
            schedule.step()
        net = from_message_passing([gin.eval(), global_mean_pool, head.eval()], product="exact")
    with torch.no_grad():
        predictions = head(global_mean_pool(gin(test.x, test.edge_index), test.batch))
        loss = float((predictions - test.y).square().mean()), float((test.y - train.y.mean()).square().mean())
        state = net.prepare(test)
        on, exact = net.compact_set(state), float((net(state) - predictions).abs().max())
        return Outcome(loss, exact, net, on, measure_product(on), measure_network(net, state, on))


def molecule() -> Any:
    """A graph of 6 to 14 nodes as PyTorch Geometric `Data`, with edges in both directions and the target y."""
    from torch_geometric.data import Data

    n = int(torch.randint(6, 15, ()))
    kind = torch.randint(KINDS, (n,))
    bonds = {(int(torch.randint(node, ())), node) for node in range(1, n)}
    rings = torch.randint(n, (2, 2)).sort(1).values.tolist()
    bonds |= {(first, last) for first, last in rings if first != last}
    edges = torch.tensor([bond for bond in sorted(bonds) for _ in range(int(torch.randint(1, MAX_BOND + 1, ())))]).T
    beyond = (torch.bincount(edges.flatten(), minlength=n) - MAX_EDGES).clamp(min=0)
    x = nn.functional.one_hot(kind, KINDS).double()
    return Data(x=x, edge_index=torch.cat([edges, edges.flip(0)], 1), y=beyond.double().mean().reshape(1, 1))


def measure_product(on: CompactSet) -> ErrorCurve:
    """The product alone, on a fine grid of the rectangle |a| <= the largest adjacency, |m| <= 1."""
    line = torch.linspace(-1, 1, 401, dtype=torch.float64)
    a, m = on.adjacency * line.unsqueeze(1), line.unsqueeze(0) * (1 - 1e-3)
    products = [ReluProduct(depth, on.adjacency, 1.0) for depth in DEPTHS]
    measured = [float((product(a, m) - a * m).abs().max()) for product in products]
    bounds = [float(product.bound) for product in products]
    return ErrorCurve("the product alone", f"|a| ≤ {on.adjacency:g}, |m| ≤ 1", measured, bounds)


def measure_network(net: MessagePassingNet, state: Padded, on: CompactSet) -> ErrorCurve:
    """The whole network, on graphs of the compact set, against exact products."""
    exact, measured, bounds = net.exact()(state), [], []
    for depth in DEPTHS:
        measured.append(float((net.approximate(on, depth)(state, check=True) - exact).abs().max()))
        bounds.append(float(net.error_bound.max()))
    note = f"two layers; |a| ≤ {on.adjacency:g}, at most {on.neighbours} neighbours"
    return ErrorCurve("the converted GIN", note, measured, bounds)


def show(outcome: Outcome) -> str:
    """The outcome as text: the training, the diagrams, the errors."""
    words = {diagram.name: diagram.describe() for spec in ("n n -> n n", "n n -> n") for diagram in plan(spec).diagrams}
    used, curves = outcome.net.diagrams(), (outcome.product, outcome.network)
    width = max(map(len, used))
    rows = [
        f"  {depth:>5}" + "".join(f"  {curve.measured[i]:>10.1e}{curve.bound[i]:>11.1e}" for curve in curves)
        for i, depth in enumerate(DEPTHS)
    ]
    return "\n".join(
        [
            f"A GIN of two layers was trained to predict the mean number of edges beyond {MAX_EDGES} of a node.",
            f"  mean square error {outcome.loss[0]:.4f}; of predicting the mean: {outcome.loss[1]:.4f}",
            "\nConverted, with exact products:",
            f"  largest difference from the model {outcome.exact:.1e}",
            "\nThe diagrams of its equivariant layers (all other weights are zero):",
            *(f"  {name:<{width}}  {'  '.join(names)}" for name, names in used.items()),
            "in words:",
            *(f"  {name:<6}  {words[name]}" for name in dict.fromkeys(chain(*used.values()))),
            f"\nProducts by ReLU networks, on the compact set {outcome.on}:",
            ("  {:>5}" + "  {:^21}" * 2).format("", *(curve.title for curve in curves)).rstrip(),
            f"  {'depth':>5}" + 2 * f"  {'measured':>10}{'bound':>11}",
            *rows,
        ]
    )


def draw(outcome: Outcome) -> "Figure":
    """Measured errors and their bounds, of the product and of the network side by side."""
    curves = (outcome.product, outcome.network)
    panels = MethodPanels([curve.title for curve in curves], across="depth of the product network", up="largest error")
    for curve in curves:
        panels.method(curve.title, (DEPTHS, curve.bound), "proven bound")
        panels.crosses(curve.title, (DEPTHS, curve.measured), "measured")
        panels.note(curve.title, curve.note)
    return panels.finish()
