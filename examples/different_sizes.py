"""Graph classification with graphs of different sizes in one padded batch; padding does not influence the output."""

import torch
from torch import nn

import bellnet as bn

torch.manual_seed(0)

graphs = [torch.randn(n, n, 4) for n in (3, 9, 1, 6)]
batch = bn.Padded.pack(graphs)
print(f"values {tuple(batch.values.shape)}, sizes {batch.sizes.tolist()}")


# Two layers from edges to edges, max pooling over each orbit, and a linear layer.
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

in_batch = net(batch)
single = torch.cat([net(bn.Padded.pack([graph])) for graph in graphs])
difference = (in_batch - single).abs().max()
print(f"batch or single graphs: largest difference {difference:.1e}")
assert difference < 1e-4

# The padding may contain any values.
garbage = batch.values.clone()
garbage[0, 3:] = torch.nan
garbage[0, :, 3:] = torch.nan
assert torch.equal(net(bn.Padded(garbage, batch.sizes)), in_batch)
print("NaN in the padding does not change the output")
