"""Users and items: a table whose rows and columns are permuted independently."""

import torch

import bellnet as bn

torch.manual_seed(0)
users, items = 12, 7
ratings = torch.randn(users, items, 2)

# Two names are two node sets: the 4 maps of Hartford et al. (2018).
table = bn.EquivariantLinear("u i -> u i", 2, 8)
hidden = torch.relu(table(ratings))
print(table.plan)

to_users = bn.EquivariantLinear("u i -> u", 8, 5)
features = to_users(hidden)
print(f"\na table {tuple(hidden.shape)} to features of users {tuple(features.shape)}")

# The features are equivariant to permutations of users and invariant to permutations of items.
order_u, order_i = torch.randperm(users), torch.randperm(items)
again = to_users(torch.relu(table(ratings[order_u][:, order_i])))
difference = (again - features[order_u]).abs().max()
print(f"permuted before or after: largest difference {difference:.1e}")
assert difference < 1e-4

# A tensor over pairs of users and items has order three and 10 maps to the table.
pairs = bn.EquivariantLinear("u u i -> u i", 3, 4)
print(f"\n{pairs.plan.n_maps} maps to {tuple(pairs(torch.randn(users, users, items, 3)).shape)}")

# From users to a table: the number of items, which only the target has, is an argument of the call.
to_table = bn.EquivariantLinear("u -> u i", 5, 1)
print(f"from users to {tuple(to_table(features, sizes={'i': items}).shape)}")
