"""
Symmetric matrices: 11, 9 and 6 maps
====================================

There are fifteen equivariant linear maps from matrices to matrices. Symmetries reduce their number: to eleven for
symmetric inputs, to nine for symmetric inputs and outputs, and to six for symmetric inputs with a zero diagonal.
"""

import matplotlib.pyplot as plt
import torch

import bellnet as bn

# %%
# Four plans for matrices. The adjacency matrix of an undirected graph is symmetric, and hollow without self-loops.
# Braces declare axes that may be exchanged, so that the outputs of a layer are symmetric as well.
plans = {
    "any matrix": bn.plan("n n -> n n"),
    "symmetric input": bn.plan("n n -> n n", symmetric=True),
    "symmetric input\nand output": bn.plan("{n n} -> {n n}"),
    "symmetric and\nhollow input": bn.plan("n n -> n n", symmetric=True, hollow=True),
}
for title, plan in plans.items():
    print(title.replace("\n", " "), plan.n_maps, sep=": ")

# %%
# The fifteen maps are applied to a random symmetric matrix. Maps with equal outputs are merged. For symmetric outputs
# only the symmetric part is compared; for a zero diagonal some outputs are zero. The numbers agree with those of the
# plans.
layer = bn.EquivariantLinear("n n -> n n", 1, 15, bias=False, normalize="sum", dtype=torch.float64)
with torch.no_grad():
    layer.weight.copy_(torch.eye(15).unsqueeze(1))  # map k to channel k
x = torch.rand(6, 6, 1, dtype=torch.float64)
x = x + x.transpose(0, 1)
symmetric = layer(x).detach().flatten(0, 1).T
transposed = layer(x).detach().transpose(0, 1).flatten(0, 1).T
hollow = layer(x * (1 - torch.eye(6)).unsqueeze(-1)).detach().flatten(0, 1).T


def first_equal(outputs):
    """The index of the first map with the same output, for every map; -1 if the output is zero."""
    equal = [next(j for j in range(15) if torch.allclose(outputs[j], output)) for output in outputs]
    return [-1 if not outputs[k].any() else j for k, j in enumerate(equal)]


columns = [list(range(15)), first_equal(symmetric), first_equal(symmetric + transposed), first_equal(hollow)]
for plan, column in zip(plans.values(), columns, strict=True):
    assert plan.n_maps == len(set(column) - {-1})

# %%
# A blue dot is a map of the plan, a grey arc connects a map with the equal map, and a cross is a map with zero output.
names = [diagram.name for diagram in bn.plan("n n -> n n").diagrams]
figure, axes = plt.subplots(figsize=(7, 5.4))
for x_position, (plan, column) in enumerate(zip(plans.values(), columns, strict=True)):
    for index, same in enumerate(column):
        if same == index:
            axes.plot(x_position, index, "o", color="C0", markersize=7)
        elif same < 0:
            axes.plot(x_position, index, "x", color="C1", markersize=6, markeredgewidth=1.6)
        else:
            axes.plot(x_position, index, "o", color="0.8", markersize=4)
            bend = {"arrowstyle": "-", "connectionstyle": "arc3,rad=0.35", "color": "0.65"}
            axes.annotate("", (x_position, same), (x_position, index), arrowprops=bend)
    axes.text(x_position, -1.2, str(plan.n_maps), ha="center", size=16, color="C0")
axes.set_yticks(range(15), names, family="monospace")
axes.set_xticks(range(4), plans)
axes.set(xlim=(-0.5, 3.5), ylim=(14.7, -2))
axes.spines[:].set_visible(False)
axes.tick_params(length=0)

# %%
# The row sums of a symmetric matrix equal its column sums, which removes four maps: 11. For symmetric outputs,
# broadcasts along rows and along columns are equal as well: 9. A zero diagonal removes the five of the eleven maps that
# contract the diagonal: 6, two more than the four maps of Hartford et al.
