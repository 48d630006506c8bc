"""Permutation-invariant outputs: linear maps to a vector, and pooling (max, sum or mean) over each orbit."""

import torch

import bellnet as bn

torch.manual_seed(0)
x = torch.randn(5, 10, 10, 3)  # five graphs, ten nodes, three channels

# An empty target: there are two invariant linear maps, the mean of the diagonal and the mean of all entries.
linear = bn.EquivariantLinear("n n ->", 3, 16)
print(linear.plan)
print(f"{tuple(x.shape)} -> {tuple(linear(x).shape)}\n")

# Pooling returns a value per orbit, here the diagonal and the off-diagonal, so that the channels double.
for reduce in ("max", "sum", "mean"):
    pool = bn.InvariantPool("n n", reduce=reduce)
    print(f"{reduce:<4} over {pool.n_orbits} orbits: {tuple(pool(x).shape)}")

# Hypergraphs of triples have Bell(3) = 5 orbits.
triples = bn.InvariantPool("n n n")
assert triples.n_orbits == bn.bell(3)
print(f"triples: {tuple(triples(torch.randn(5, 4, 4, 4, 3)).shape)}")

order = torch.randperm(10)
assert torch.equal(bn.InvariantPool("n n")(x[:, order][:, :, order]), bn.InvariantPool("n n")(x))
print("\nthe output is invariant to permutations of the nodes")
