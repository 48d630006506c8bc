"""Products of tensors over nodes: dense ones compared with batched products, sparse ones with scipy."""

from collections.abc import Callable, Mapping
from functools import partial

import torch
from torch import Tensor

from bellnet import Product, Sparse
from benchmarks.goals import Verdict
from benchmarks.measure import geometric_mean
from benchmarks.races import Effort, Raced, Section, raced
from benchmarks.sparse_layers import random_graph

SPEC = "n n, n n -> n n"
CASES = ((8, 100, 32), (32, 40, 32), (8, 200, 16))
QUICK_CASES = ((2, 6, 4),)
NODES, EDGES, CHANNELS = 10**5, 10**6, 4
QUICK_NODES, QUICK_EDGES = 100, 500
MOST_ROUNDS = 3
OURS, BARE, BETWEEN, EINSUM = "product", "bmm", "copied bmm", "einsum"
FIRST, LATER, SCIPY = "first", "later", "scipy"
LEGEND = f"""\
product  Product("{SPEC}") on (batch, n, n, channels) tensors, forward+backward on two threads
bmm      torch.bmm of matrices that are stored channels first, with its gradient: a lower bound;
         copied bmm: the same between copies from channels last to channels first and back
einsum   torch.einsum("zabc,zbdc->zadc") on the channels-last tensors
first    Product on a graph with {NODES:,} nodes, {EDGES:,} edges and {CHANNELS} channels, at its edges, forward on two
         threads: the support is new; later: the same support again
scipy    (A @ B).multiply(mask) for every channel, each a scipy.sparse.csr_matrix"""


def contestants(batch: int, n: int, channels: int) -> tuple[Mapping[str, Callable[[Tensor, Tensor], Tensor]], Tensor]:
    """The contestants, and a channels-last factor."""
    product = Product(SPEC, normalize="sum")
    calls = {OURS: product, BARE: torch.bmm, BETWEEN: copied_bmm, EINSUM: partial(torch.einsum, "zabc,zbdc->zadc")}
    return calls, torch.randn(batch, n, n, channels)


def copied_bmm(x: Tensor, y: Tensor) -> Tensor:
    """The product of channels-last matrices in plain torch operations."""
    batch, n, _, channels = x.shape
    first, second = (one.permute(0, 3, 1, 2).reshape(-1, n, n) for one in (x, y))
    return torch.bmm(first, second).view(batch, channels, n, n).permute(0, 2, 3, 1).contiguous()


def measure_products(effort: Effort) -> Section:
    """One race for each size, and one at stored entries."""
    races, ratios = [], []
    for batch, n, channels in QUICK_CASES if effort.quick else CASES:
        calls, x = contestants(batch, n, channels)
        runs: dict[str, Callable[[], object]] = {}
        for name, multiply in calls.items():
            like = x.permute(0, 3, 1, 2).reshape(-1, n, n).contiguous() if name == BARE else x
            factors = [torch.randn_like(like).requires_grad_() for _ in range(2)]
            runs[name] = partial(_run, multiply, factors, torch.randn_like(like))
        what = f"product of {batch} x {n} x {n} x {channels}, forward+backward"
        races.append(raced(what, runs, threads=2, rounds=effort.rounds))
        ratios += [races[-1].ratio(OURS, BARE), races[-1].ratio(BETWEEN, OURS), races[-1].ratio(EINSUM, OURS)]
    mean = geometric_mean(race.timings[OURS].median / race.timings[BARE].median for race in races)
    ratios.append(Verdict(f"products, forward+backward, {OURS}/{BARE}", mean))
    sparse = _race_sparse(effort)
    return Section((*races, sparse), (*ratios, sparse.ratio(FIRST, SCIPY), sparse.ratio(LATER, SCIPY)))


def _run(multiply: Callable[[Tensor, Tensor], Tensor], factors: list[Tensor], upstream: Tensor) -> None:
    torch.autograd.grad(multiply(*factors), factors, upstream)


def sparse_contestants(n_nodes: int, n_edges: int) -> dict[str, Callable[[], object]]:
    """The contestants of the product at stored entries."""
    from scipy.sparse import csr_matrix  # type: ignore[import-untyped]

    index = random_graph(n_nodes, n_edges)
    x, y = (Sparse(index, torch.randn(index.shape[1], CHANNELS), n_nodes) for _ in range(2))
    y = Sparse.on(x, y.values)
    product, index = Product(SPEC, normalize="sum"), x.index

    def on_a_new_support() -> Sparse:
        new = Sparse(index, x.values, n_nodes, is_sorted=True)
        return product(new, new.with_values(y.values))

    columns = [[one.values[:, channel].numpy() for channel in range(CHANNELS)] for one in (x, y)]
    matrices = [
        [csr_matrix((values, tuple(index.numpy())), shape=(n_nodes, n_nodes)) for values in several]
        for several in columns
    ]
    mask = csr_matrix((torch.ones(index.shape[1]).numpy(), tuple(index.numpy())), shape=(n_nodes, n_nodes))

    def by_scipy() -> list[object]:
        return [(one @ other).multiply(mask) for one, other in zip(*matrices, strict=True)]

    return {FIRST: on_a_new_support, LATER: partial(product, x, y), SCIPY: by_scipy}


def _race_sparse(effort: Effort) -> Raced:
    sizes = (QUICK_NODES, QUICK_EDGES) if effort.quick else (NODES, EDGES)
    rounds = min(effort.rounds, MOST_ROUNDS)
    return raced("product at stored entries, forward", sparse_contestants(*sizes), threads=2, rounds=rounds)
