"""Initial weights keep the second moment of the activations through a deep stack with ReLU."""

import math
from collections import Counter
from collections.abc import Callable
from itertools import product

import pytest
import torch
from torch import Tensor

import bellnet as bn
from bellnet.combinatorics import blocks_of, is_finer, moebius, partitions
from bellnet.nn.linear import _orbits_to_broadcasts, variance_shares
from tests.plan.test_declared import SPECS

STACKS = ["n -> n", "n n -> n n", "n n n -> n n n", "u i -> u i", "u u i -> u u i"]
Draw = Callable[[bn.EquivariantLinear], None]


def keep(layer: bn.EquivariantLinear) -> None:
    """Leave the weights as they were drawn."""


def draw_independently(layer: bn.EquivariantLinear) -> None:
    """The variance of the released code of the paper: 2 / (in + out) for each of the maps."""
    torch.nn.init.normal_(layer.weight, std=math.sqrt(2 / (layer.in_channels + layer.out_channels)))


def second_moments(spec: str, n: int, channels: int, depth: int, draw: Draw, inputs: str, seeds: int = 8) -> Tensor:
    """Of every activation of a stack relative to that of the input, averaged over seeds: (depth,)."""
    found = []
    for seed in range(seeds):
        torch.manual_seed(seed)
        order = len(spec.split("->")[0].split())
        make = {"normal": torch.randn, "uniform": torch.rand}[inputs]
        x = make(4, *[n] * order, channels)
        before = x.pow(2).mean()
        moments = []
        with torch.no_grad():
            for _ in range(depth):
                layer = bn.EquivariantLinear(spec, channels, channels)
                draw(layer)
                x = layer(x).relu()
                moments.append(x.pow(2).mean() / before)
        found.append(torch.stack(moments))
    return torch.stack(found).mean(0)


@pytest.mark.parametrize("inputs", ["normal", "uniform"])
@pytest.mark.parametrize("channels", [16, 64])
@pytest.mark.parametrize("n", [2, 5, 12])
@pytest.mark.parametrize("spec", STACKS)
def test_a_stack_of_ten_layers_keeps_the_second_moment(spec: str, n: int, channels: int, inputs: str) -> None:
    if len(spec.split()) == 7 and n == 12 and channels == 64:
        n = 8  # 12^3 entries of 64 channels take long and show nothing new
    moments = second_moments(spec, n, channels, depth=10, draw=keep, inputs=inputs)
    # A stack of dense layers of width 16 varies as much: its log moment spreads by sqrt(5 depth / width), about 1.8.
    factor = 4 if channels == 64 else 10
    assert moments.min() > 1 / factor
    assert moments.max() < factor


def test_independent_weights_do_not_keep_the_second_moment() -> None:
    moments = second_moments("n n -> n n", 5, 64, depth=10, draw=draw_independently, inputs="uniform", seeds=2)
    assert moments[-1] > 1e3


@pytest.mark.parametrize("spec", ["n -> n", "u i -> u i"])
def test_a_layer_without_diagonals_keeps_the_second_moment_of_any_input_on_average(spec: str) -> None:
    torch.manual_seed(0)
    order = len(spec.split("->")[0].split())
    for x in (torch.randn(*[6] * order, 32), torch.ones(*[6] * order, 32), torch.rand(*[6] * order, 32) ** 4):
        moments = [bn.EquivariantLinear(spec, 32, 2048)(x).pow(2).mean() for _ in range(4)]
        ratio = torch.stack(moments).mean() / (2 * x.pow(2).mean())  # ReLU takes the other half
        assert float(ratio.detach()) == pytest.approx(1, abs=0.1)


@pytest.mark.parametrize("n", [3, 10])
def test_every_orbit_of_the_output_has_the_same_second_moment_for_constant_inputs(n: int) -> None:
    torch.manual_seed(0)
    layer = bn.EquivariantLinear("n n n -> n n n", 64, 512)
    y = layer(torch.ones(n, n, n, 64)).detach()
    for entry in (y[0, 0, 0], y[0, 0, 1], y[0, 1, 0], y[1, 0, 0], y[0, 1, 2]):
        assert float(entry.pow(2).mean()) == pytest.approx(2, rel=0.35)


