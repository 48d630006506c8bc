"""
The fifteen maps, on a real graph
=================================

A linear map from matrices to matrices that does not care how the nodes are numbered is a combination of fifteen. Here
each of them is shown what it does to one graph: the families of Florence in the 15th century, and which of them were
joined by marriage.
"""

from textwrap import fill

import matplotlib.pyplot as plt
import networkx as nx
import torch
from matplotlib.colors import LinearSegmentedColormap

import bellnet as bn

# %%
# The graph is a matrix: a one where two families are joined, and on the diagonal, which would be empty, the number of
# marriages of each family as a share of the largest, which is that of the Medici.
families = nx.florentine_families_graph()
adjacency = torch.tensor(nx.to_numpy_array(families), dtype=torch.float32)
degrees = adjacency.sum(1)
matrix = adjacency + torch.diag(degrees / degrees.max())

# %%
# A layer with one channel has a number for each map. Setting one of them to 1 and the others to 0 leaves one map alone.
# Sums are divided by the number of their terms, so all results can be shown on one scale, from white (0) to blue (1).
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
for axes, (place, diagram) in zip(panels.flat[1:], diagrams, strict=True):
    with torch.no_grad():
        layer.weight.zero_()
        layer.weight[place] = 1
        result = layer(matrix.unsqueeze(-1))[..., 0]
        picture(axes, result, f"{diagram.name}\n{fill(diagram.words(), 30)}")

# %%
# They come in the order of what they carry. Two, the copy and the transpose (which are the same here, since marriages
# have no direction), carry a value for each pair. Nine carry one for each family: the diagonal, the mean of a row or of
# a column, written to rows, to columns or to the diagonal. Four carry a single number. So a layer with many channels
# multiplies two full matrices, and for the other thirteen maps no more than the fifteen numbers that they carry.
print(layer.plan)
