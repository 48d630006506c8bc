"""Node classification of papers from words and citations, with few known labels.

The graph is a PyTorch Geometric `Data`: `edge_index` becomes a `Sparse` over edges, and `x` is a tensor over nodes.
"""

import torch

import bellnet as bn
from bellnet.data import generated, to_pyg

torch.manual_seed(0)
graph, subjects = generated.citations(400, classes=4, words=60)
data = to_pyg(graph)
known = torch.cat([(subjects == subject).nonzero()[:10, 0] for subject in range(4)])
unknown = torch.ones(len(subjects), dtype=torch.bool).index_fill(0, known, False)
print(f"{data.num_nodes} papers, {data.num_edges} links, {len(known)} known labels")
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
    is_correct = net.eval()(x).argmax(-1) == subjects
    print(f"{name:<16} accuracy {is_correct[unknown].float().mean():.2f}")
