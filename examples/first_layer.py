"""The layer on a tensor: every equivariant map from edges to edges, and a check that it is equivariant."""

import torch

import bellnet as bn

torch.manual_seed(0)

# 8 graphs of 30 nodes with 16 channels on every pair of nodes. The string is the shape of input and output.
layer = bn.EquivariantLinear("n n -> n n", 16, 32)
x = torch.randn(8, 30, 30, 16)
y = layer(x)
print(f"{tuple(x.shape)} -> {tuple(y.shape)}")
print(f"weight {tuple(layer.weight.shape)}: one matrix for each of the {layer.plan.n_maps} maps\n")

# Renumbering the nodes before the layer or after it is the same.
order = torch.randperm(30)
difference = (layer(x[:, order][:, :, order]) - y[:, order][:, :, order]).abs().max()
print(f"renumbered before or after: largest difference {difference:.1e}")
assert difference < 1e-4

# The weights do not know the number of nodes.
print(f"the same weights on 7 nodes: {tuple(layer(torch.randn(7, 7, 16)).shape)}\n")

# How it is computed: three small matrix products instead of fifteen full ones.
print(layer.plan)
