"""
Expressive power of order 2 and order 3
=======================================

A cycle of six nodes and two cycles of three nodes: every node has two neighbours in both graphs, and 1-WL (colour
refinement) does not distinguish them. Networks over pairs of nodes do not either, for any weights. Networks over
triples do.
"""

import matplotlib.pyplot as plt
import networkx as nx
import torch

import bellnet as bn

# %%
# The two graphs.
hexagon = nx.cycle_graph(6)
triangles = nx.disjoint_union(nx.cycle_graph(3), nx.cycle_graph(3))
adjacencies = [
    torch.tensor(nx.to_numpy_array(graph)).unsqueeze(-1)  # one channel
    for graph in (hexagon, triangles)
]


# %%
# Networks with random weights in float64: two layers with ReLU, then the mean over each orbit. The first layer of order
# 3 maps pairs to triples.
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
    for order, values in differences.items():
        for seed in range(20):
            outputs = [network(order, seed)(x) for x in adjacencies]
            values.append(max((outputs[0] - outputs[1]).abs().max().item(), 1e-17))

# %%
# The panel on the right shows the difference between the outputs for the two graphs, for twenty networks of each order.
figure, panels = plt.subplots(1, 3, figsize=(8, 2.9), width_ratios=(1, 1, 1.5))
layout = nx.circular_layout(nx.cycle_graph(3), scale=0.6)
layout = {node: layout[node % 3] + (1.4 if node < 3 else 0, 0) for node in triangles}
graphs = {"hexagon": (hexagon, nx.circular_layout(hexagon)), "two triangles": (triangles, layout)}
for axes, (title, (graph, positions)) in zip(panels, graphs.items(), strict=False):
    nx.draw_networkx(graph, positions, ax=axes, node_color="C0", node_size=180, with_labels=False, edge_color="0.5")
    axes.set(title=title, aspect="equal", xlim=(-1.2, 2.2) if graph is triangles else (-1.3, 1.3), ylim=(-1.3, 1.3))
    axes.axis("off")
for order, values in differences.items():
    panels[2].semilogy([order + 0.02 * (index - 10) for index in range(20)], values, "o", markersize=4)
panels[2].set_xticks([2, 3], ["order 2", "order 3"])
panels[2].set(xlim=(1.5, 3.5), title="largest difference of the outputs")

# %%
# The differences at order 2 are rounding errors. Triples contain the information whether three nodes form a triangle,
# and a hexagon has none, at the cost of n³ values. Order 2 has the expressive power of 1-WL, order 3 that of 2-FWL.
print(f"order 2: at most {max(differences[2]):.0e}, order 3: at least {min(differences[3]):.0e}")
assert max(differences[2]) < 1e-12 < min(differences[3])
