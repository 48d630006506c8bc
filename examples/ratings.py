"""Completes a table of ratings with layers over users and items, the setting of Hartford et al. (ICML 2018).

Generates ratings of low rank, with features of users and items; --file reads ratings of MovieLens.
"""

import argparse
import re
from pathlib import Path

import torch

import bellnet as bn
from bellnet.data import sparse_inputs

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--file", type=Path, help="user, item, rating, time; separated by tabs, '::' or commas")
parser.add_argument("--steps", type=int, default=250, help="number of training steps")
options, side = parser.parse_args(), ()  # features of users and of items
torch.manual_seed(0)
if options.file:
    lines = [re.split(r"::|\t|,", line) for line in options.file.read_text().splitlines()]
    user, item, ratings = torch.tensor([[*map(float, line[:3])] for line in lines if line[0].isdigit()]).T
    user, item = (column.unique(return_inverse=True)[1] for column in (user, item))
else:
    user, item = (torch.rand(200, 120) < 0.2).nonzero().T
    tastes, kinds = torch.rand(200, 2), torch.rand(120, 2)
    ratings = 1 + 2 * (tastes @ kinds.T)[user, item] + 0.1 * torch.randn(len(user))
    side = tastes + 0.1 * torch.randn(200, 2), kinds + 0.1 * torch.randn(120, 2)
table = sparse_inputs.from_ratings(user, item, ratings)
truth, (user, item), known = table.values[:, 0], table.index, torch.rand(len(ratings)) < 0.8
middle, spread = truth[known].mean(), truth[known].std()


def show(name, predicted):
    print(f"{name:<23} RMSE {(predicted - truth)[~known].square().mean().sqrt():.4f}")


print(f"{len(truth)} ratings of {table.sizes['i']} items by {table.sizes['u']} users, {int((~known).sum())} to test")
show("mean", middle)
filled = table.with_values((table.values - middle) * known[:, None]).to_dense()[..., 0]
there = (filled != 0).float()  # start with the means of users and of items
filled = middle + sum(filled.sum(axis, True) / there.sum(axis, True).clamp(min=1) for axis in (0, 1))
for _ in range(30):  # alternate known ratings and the best approximation of rank 3
    filled[user[known], item[known]] = truth[known]
    left, scale, right = torch.svd_lowrank(filled, q=3)
    filled = left * scale @ right.T
show("SVD of rank 3", filled[user, item])
train = bn.Sparse(table.index[:, known], (table.values[known] - middle) / spread, table.sizes)
for spec, channels, features in [("u i -> u i", 2, ()), ("u i, u, i -> u i", (2, 2, 2), side)][: 1 + bool(side)]:
    net = bn.EquivariantNet(spec, [channels, 32, 32, 32, 1], normalize="stored", residual=True)  # means as in the paper
    optimizer = torch.optim.Adam(net.parameters(), lr=0.005)
    for _ in range(options.steps):  # mask a fifth of the ratings and predict them from the others
        visible = (torch.rand(train.nnz, 1) < 0.8).float()  # a second channel
        shown = train.with_values(torch.cat([train.values * visible, visible], 1))
        optimizer.zero_grad()
        (net((shown, *features) if features else shown).values - train.values)[visible == 0].square().mean().backward()
        optimizer.step()
    shown = table.with_values(known[:, None] * torch.cat([(table.values - middle) / spread, table.values**0], 1))
    show(f"layers {spec}", middle + spread * net((shown, *features) if features else shown).values.detach()[:, 0])
