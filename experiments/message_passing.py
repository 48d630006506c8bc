"""The theorem at work: a small GIN is trained, converted, and compared with its conversion at every depth.

The graphs are like small molecules: trees with some rings, nodes of four kinds, and bonds of one, two or three edges.
A node has room for four edges; to be learned is how many edges there are too many, per node. Bonds of several edges
make the adjacency take values between zero and its maximum, where the product network is not exact.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from bellnet import Padded, plan
from bellnet.nn.message_passing import CompactSet, MessagePassingNet, ReluProduct, from_message_passing
from experiments.machine import require
from experiments.method_panels import MethodPanels

if TYPE_CHECKING:
    from matplotlib.figure import Figure

KINDS, BOND, ROOM, WIDTH = 4, 3, 4, 8
DEPTHS = tuple(range(2, 13))
ROUNDING = 1e-10


@dataclass(frozen=True)
class ErrorCurve:
    """The largest error that was measured at every depth, and the bound on it."""

    title: str
    about: str
    depths: Sequence[int]
    measured: Sequence[float]
    bound: Sequence[float]


@dataclass(frozen=True)
class Outcome:
    """What the demonstration found.

    Attributes:
        loss: The mean square error of the trained model, and of always saying the mean.
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
        """Whether the conversion is right and every measured error is within its bound, up to rounding."""
        pairs = [
            pair for curve in (self.product, self.network) for pair in zip(curve.measured, curve.bound, strict=True)
        ]
        return self.exact < ROUNDING and all(measured <= bound + ROUNDING for measured, bound in pairs)


