"""Predicts the accuracy of a small network from its weights, invariant to permutations of its hidden neurons.

Two thousand networks 2-8-8-1 are trained at once, with individual labels and learning rates.
"""

import argparse

import torch

import bellnet as bn

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--networks", type=int, default=2000)
parser.add_argument("--steps", type=int, default=400, help="training steps of the predictors")
options = parser.parse_args()
torch.manual_seed(0)
n, width = options.networks, 8


def run(first, second, third, x):  # all networks at once: (networks, points, 2) to (networks, points)
    hidden = torch.tanh(x @ first[..., :2].mT + first[:, None, :, 2])
    hidden = torch.tanh(hidden @ second + third[:, None, :, 0])
    return (hidden @ third[..., 1:])[..., 0]


weights = [scale * torch.randn(n, width, size) for size, scale in ((3, 1), (width, 0.35), (2, 0.35))]
weights = [weight.requires_grad_() for weight in weights]
points, test_points = (torch.rand(n, count, 2) * 2 - 1 for count in (60, 300))
signs, truth = (x.prod(-1).sign() for x in (points, test_points))
signs = signs * (1 - 2 * (torch.rand(n, 60) < 0.5 * torch.rand(n, 1)).float())  # label noise of different strength
rates = 10 ** (1.5 * torch.rand(n, 1, 1) - 1)
for _ in range(50):
    loss = torch.nn.functional.softplus(-signs * run(*weights, points)).mean(1).sum()
    with torch.no_grad():
        for weight, gradient in zip(weights, torch.autograd.grad(loss, weights), strict=True):
            weight -= rates * gradient
# b: weights and biases of the first hidden layer; b c: weights between; c: biases and output weights of the second.
first, second, third = (weight.detach() for weight in weights)
accuracy = (run(first, second, third, test_points).sign() == truth).float().mean(1)
print(f"{n} networks with accuracies from {accuracy.min():.2f} to {accuracy.max():.2f}")
order, n_train, target = torch.randperm(width), int(0.8 * n), (accuracy - accuracy.mean()) / accuracy.std()
neurons = [first, second.unsqueeze(-1), third]
permuted = [first[:, order], second[:, order].unsqueeze(-1), third]
flat, flat_permuted = (torch.cat([x.flatten(1) for x in tensors], 1).split(104, 1) for tensors in (neurons, permuted))
layers = bn.InvariantNet("b, b c, c", [(3, 1, 2), 16, 16], 1, hidden=[32], reduce="mean")
mlp = bn.InvariantNet("", [104, 64], 1, hidden=[32])  # a spec without axes is a vector: an MLP
for name, net, given, other in ("layers over neurons", layers, neurons, permuted), ("MLP", mlp, flat, flat_permuted):
    optimizer = torch.optim.AdamW(net.parameters(), lr=0.003)
    for _ in range(options.steps):
        batch = torch.randint(n_train, (64,))
        x = [tensor[batch] for tensor in given]
        optimizer.zero_grad()
        (net(x if len(x) > 1 else x[0])[:, 0] - target[batch]).square().mean().backward()
        optimizer.step()
    predicted, again = (net(x if len(x) > 1 else x[0])[:, 0].detach() for x in (given, other))
    residual = (predicted - target)[n_train:].square().mean() / target[n_train:].var()
    change = (predicted - again).abs().max()
    print(f"{name:<19} explains {1 - residual:.2f} of the variance; a permutation changes the output by {change:.0e}")
