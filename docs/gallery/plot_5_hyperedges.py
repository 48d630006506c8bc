"""
Hypergraphs are data of order three
===================================

A hypergraph with hyperedges of three nodes is a tensor of order 3, the input of layers such as ``n n n -> n``. This
example has two hypergraphs with the same pairs of nodes: a tensor of order 2 does not represent the difference.
"""

from itertools import combinations

import matplotlib.pyplot as plt
import torch
from matplotlib.patches import Polygon

import bellnet as bn
from bellnet.data import sparse_inputs

# %%
# Two hypergraphs of six nodes and four hyperedges. The same pairs of nodes occur in hyperedges of both.
first = [(0, 1, 2), (0, 3, 4), (5, 1, 3), (5, 2, 4)]
second = [(5, 1, 2), (5, 3, 4), (0, 1, 3), (0, 2, 4)]


def pairs(hyperedges):
    return {frozenset(pair) for hyperedge in hyperedges for pair in combinations(hyperedge, 2)}


assert pairs(first) == pairs(second)
figure, panels = plt.subplots(1, 3, figsize=(8, 2.9))
positions = {0: (0, 1), 1: (-0.87, 0.5), 2: (0.87, 0.5), 3: (-0.87, -0.5), 4: (0.87, -0.5), 5: (0, -1)}
for axes, title, hyperedges in zip(panels, ("first", "second", "pairs of both"), (first, second, ()), strict=True):
    for index, hyperedge in enumerate(hyperedges):
        axes.add_patch(Polygon([positions[node] for node in hyperedge], color=f"C{index}", alpha=0.35, linewidth=0))
    for pair in pairs(hyperedges or first):
        axes.plot(*zip(*(positions[node] for node in pair), strict=True), color="0.6", linewidth=0.9, zorder=1)
    for node, (x, y) in positions.items():
        axes.plot(x, y, "o", color="0.15", markersize=13, zorder=2)
        axes.text(x, y, str(node), color="white", ha="center", va="center", size=8, zorder=3)
    axes.set(title=title, xlim=(-1.15, 1.15), ylim=(-1.2, 1.2), aspect="equal")
    axes.axis("off")

# %%
# Sparse tensors of order 3 store each hyperedge in all six orders of its nodes.
tensors = [sparse_inputs.from_hyperedges(hyperedges, n_nodes=6) for hyperedges in (first, second)]
print(tensors[0])
print(bn.plan("{n n n} -> n"))

# %%
# A second channel on the diagonal marks node 0. Two networks with random weights are compared, one over pairs and one
# over triples.
marks = torch.zeros(6, dtype=torch.float64)
marks[0] = 1


def over_triples(hyperedges):
    x = torch.zeros(6, 6, 6, 2, dtype=torch.float64)
    x[..., 0] = sparse_inputs.from_hyperedges(hyperedges, n_nodes=6).to_dense()[..., 0]
    x[range(6), range(6), range(6), 1] = marks
    return x


def over_pairs(hyperedges):
    x = torch.zeros(6, 6, 2, dtype=torch.float64)
    for one, other in map(tuple, pairs(hyperedges)):
        x[one, other, 0] = x[other, one, 0] = 1
    x[range(6), range(6), 1] = marks
    return x


torch.manual_seed(0)
of_triples = bn.EquivariantNet("n n n -> n n n", [2, 8, 1]).double()
of_pairs = bn.EquivariantNet("n n -> n n", [2, 8, 1]).double()
with torch.no_grad():
    differ = {
        "pairs": (of_pairs(over_pairs(first)) - of_pairs(over_pairs(second))).abs().max(),
        "triples": (of_triples(over_triples(first)) - of_triples(over_triples(second))).abs().max(),
    }
print({name: f"{value:.3f}" for name, value in differ.items()})

# %%
# Over pairs both hypergraphs are the same tensor, so that all outputs are equal. Over triples the tensors differ. The
# hypergraphs are isomorphic nevertheless: a permutation of nodes 0 and 5 takes one to the other, and an equivariant
# network over triples permutes its outputs accordingly.
order = torch.tensor([5, 1, 2, 3, 4, 0])
permuted = over_triples(second)[order][:, order][:, :, order]
assert torch.equal(permuted[..., 0], over_triples(first)[..., 0])
bn.testing.assert_equivariant(of_triples, "n n n -> n n n")
