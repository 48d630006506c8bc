"""Networks of integers are exact: nothing is rounded, and cubes are bijective."""

from dataclasses import replace
from itertools import product

import pytest
import torch
from torch import nn

import bellnet as bn
from experiments.expressive.networks import EXACT, Cube, matrices, models, prime_for, with_integers

MODELS = [replace(model, layers=3, channels=3) for model in models()[:-1]]


def graph(n=7, seed=0):
    pairs = torch.combinations(torch.arange(n))
    return bn.data.undirected(n, pairs[torch.rand(len(pairs), generator=torch.Generator().manual_seed(seed)) < 0.5])


@pytest.mark.parametrize("terms", [1, 1000, 2**20, 2**33])
def test_a_prime_is_prime_small_enough_and_cubes_of_its_remainders_differ(terms):
    prime = prime_for(terms)
    assert all(prime % factor for factor in range(2, int(prime**0.5) + 1))
    assert terms * prime**2 <= EXACT
    assert len(Cube(prime)(torch.arange(prime, dtype=torch.float64)).unique()) == prime


def test_a_cube_is_that_of_integers():
    numbers = [0, 1, 5, 1018, 2**52, 2**53 - 1]
    found = Cube(1019)(torch.tensor(numbers, dtype=torch.float64))
    assert found.tolist() == [number**3 % 1019 for number in numbers]


@pytest.mark.parametrize("spec", ["n n -> n n", "n n -> n n n"])
def test_a_layer_equals_a_sum_over_python_integers(spec):
    """Weights close to the prime, and the diagrams by their names."""
    prime, n = prime_for(2**20), 3
    layer = with_integers(bn.EquivariantLinear(spec, 2, 1, normalize="sum"), prime, seed=1)
    x = torch.randint(prime, (n, n, 2), generator=torch.Generator().manual_seed(0)).double()
    found = layer(x).squeeze(-1)
    bias = bn.EquivariantLinear(spec, 1, 1, normalize="sum", bias=True)
    with torch.no_grad():
        bias.weight.zero_()
        bias.bias.copy_(layer.bias)
        constant = bias.double()(torch.zeros(n, n, 1).double()).squeeze(-1)
    for place in product(range(n), repeat=found.ndim):
        total = int(constant[place])
        for diagram, weights in zip(layer.plan.diagrams, layer.weight.squeeze(-1).tolist(), strict=True):
            source, target = diagram.name.split("->")
            for entry in product(range(n), repeat=2):
                pairs = {*zip(source, entry, strict=True), *zip(target, place, strict=True)}
                if len(pairs) == len({letter for letter, _ in pairs}):  # every letter is one node
                    total += sum(int(w) * int(v) for w, v in zip(weights, x[entry].tolist(), strict=True))
        assert int(found[place]) == total % prime


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.name)
def test_no_value_inside_a_network_exceeds_the_integers_of_float64(model):
    some = graph(9)
    prime = model.prime(some.n, model.layers)
    net, seen = with_integers(model.make(model, prime, model.layers), prime, seed=0), []

    def look(module, inputs, found):
        seen.append(float(found.detach().abs().max()))
        assert torch.equal(found, found.round())

    for module in net.modules():
        if isinstance(module, (bn.EquivariantLinear, bn.Product, bn.InvariantPool, nn.Linear)):
            module.register_forward_hook(look, prepend=True)  # before the remainder is taken
    net(matrices(some))
    assert len(seen) > 3
    assert max(seen) < EXACT


def test_the_matrices_of_a_graph_are_its_adjacency_and_the_identity():
    found = matrices(bn.data.undirected(3, [(0, 2)]))
    assert found[..., 0].tolist() == [[0, 0, 1], [0, 0, 0], [1, 0, 0]]
    assert found[..., 1].tolist() == torch.eye(3).tolist()
