"""
The fifteen maps, on a real graph
=================================

Every permutation-equivariant linear map from matrices to matrices is a linear combination of fifteen basis maps. This
example applies each of them to one graph: the marriages between the families of Florence in the 15th century.
"""

from textwrap import fill

import matplotlib.pyplot as plt
import networkx as nx
import torch
from matplotlib.colors import LinearSegmentedColormap

import bellnet as bn

# %%
# The input is the adjacency matrix, with the degrees on the diagonal, divided by the largest one (of the Medici).
families = nx.florentine_families_graph()
adjacency = torch.tensor(nx.to_numpy_array(families), dtype=torch.float32)
degrees = adjacency.sum(1)
matrix = adjacency + torch.diag(degrees / degrees.max())

# %%
# A layer with one channel has one weight per map. A weight of 1 and zeros elsewhere select a single map. Sums are
# divided by the number of their terms, so that all outputs share one scale, from white (0) to blue (1).
layer = bn.EquivariantLinear("n n -> n n", 1, 1, bias=False)
ink = LinearSegmentedColormap.from_list("ink", ["#ffffff", "#56b4e9", "#0072b2", "#00324f"])


def picture(axes, values, title):
    axes.imshow(values.numpy(), cmap=ink, vmin=0, vmax=1, interpolation="nearest")
    axes.set_title(title, size=7, va="bottom")
    axes.set(xticks=[], yticks=[])
    axes.spines[["right", "top"]].set_visible(True)


figure, panels = plt.subplots(4, 4, figsize=(8, 8.8))
picture(panels.flat[0], matrix, "the graph")
diagrams = sorted(enumerate(layer.plan.diagrams), key=lambda pair: -len(pair[1].crossing))
for axes, (index, diagram) in zip(panels.flat[1:], diagrams, strict=True):
    with torch.no_grad():
        layer.weight.zero_()
        layer.weight[index] = 1
        result = layer(matrix.unsqueeze(-1))[..., 0]
        picture(axes, result, f"{diagram.name}\n{fill(diagram.words(), 30)}")

# %%
# The maps are ordered by rank. Two of them, the identity and the transpose (equal here, since the graph is undirected),
# carry a value per pair. Nine carry a value per family: the diagonal, the mean of a row or of a column, broadcast to
# rows, to columns or to the diagonal. Four carry a single number. A layer with many channels therefore multiplies two
# full matrices, and for the other thirteen maps vectors of at most fifteen values.
print(layer.plan)
