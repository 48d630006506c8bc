"""Node classification on a large generated graph, in mini-batches of PyTorch Geometric.

The default graph is small; --nodes 1000000 generates a million nodes and ten million edges. Prints the peak memory.
"""

import argparse
import resource
import sys

import torch
from torch_geometric.data import Data
from torch_geometric.loader import RandomNodeLoader

import bellnet as bn
from bellnet.data import sparse_inputs

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--nodes", type=int, default=8_000)
parser.add_argument("--epochs", type=int, default=8)
options = parser.parse_args()
torch.manual_seed(0)
bn.keep_freed_memory()
n, n_classes, n_features = options.nodes, 5, 8

# Ten edges per node, most of them within its class, and features that are weakly correlated with the class.
label = torch.randint(n_classes, (n,)).sort()[0]
count = torch.bincount(label, minlength=n_classes)
one = torch.arange(n).repeat_interleave(10)
same = (count.cumsum(0) - count)[label[one]] + (torch.rand(len(one)) * count[label[one]]).long()
other = torch.where(torch.rand(len(one)) < 0.6, same, torch.randint(n, one.shape))
code = torch.cat([one * n + other, other * n + one]).unique()
centre = torch.randn(n_classes, n_features)
x = centre[label] + 2 * torch.randn(n, n_features)
graph = Data(x=x, y=label, edge_index=torch.stack([code // n, code % n]), test=torch.rand(n) < 0.2)
del one, same, other, code
from_features = torch.cdist(x, centre).argmin(1) == label
print(f"{n} nodes, {graph.num_edges} edges; accuracy from features {from_features[graph.test].float().mean():.1%}")

net = bn.EquivariantNet("n n -> n", [1 + n_features, 16, 16, n_classes], normalize="stored")
optimizer = torch.optim.Adam(net.parameters(), lr=0.01)
loader = RandomNodeLoader(graph, num_parts=4, shuffle=True)  # batches of a quarter of the nodes
for epoch in range(1, options.epochs + 1):
    correct = total = 0
    for part in loader:
        scores = net(sparse_inputs.from_pyg(part)).values  # one row per node
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(scores[~part.test], part.y[~part.test]).backward()
        optimizer.step()
        correct += int((scores.argmax(1) == part.y)[part.test].sum())
        total += int(part.test.sum())
    print(f"epoch {epoch}: test accuracy {correct / total:.1%}")
if sys.platform == "linux":
    print(f"peak memory of the process: {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20:.1f} GB")
