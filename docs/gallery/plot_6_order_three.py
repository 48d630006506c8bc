"""
What order 3 sees that order 2 does not
=======================================

Six nodes in one ring, or in two rings of three: every node has two neighbours either way. Networks over pairs of nodes
cannot tell the two graphs apart, whatever their weights are. Networks over triples can.
"""

import matplotlib.pyplot as plt
import networkx as nx
import torch

import bellnet as bn

# %%
# The two graphs.
ring = nx.cycle_graph(6)
rings = nx.disjoint_union(nx.cycle_graph(3), nx.cycle_graph(3))
adjacencies = [
    torch.tensor(nx.to_numpy_array(graph)).unsqueeze(-1)  # one channel
    for graph in (ring, rings)
]


# %%
# Networks with random weights, in double precision: two layers and an activation, then the mean over each kind of
# tuple. That of order 3 begins with a layer from pairs to triples.
def network(order, seed):
    torch.manual_seed(seed)
    shape = " ".join("n" * order)
    return torch.nn.Sequential(
        bn.EquivariantLinear(f"n n -> {shape}", 1, 4),
        torch.nn.ReLU(),
        bn.EquivariantLinear(f"{shape} -> {shape}", 4, 4),
        torch.nn.ReLU(),
        bn.InvariantPool(shape, reduce="mean"),
    ).double()


differences = {order: [] for order in (2, 3)}
with torch.no_grad():
    for order, found in differences.items():
        for seed in range(20):
            said = [network(order, seed)(x) for x in adjacencies]
            found.append(max((said[0] - said[1]).abs().max().item(), 1e-17))

# %%
# On the right stands by how much the results for the two graphs differ, for twenty networks of each order.
figure, panels = plt.subplots(1, 3, figsize=(8, 2.9), width_ratios=(1, 1, 1.5))
apart = nx.circular_layout(nx.cycle_graph(3), scale=0.6)
apart = {node: apart[node % 3] + (1.4 if node < 3 else 0, 0) for node in rings}
shown = {"one ring": (ring, nx.circular_layout(ring)), "two rings": (rings, apart)}
for axes, (title, (graph, places)) in zip(panels, shown.items(), strict=False):
    nx.draw_networkx(graph, places, ax=axes, node_color="C0", node_size=180, with_labels=False, edge_color="0.5")
    axes.set(title=title, aspect="equal", xlim=(-1.2, 2.2) if graph is rings else (-1.3, 1.3), ylim=(-1.3, 1.3))
    axes.axis("off")
for order, found in differences.items():
    panels[2].semilogy([order + 0.02 * (place - 10) for place in range(20)], found, "o", markersize=4)
panels[2].set_xticks([2, 3], ["order 2", "order 3"])
panels[2].set(xlim=(1.5, 3.5), title="largest difference of the results")

# %%
# What is left at order 2 is rounding. A triple knows whether its three nodes are all joined, and a ring of six has no
# triangle. The price is a value for each of the n³ triples. Order 2 has the power of colour refinement, which counts
# neighbours, neighbours of neighbours and so on; order 3 has more.
print(f"order 2: at most {max(differences[2]):.0e}, order 3: at least {min(differences[3]):.0e}")
assert max(differences[2]) < 1e-12 < min(differences[3])
