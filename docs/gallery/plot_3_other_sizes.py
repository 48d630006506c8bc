"""
Generalisation from small to large graphs
=========================================

A layer ``n n -> n n`` has fifteen weights per pair of channels for any number of nodes, so that a network that was
trained on graphs of one size accepts graphs of any size. Whether it generalises depends on the normalisation of sums.
"""

from copy import deepcopy

import matplotlib.pyplot as plt
import torch

import bellnet as bn


# %%
# The target of node i is the mean over j of max(0, x_ij - mean of row i): a nonlinear function that has the same
# meaning for every number of nodes.
def examples(n, count=32):
    x = 4 * torch.rand(count, n, 1, 1) * torch.rand(count, n, n, 1) - 1
    return x, torch.relu(x - x.mean(2, keepdim=True)).mean(2)


# %%
# The network is trained on graphs of 12 nodes only.
torch.manual_seed(0)
net = bn.EquivariantNet("n n -> n", [1, 16, 1])  # normalize="mean" is the default
optimizer = torch.optim.AdamW(net.parameters(), lr=0.03, weight_decay=0.1)
schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 400)
for _ in range(400):
    x, y = examples(12)
    optimizer.zero_grad()
    torch.nn.functional.mse_loss(net(x), y).backward()
    optimizer.step()
    schedule.step()

# %%
# The same network with sums instead of means: every weight is divided by the number of terms of its map for 12 nodes,
# so that both networks are the same function there.
sums = bn.EquivariantNet("n n -> n", [1, 16, 1], normalize="sum")
sums.load_state_dict(deepcopy(net.state_dict()))
with torch.no_grad():
    for layer in sums.modules():
        if isinstance(layer, bn.EquivariantLinear):
            for weight, diagram in zip(layer.weight, layer.plan.diagrams, strict=True):
                summed = set(diagram.partition[:2]) - set(diagram.crossing)  # letters of the input only
                weight /= 12 ** len(summed)
    x, y = examples(12)
    assert torch.allclose(net(x), sums(x), atol=1e-4)

# %%
# The error on graphs of 4 to 96 nodes, divided by the standard deviation of the targets; predicting the mean has error
# 1.
sizes = [4, 6, 8, 10, 12, 16, 24, 32, 48, 64, 96]
figure, axes = plt.subplots(figsize=(7, 3.4))
with torch.no_grad():
    for name, model in (("mean", net), ("sum", sums)):
        errors = [((model(x) - y).square().mean().sqrt() / y.std()).item() for x, y in map(examples, sizes)]
        axes.loglog(sizes, errors, "o-", markersize=4, label=f'normalize="{name}"')
        print(f"{name}: {errors[4]:.2f} at 12 nodes, {errors[-1]:.2f} at 96")
axes.axhline(1, color="0.6", linewidth=0.8, linestyle=":")
axes.axvline(12, color="0.6", linewidth=0.8)
axes.annotate("trained here", (12, 8), (4, 0), textcoords="offset points", color="0.4", size=8)
axes.set(xlabel="nodes of the graph", ylabel="error / standard deviation")
axes.set_xticks(sizes, sizes, minor=False)
axes.set_xticks([], minor=True)
axes.legend(loc="upper left")

# %%
# Means do not grow with the graph, so that the network generalises from 12 to 96 nodes. For targets that grow with the
# graph, such as the number of edges, use sums.
