"""All permutation-equivariant linear maps from edges to edges in one layer, and a check of its equivariance."""

import torch

import bellnet as bn

torch.manual_seed(0)

# 8 graphs of 30 nodes with 16 channels per pair of nodes. The spec names the axes of input and output.
layer = bn.EquivariantLinear("n n -> n n", 16, 32)
x = torch.randn(8, 30, 30, 16)
y = layer(x)
print(f"{tuple(x.shape)} -> {tuple(y.shape)}")
print(f"weight {tuple(layer.weight.shape)}: one matrix per map, {layer.plan.n_maps} maps\n")

# A permutation of the nodes commutes with the layer.
order = torch.randperm(30)
difference = (layer(x[:, order][:, :, order]) - y[:, order][:, :, order]).abs().max()
print(f"permutation before or after the layer: largest difference {difference:.1e}")
assert difference < 1e-4

# The weights do not depend on the number of nodes.
print(f"the same weights on 7 nodes: {tuple(layer(torch.randn(7, 7, 16)).shape)}\n")

# The plan: three small matrix products instead of fifteen of full size.
print(layer.plan)
