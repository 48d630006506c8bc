"""How good a small network is, told from its weights alone, however its hidden neurons are numbered.

Networks 2-8-8-1 are trained here, two thousand at once, each with labels and a learning rate of its own.
"""

import argparse

import torch

import bellnet as bn

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--networks", type=int, default=2000)
parser.add_argument("--steps", type=int, default=400, help="of training those that read weights")
options = parser.parse_args()
torch.manual_seed(0)
n, width = options.networks, 8


def run(first, second, third, x):  # all networks at once: (networks, points, 2) to (networks, points)
    hidden = torch.tanh(x @ first[..., :2].mT + first[:, None, :, 2])
    hidden = torch.tanh(hidden @ second + third[:, None, :, 0])
    return (hidden @ third[..., 1:])[..., 0]


weights = [scale * torch.randn(n, width, several) for several, scale in ((3, 1), (width, 0.35), (2, 0.35))]
weights = [one.requires_grad_() for one in weights]
points, unseen = (torch.rand(n, several, 2) * 2 - 1 for several in (60, 300))
signs, truth = (x.prod(-1).sign() for x in (points, unseen))
signs = signs * (1 - 2 * (torch.rand(n, 60) < 0.5 * torch.rand(n, 1)).float())  # some are taught worse than others
rates = 10 ** (1.5 * torch.rand(n, 1, 1) - 1)
for _ in range(50):
    loss = torch.nn.functional.softplus(-signs * run(*weights, points)).mean(1).sum()
    with torch.no_grad():
        for one, gradient in zip(weights, torch.autograd.grad(loss, weights), strict=True):
            one -= rates * gradient
# b: weights and biases into the first hidden neurons; b c: weights between; c: biases and weights of the second ones.
first, second, third = (one.detach() for one in weights)
accuracy = (run(first, second, third, unseen).sign() == truth).float().mean(1)
print(f"{n} networks with accuracies from {accuracy.min():.2f} to {accuracy.max():.2f}")
order, taught, goal = torch.randperm(width), int(0.8 * n), (accuracy - accuracy.mean()) / accuracy.std()
neurons = [first, second.unsqueeze(-1), third]
renumbered = [first[:, order], second[:, order].unsqueeze(-1), third]
in_a_row, moved = (torch.cat([one.flatten(1) for one in several], 1).split(104, 1) for several in (neurons, renumbered))
layers = bn.InvariantNet("b, b c, c", [(3, 1, 2), 16, 16], 1, hidden=[32], reduce="mean")
flat = bn.InvariantNet("", [104, 64], 1, hidden=[32])  # no neurons, but a vector: a plain MLP
for name, net, given, other in ("layers over neurons", layers, neurons, renumbered), ("MLP", flat, in_a_row, moved):
    optimizer = torch.optim.AdamW(net.parameters(), lr=0.003)
    for _ in range(options.steps):
        some = torch.randint(taught, (64,))
        x = [one[some] for one in given]
        optimizer.zero_grad()
        (net(x if len(x) > 1 else x[0])[:, 0] - goal[some]).square().mean().backward()
        optimizer.step()
    found, again = (net(x if len(x) > 1 else x[0])[:, 0].detach() for x in (given, other))
    left, change = (found - goal)[taught:].square().mean() / goal[taught:].var(), (found - again).abs().max()
    print(f"{name:<19} explains {1 - left:.2f} of the variance; renumbering moves it by {change:.0e}")
