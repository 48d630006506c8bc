"""Graphs of different sizes in one batch: padded values, true sizes, and a network that does not see the padding."""

import torch
from torch import nn

import bellnet as bn

torch.manual_seed(0)

graphs = [torch.randn(n, n, 4) for n in (3, 9, 1, 6)]
batch = bn.Padded.pack(graphs)
print(f"values {tuple(batch.values.shape)}, sizes {batch.sizes.tolist()}")


# Two layers from edges to edges, the maximum over each orbit, and a linear layer on what is left.
net = nn.Sequential(
    bn.EquivariantLinear("n n -> n n", 4, 16),
    bn.Pointwise(nn.ReLU()),  # for tensors and for Padded
    bn.EquivariantLinear("n n -> n n", 16, 16),
    bn.Pointwise(nn.ReLU()),
    bn.InvariantPool("n n", reduce="max"),  # the diagonal and the off-diagonal: twice the channels
    nn.Linear(32, 3),
)
bn.testing.assert_invariant(net, "n n", in_channels=4)
bn.testing.assert_padding_invariant(net, "n n ->", in_channels=4)

together = net(batch)
one_by_one = torch.cat([net(bn.Padded.pack([graph])) for graph in graphs])
difference = (together - one_by_one).abs().max()
print(f"together or one by one: largest difference {difference:.1e}")
assert difference < 1e-4

# The padding may hold anything.
garbage = batch.values.clone()
garbage[0, 3:] = torch.nan
garbage[0, :, 3:] = torch.nan
assert torch.equal(net(bn.Padded(garbage, batch.sizes)), together)
print("garbage in the padding changes nothing")