@pytest.mark.parametrize("declared", [{}, {"symmetric": True}, {"symmetric": True, "hollow": True}])
@pytest.mark.parametrize("spec", ["n n -> n n", "n n n -> n n", "n n -> n", "u u i -> i u", "n n ->", "-> n n"])
def test_the_shares_of_one_orbit_sum_to_the_number_of_components_that_fit(spec: str, declared: dict[str, bool]) -> None:
    plan = bn.plan(spec, **declared)
    sums: dict[tuple[int, ...], float] = {}
    for diagram, share in zip(plan.diagrams, variance_shares(plan), strict=True):
        assert share > 0
        if not diagram.crossing:  # the mean over everything: one placing for each diagonal
            sums[diagram.broadcast.blocks] = sums.get(diagram.broadcast.blocks, 0) + share
    assert all(total == pytest.approx(1) for total in sums.values())


def test_the_same_seed_draws_the_same_weights_and_biases_start_at_zero() -> None:
    layers = []
    for _ in range(2):
        torch.manual_seed(3)
        layers.append(bn.EquivariantLinear("n n -> n n", 2, 3))
    assert torch.equal(layers[0].weight, layers[1].weight)
    assert layers[0].bias is not None
    assert not layers[0].bias.any()


def test_both_bases_are_drawn_from_the_same_maps() -> None:
    layers = []
    for basis in ("diagram", "orbit"):
        torch.manual_seed(0)
        layers.append(bn.EquivariantLinear("n n -> n n", 2, 3, basis=basis, normalize="sum", dtype=torch.float64))
    x = torch.randn(4, 4, 2, dtype=torch.float64)
    torch.testing.assert_close(layers[0](x), layers[1](x), rtol=1e-5, atol=1e-5)


def all_maps(plan: bn.Plan) -> list[bn.Diagram]:
    """Every diagram that is not zero on declared inputs, those that a symmetry makes alike included."""
    diagrams = [bn.Diagram(partition, *plan.spec.set_numbers) for partition in partitions(plan.spec.slots)]
    return [diagram for diagram in diagrams if plan.symmetry.representative(diagram.partition) is not None]


def shares_by_definition(plan: bn.Plan) -> list[float]:
    """Diagonals share an orbit of the output, a small part for those that do not fit where the whole source does."""

    def n_blocks(blocks: tuple[int, ...], sets: tuple[int, ...]) -> "Counter[int]":
        return Counter(dict(zip(blocks, sets, strict=True)).values())

    everything = all_maps(plan)
    source, target = plan.spec.set_numbers
    small = Counter(source) <= Counter(target)
    found: Counter[tuple[int, ...] | None] = Counter()
    for orbit in {diagram.broadcast.blocks for diagram in everything}:
        portions = {
            contraction: 0.1 if small and not n_blocks(contraction, source) <= n_blocks(orbit, target) else 1.0
            for contraction in {diagram.contraction.blocks for diagram in everything}
        }
        onto = [diagram for diagram in everything if diagram.broadcast.blocks == orbit]
        placings = Counter(diagram.contraction for diagram in onto)
        for diagram in onto:
            share = portions[diagram.contraction.blocks] / sum(portions.values())
            found[plan.symmetry.representative(diagram.partition)] += share / placings[diagram.contraction]  # type: ignore[assignment]
    return [found[diagram.partition] for diagram in plan.diagrams]


@pytest.mark.parametrize(("symmetric", "hollow"), list(product([False, True], repeat=2)))
def test_shares_are_those_of_all_maps_that_a_map_represents(symmetric: bool, hollow: bool) -> None:
    for spec in [*SPECS, "n n n -> n n n", "u u i -> u u i"]:
        plan = bn.plan(spec, symmetric=symmetric, hollow=hollow)
        assert variance_shares(plan) == pytest.approx(shares_by_definition(plan), rel=1e-12), spec


@pytest.mark.parametrize(("symmetric", "hollow"), list(product([False, True], repeat=2)))
def test_maps_onto_orbits_merge_only_blocks_that_reach_the_target(symmetric: bool, hollow: bool) -> None:
    for spec in [*SPECS, "n n n -> n n n", "u u i -> u u i"]:
        plan = bn.plan(spec, symmetric=symmetric, hollow=hollow)
        order = len(plan.spec.source)

        def n_unwritten(partition: tuple[int, ...], order: int = order) -> int:
            return sum(max(block) < order for block in blocks_of(partition))

        number = {diagram.partition: number for number, diagram in enumerate(plan.diagrams)}
        expected: Counter[tuple[int, int]] = Counter()
        for diagram, fine in product(all_maps(plan), number):
            coarse = diagram.partition
            if is_finer(fine, coarse) and n_unwritten(fine) == n_unwritten(coarse):
                same = plan.symmetry.representative(coarse)
                assert same is not None
                expected[number[same], number[fine]] += moebius(fine, coarse)
        found = {(row, column): value for row, column, value in _orbits_to_broadcasts(plan)}
        assert found == {index: value for index, value in expected.items() if value}, spec