def run(*, seed: int = 0, n_graphs: int = 300, epochs: int = 200) -> Outcome:
    """Train, convert and measure."""
    require("torch_geometric", extra="pyg", call="message-passing")
    from torch_geometric.data import Batch
    from torch_geometric.nn import global_mean_pool

    with torch.random.fork_rng():
        torch.manual_seed(seed)
        train, test = (Batch.from_data_list([molecule() for _ in range(n)]) for n in (n_graphs, n_graphs // 2))
        gin, head = train_gin(train, epochs)
        net = from_message_passing([gin, global_mean_pool, head], product="exact")
    with torch.no_grad():
        said = head(global_mean_pool(gin(test.x, test.edge_index), test.batch))
        state = net.prepare(test)
        on = net.compact_set(state)
        exact = net(state)
        loss = float((said - test.y).square().mean()), float((test.y - train.y.mean()).square().mean())
        return Outcome(
            loss, float((exact - said).abs().max()), net, on, measure_product(on), measure_network(net, state, on)
        )


def molecule() -> Any:
    """One graph of 6 to 14 nodes, as PyTorch Geometric holds it; edges go both ways, and y is what to say of it."""
    from torch_geometric.data import Data

    n = int(torch.randint(6, 15, ()))
    kind = torch.randint(KINDS, (n,))
    bonds = {(int(torch.randint(node, ())), node) for node in range(1, n)}
    rings = torch.randint(n, (2, 2)).sort(1).values.tolist()
    bonds |= {(first, last) for first, last in rings if first != last}
    edges = torch.tensor([bond for bond in sorted(bonds) for _ in range(int(torch.randint(1, BOND + 1, ())))]).T
    n_edges = torch.bincount(edges.flatten(), minlength=n)
    too_many = (n_edges - ROOM).clamp(min=0).sum()
    return Data(
        x=nn.functional.one_hot(kind, KINDS).double(),
        edge_index=torch.cat([edges, edges.flip(0)], 1),
        y=(too_many / n).double().reshape(1, 1),
    )


def train_gin(batch: Any, epochs: int) -> tuple[nn.Module, nn.Module]:
    """A GIN of two layers and the linear layer that follows its mean over nodes."""
    from torch_geometric.nn import GIN, global_mean_pool

    gin, head = GIN(KINDS, WIDTH, num_layers=2).double(), nn.Linear(WIDTH, 1).double()
    optimizer = torch.optim.AdamW([*gin.parameters(), *head.parameters()], lr=0.03, weight_decay=0.3)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, epochs)
    for _ in range(epochs):
        loss = (head(global_mean_pool(gin(batch.x, batch.edge_index), batch.batch)) - batch.y).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
    return gin.eval(), head.eval()


def measure_product(on: CompactSet) -> ErrorCurve:
    """The product alone, on a fine grid of the rectangle |a| <= the largest adjacency, |m| <= 1."""
    lines = torch.linspace(-1, 1, 401, dtype=torch.float64)
    a, m = on.adjacency * lines.unsqueeze(1), lines.unsqueeze(0) * (1 - 1e-3)
    products = [ReluProduct(depth, on.adjacency, 1.0) for depth in DEPTHS]
    measured = [float((product(a, m) - a * m).abs().max()) for product in products]
    bounds = [float(product.bound) for product in products]
    return ErrorCurve("the product alone", f"|a| ≤ {on.adjacency:g}, |m| ≤ 1", DEPTHS, measured, bounds)


def measure_network(net: MessagePassingNet, state: Padded, on: CompactSet) -> ErrorCurve:
    """The whole network, on graphs of the compact set, against exact products."""
    exact = net.exact()(state)
    assert isinstance(exact, Tensor)
    measured, bounds = [], []
    for depth in DEPTHS:
        close = net.approximate(on, depth)(state, check=True)
        assert isinstance(close, Tensor)
        measured.append(float((close - exact).abs().max()))
        bounds.append(float(net.error_bound.max()))
    about = f"two layers; |a| ≤ {on.adjacency:g}, at most {on.neighbours} neighbours"
    return ErrorCurve("the converted GIN", about, DEPTHS, measured, bounds)


def show(outcome: Outcome) -> str:
    """The outcome as text: what was trained, the diagrams, the errors."""
    diagrams = {
        diagram.name: diagram.describe() for spec in ("n n -> n n", "n n -> n") for diagram in plan(spec).diagrams
    }
    used = outcome.net.diagrams()
    width = max(map(len, used))
    lines = [
        f"A GIN of two layers learned by how many edges the nodes of a graph exceed {ROOM}, on average.",
        f"  mean square error {outcome.loss[0]:.4f}; always saying the mean: {outcome.loss[1]:.4f}",
        "",
        "Converted, with exact products:",
        f"  largest difference from the model {outcome.exact:.1e}",
        "",
        "The diagrams of its equivariant layers (all other weights are zero):",
        *(f"  {name:<{width}}  {'  '.join(names)}" for name, names in used.items()),
        "in words:",
        *(
            f"  {name:<6}  {diagrams[name]}"
            for name in dict.fromkeys(name for names in used.values() for name in names)
        ),
        "",
        f"Products by ReLU networks, on the compact set {outcome.on}:",
        *_table(outcome.product, outcome.network),
    ]
    return "\n".join(lines)


def _table(product: ErrorCurve, network: ErrorCurve) -> Sequence[str]:
    rows = [f"  {'':>5}  {product.title:^21}  {network.title:^21}".rstrip()]
    rows.append(f"  {'depth':>5}  {'measured':>10}{'bound':>11}  {'measured':>10}{'bound':>11}")
    for place, depth in enumerate(product.depths):
        cells = [f"{c.measured[place]:>10.1e}{c.bound[place]:>11.1e}" for c in (product, network)]
        rows.append(f"  {depth:>5}  {'  '.join(cells)}")
    return rows


def draw(outcome: Outcome) -> "Figure":
    """Measured errors and their bounds, of the product and of the network side by side."""
    curves = (outcome.product, outcome.network)
    panels = MethodPanels([curve.title for curve in curves], across="depth of the product network", up="largest error")
    for curve in curves:
        panels.method(curve.title, (curve.depths, curve.bound), "proven bound")
        panels.crosses(curve.title, (curve.depths, curve.measured), "measured")
        panels.note(curve.title, curve.about)
    return panels.finish()
