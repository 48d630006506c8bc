"""
What 11, 9 and 6 are
====================

Fifteen maps lead from matrices to matrices. Who knows more of the data needs fewer: symmetric inputs leave eleven,
symmetric inputs and results nine, symmetric inputs with an empty diagonal six. Here is which, and why.
"""

import matplotlib.pyplot as plt
import torch

import bellnet as bn

# %%
# Four plans of the same spec. An undirected graph is symmetric; without self-loops it is hollow as well. Braces declare
# slots that may be exchanged on either side, so that symmetric matrices stay symmetric from layer to layer.
plans = {
    "any matrix": bn.plan("n n -> n n"),
    "symmetric input": bn.plan("n n -> n n", symmetric=True),
    "symmetric input\nand result": bn.plan("{n n} -> {n n}"),
    "symmetric and\nhollow input": bn.plan("n n -> n n", symmetric=True, hollow=True),
}
for title, plan in plans.items():
    print(title.replace("\n", " "), plan.n_maps, sep=": ")

# %%
# What becomes of the others? Take a random symmetric matrix, and look at what each of the fifteen maps makes of it.
# Maps with the same result are one map. If results have to be symmetric, only their symmetric part counts; if the
# diagonal is empty, some results are zero. This finds by numbers what the plans find by counting.
layer = bn.EquivariantLinear("n n -> n n", 1, 15, bias=False, normalize="sum", dtype=torch.float64)
with torch.no_grad():
    layer.weight.copy_(torch.eye(15).unsqueeze(1))  # map k to channel k
x = torch.rand(6, 6, 1, dtype=torch.float64)
x = x + x.transpose(0, 1)
symmetric = layer(x).detach().flatten(0, 1).T
mirrored = layer(x).detach().transpose(0, 1).flatten(0, 1).T
hollow = layer(x * (1 - torch.eye(6)).unsqueeze(-1)).detach().flatten(0, 1).T


def first_alike(results):
    """For every map the first one with the same result, or -1 if that is zero."""
    alike = [next(j for j in range(15) if torch.allclose(results[j], one)) for one in results]
    return [-1 if not results[k].any() else j for k, j in enumerate(alike)]


columns = [list(range(15)), first_alike(symmetric), first_alike(symmetric + mirrored), first_alike(hollow)]
for plan, column in zip(plans.values(), columns, strict=True):
    assert plan.n_maps == len(set(column) - {-1})

# %%
# In the picture a dot is a map that is kept, a grey arc leads from a map to the one that does the same, a cross is a
# map that gives nothing.
names = [diagram.name for diagram in bn.plan("n n -> n n").diagrams]
figure, axes = plt.subplots(figsize=(7, 5.4))
for place, (plan, column) in enumerate(zip(plans.values(), columns, strict=True)):
    for number, same in enumerate(column):
        if same == number:
            axes.plot(place, number, "o", color="C0", markersize=7)
        elif same < 0:
            axes.plot(place, number, "x", color="C1", markersize=6, markeredgewidth=1.6)
        else:
            axes.plot(place, number, "o", color="0.8", markersize=4)
            bend = {"arrowstyle": "-", "connectionstyle": "arc3,rad=0.35", "color": "0.65"}
            axes.annotate("", (place, same), (place, number), arrowprops=bend)
    axes.text(place, -1.2, str(plan.n_maps), ha="center", size=16, color="C0")
axes.set_yticks(range(15), names, family="monospace")
axes.set_xticks(range(4), plans)
axes.set(xlim=(-0.5, 3.5), ylim=(14.7, -2))
axes.spines[:].set_visible(False)
axes.tick_params(length=0)

# %%
# A symmetric matrix has row sums that are its column sums, so four maps that read columns go: 11. If results are to be
# symmetric too, writing along rows and along columns is one thing: 9. An empty diagonal can be neither read nor summed,
# which takes five of the eleven: 6, where Hartford et al. have four.
