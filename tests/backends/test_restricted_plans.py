"""Maps that have nothing to do on a support are not run, and that changes nothing."""

import pytest
import torch

from bellnet import EquivariantLinear, Sparse, plan
from bellnet.backends import sparse_layout
from bellnet.backends.sparse_layout import absent_patterns, restrict_to_stored
from bellnet.combinatorics import partitions
from bellnet.plan import RestrictedPlan


def pairs(index, n=5, channels=2):
    index = torch.tensor(index)
    generator = torch.Generator().manual_seed(0)
    return Sparse(index, torch.randn(index.shape[1], channels, dtype=torch.float64, generator=generator), n)


def test_pattern_is_absent_if_no_stored_entry_has_its_equalities():
    triples = pairs([[0, 1, 2, 2], [0, 2, 1, 3], [3, 1, 0, 4]])
    assert absent_patterns(triples.support, partitions("nnn")) == {(0, 0, 0), (0, 1, 1)}
    assert absent_patterns(pairs([[0, 1], [1, 0]]).support, partitions("nn")) == {(0, 0)}
    assert absent_patterns(pairs([[0, 1], [1, 1]]).support, partitions("nn")) == frozenset()


def test_slots_of_different_node_sets_are_never_equal():
    ratings = Sparse(torch.tensor([[0, 1], [1, 0]]), torch.ones(2, 1), {"u": 2, "i": 2})
    assert absent_patterns(ratings.support, partitions("ui")) == frozenset()


def test_empty_support_does_not_restrict_the_plan():
    nothing = Sparse(torch.empty(2, 0, dtype=torch.int64), torch.empty(0, 2), 5)
    assert absent_patterns(nothing.support, partitions("nn")) == frozenset()


@pytest.mark.parametrize("spec", ["n n -> n n", "n n -> n", "n n n -> n n n", "n n -> n n n"])
@pytest.mark.parametrize("normalize", ["mean", "sum", "stored"])
def test_restricted_plan_gives_results_and_gradients_of_all_maps(spec, normalize, monkeypatch):
    source, target = (side.split() for side in spec.split("->"))
    tuples = {2: [[0, 1, 2, 4], [1, 0, 3, 2]], 3: [[0, 1, 2, 2], [0, 2, 1, 3], [3, 1, 0, 4]]}
    x = pairs(tuples[len(source)])
    support = pairs(tuples[len(target)]) if len(target) > 1 else None
    layer = EquivariantLinear(spec, 2, 3, normalize=normalize, dtype=torch.float64)

    def run():
        values = x.values.clone().requires_grad_()
        result = layer(x.with_values(values), support=support).values
        return [result, *torch.autograd.grad(result.pow(2).sum(), [values, *layer.parameters()])]

    fewer = run()
    everything = RestrictedPlan(
        layer.plan, tuple(range(layer.plan.n_maps)), tuple(range(layer.plan.n_biases)), layer.plan
    )
    monkeypatch.setattr(sparse_layout, "restrict_to_stored", lambda plan, source, target: everything)
    for found, expected in zip(fewer, run(), strict=True):
        torch.testing.assert_close(found, expected, rtol=1e-12, atol=1e-12)


def test_layer_runs_the_restricted_plan(monkeypatch):
    ran, kernels = [], sparse_layout.SparseLayout.kernels
    monkeypatch.setattr(
        sparse_layout.SparseLayout,
        "kernels",
        lambda self, left, *args, **options: ran.append(left.plan.n_maps) or kernels(self, left, *args, **options),
    )
    layer = EquivariantLinear("n n -> n n", 2, 3, dtype=torch.float64)
    hollow = pairs([[0, 1], [1, 0]])
    layer(hollow)
    layer(hollow.with_diagonal())
    layer(hollow, support=hollow.with_diagonal())
    assert ran == [7, 15, 10]


def test_graph_without_loops_runs_seven_of_fifteen_maps():
    support = pairs([[0, 1, 2, 4], [1, 0, 3, 2]]).support
    whole = plan("n n -> n n")
    left, maps, biases, _ = restrict_to_stored(whole, (support,), (support,))
    assert left.n_maps == 7
    assert [whole.diagrams[number] for number in maps] == list(left.diagrams)
    assert biases == (1,)
