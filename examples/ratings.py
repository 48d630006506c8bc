"""Completing a table of ratings with layers over users and items, the setting of Hartford et al. (ICML 2018).

Generated ratings of low rank by default; --file reads those of MovieLens: user, item, rating, time on every line.
"""

import argparse
import re
from pathlib import Path

import torch

import bellnet as bn
from bellnet.data import sparse

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--file", type=Path, help="ratings; columns separated by tabs, '::' or commas")
parser.add_argument("--steps", type=int, default=400, help="of training")
options = parser.parse_args()
torch.manual_seed(0)
if options.file:
    lines = [re.split(r"::|\t|,", line) for line in options.file.read_text().splitlines()]
    user, item, ratings = torch.tensor([[*map(float, line[:3])] for line in lines if line[0].isdigit()]).T
    user, item = (column.unique(return_inverse=True)[1] for column in (user, item))
else:
    user, item = (torch.rand(200, 120) < 0.2).nonzero().T
    ratings = 1 + 2 * (torch.rand(200, 2) @ torch.rand(2, 120))[user, item] + 0.1 * torch.randn(len(user))
table = sparse.from_ratings(user, item, ratings)
truth, (user, item), known = table.values[:, 0], table.index, torch.rand(len(ratings)) < 0.8
middle, spread = truth[known].mean(), truth[known].std()


def show(name, predicted):
    print(f"{name:<20} RMSE {(predicted - truth)[~known].square().mean().sqrt():.4f}")


print(f"{len(truth)} ratings of {table.sizes['i']} items by {table.sizes['u']} users, {int((~known).sum())} held out")
show("mean", middle)
filled = table.with_values((table.values - middle) * known[:, None]).to_dense()[..., 0]
there = (filled != 0).float()  # begin with the means of users and of items
filled = middle + sum(filled.sum(axis, True) / there.sum(axis, True).clamp(min=1) for axis in (0, 1))
for _ in range(30):  # put in what is known, take the nearest table of rank 3, and again
    filled[user[known], item[known]] = truth[known]
    left, scale, right = torch.svd_lowrank(filled, q=3)
    filled = left * scale @ right.T
show("SVD of rank 3", filled[user, item])
# Two channels: the rating where it is visible, and whether it is. Means are over listed tuples, as in that paper.
net = bn.EquivariantNet("u i -> u i", [2, 32, 32, 32, 1], normalize="listed", residual=True)
optimizer = torch.optim.Adam(net.parameters(), lr=0.005)
train = bn.Sparse(table.index[:, known], (table.values[known] - middle) / spread, table.sizes)
for _ in range(options.steps):  # hide a fifth of the ratings and predict them from the others
    visible = (torch.rand(train.n_tuples, 1) < 0.8).float()
    predicted = net(train.with_values(torch.cat([train.values * visible, visible], 1))).values
    optimizer.zero_grad()
    (predicted - train.values)[visible == 0].square().mean().backward()
    optimizer.step()
visible = known.float().unsqueeze(1)
with torch.no_grad():
    predicted = net(table.with_values(torch.cat([(table.values - middle) / spread * visible, visible], 1)))
show("layers over u and i", middle + spread * predicted.values[:, 0])
