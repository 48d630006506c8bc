"""
Recommender system: two node sets
=================================

The rows and columns of a table of ratings are permuted independently: users and items are two node sets. The layer ``u
i -> u i`` has the four maps that are equivariant to both, and a network of such layers completes the table.
"""

import matplotlib.pyplot as plt
import torch

import bellnet as bn

# %%
# Generated ratings of 40 items by 60 users: a matrix of rank two with noise, of which a third is known.
torch.manual_seed(0)
tastes, kinds = torch.rand(60, 2).sort(0).values, torch.rand(40, 2)
truth = 1 + 2 * tastes @ kinds.T + 0.1 * torch.randn(60, 40)
is_known = torch.rand(60, 40) < 1 / 3
middle, spread = truth[is_known].mean(), truth[is_known].std()
values = (truth - middle) / spread
print(bn.plan("u i -> u i"))


# %%
# The input has two channels, visible ratings and their mask. Every step masks a fifth of the known ratings and predicts
# them. Unknown ratings are never used.
def table(is_visible):
    return torch.stack([values * is_visible, is_visible.float()], -1)


net = bn.EquivariantNet("u i -> u i", [2, 32, 32, 32, 1], residual=True)
optimizer = torch.optim.Adam(net.parameters(), lr=0.005)
for _ in range(400):
    is_visible = is_known & (torch.rand(60, 40) < 0.8)
    is_masked = is_known & ~is_visible
    loss = (net(table(is_visible))[..., 0] - values)[is_masked].square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
with torch.no_grad():
    predicted = middle + spread * net(table(is_known))[..., 0]

# %%
# For the prediction all known ratings are visible.
figure, panels = plt.subplots(1, 3, figsize=(8, 3.9), sharey=True)
tables = {
    "known": torch.where(is_known, truth, torch.nan),
    "completed": torch.where(is_known, truth, predicted),
    "true": truth,
}
for axes, (title, ratings) in zip(panels, tables.items(), strict=True):
    image = axes.imshow(ratings.numpy(), cmap="cividis", vmin=1, vmax=4, aspect="auto", interpolation="nearest")
    axes.set(title=title, xlabel="items", xticks=[], yticks=[])
panels[0].set_ylabel("users")
figure.colorbar(image, ax=panels, shrink=0.8, label="rating")

# %%
# The error on the unknown ratings; the noise has a standard deviation of 0.1.
error = (predicted - truth)[~is_known].square().mean().sqrt()
of_mean = (middle - truth)[~is_known].square().mean().sqrt()
print(f"root mean square error {error:.2f}; of the mean rating {of_mean:.2f}")
