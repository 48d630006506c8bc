"""Subjects of papers, a few of them known, from their words and from who cites whom.

The graph is one of PyTorch Geometric, `edge_index` beside `x`: edges become a `Sparse`, nodes stay the tensor they are.
"""

import torch

import bellnet as bn
from bellnet.data import generated, to_pyg

torch.manual_seed(0)
graph, subjects = generated.citations(400, classes=4, words=60)
data = to_pyg(graph)
known = torch.cat([(subjects == kind).nonzero()[:10, 0] for kind in range(4)])
unknown = torch.ones(len(subjects), dtype=torch.bool).index_fill(0, known, False)
print(f"{data.num_nodes} papers, {data.num_edges} links, {len(known)} subjects known")
edges = bn.Sparse(data.edge_index, torch.ones(data.num_edges, 1), sizes=data.num_nodes)
nets = {
    "words alone": (bn.EquivariantNet("n -> n", [60, 16, 4], dropout=0.3), data.x),
    "words and links": (
        bn.EquivariantNet("n n, n -> n", [(1, 60), 16, 16, 4], normalize="stored", dropout=0.3),
        (edges, data.x),
    ),
}
for name, (net, x) in nets.items():
    optimizer = torch.optim.Adam(net.parameters(), lr=0.01, weight_decay=5e-3)
    for _ in range(150):
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(net(x)[known], subjects[known]).backward()
        optimizer.step()
    right = net.eval()(x).argmax(-1) == subjects
    print(f"{name:<16} accuracy {right[unknown].float().mean():.2f}")
