"""
Ratings: two node sets
======================

A table of ratings has rows and columns that can be renumbered each on their own: users and items are two node sets. The
layer ``u i -> u i`` has the four maps that respect both, and a network of such layers fills in what is missing.
"""

import matplotlib.pyplot as plt
import torch

import bellnet as bn

# %%
# Generated ratings: 60 users, 40 items, two tastes, some noise. A third of the table is known.
torch.manual_seed(0)
tastes, kinds = torch.rand(60, 2).sort(0).values, torch.rand(40, 2)
truth = 1 + 2 * tastes @ kinds.T + 0.1 * torch.randn(60, 40)
is_known = torch.rand(60, 40) < 1 / 3
middle, spread = truth[is_known].mean(), truth[is_known].std()
values = (truth - middle) / spread
print(bn.plan("u i -> u i"))


# %%
# The network sees two channels: the ratings that it is shown, and which those are. In every step a fifth of the known
# ratings is hidden and asked for. What is not known is never used.
def table(is_shown):
    return torch.stack([values * is_shown, is_shown.float()], -1)


net = bn.EquivariantNet("u i -> u i", [2, 32, 32, 32, 1], residual=True)
optimizer = torch.optim.Adam(net.parameters(), lr=0.005)
for _ in range(400):
    is_shown = is_known & (torch.rand(60, 40) < 0.8)
    asked = is_known & ~is_shown
    loss = (net(table(is_shown))[..., 0] - values)[asked].square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
with torch.no_grad():
    said = middle + spread * net(table(is_known))[..., 0]

# %%
# Then everything known is shown, and the rest of the table is taken from what comes out.
figure, panels = plt.subplots(1, 3, figsize=(8, 3.9), sharey=True)
tables = {
    "known": torch.where(is_known, truth, torch.nan),
    "filled in": torch.where(is_known, truth, said),
    "the truth": truth,
}
for axes, (title, shown) in zip(panels, tables.items(), strict=True):
    image = axes.imshow(shown.numpy(), cmap="cividis", vmin=1, vmax=4, aspect="auto", interpolation="nearest")
    axes.set(title=title, xlabel="items", xticks=[], yticks=[])
panels[0].set_ylabel("users")
figure.colorbar(image, ax=panels, shrink=0.8, label="rating")

# %%
# How far off are the ratings that were never shown? The noise alone, which nobody can know, is 0.1.
error = (said - truth)[~is_known].square().mean().sqrt()
of_mean = (middle - truth)[~is_known].square().mean().sqrt()
print(f"root mean square error {error:.2f}; of the mean rating {of_mean:.2f}")
