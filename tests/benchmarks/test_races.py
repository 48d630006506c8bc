"""Every section runs from end to end and compares equal functions, and every goal belongs to a figure."""

import json
from functools import partial

import pytest
import torch

from bellnet import Padded
from bellnet.kernels import kernels
from benchmarks import collections, fused_norm, products
from benchmarks.__main__ import QUESTIONS, main
from benchmarks.cases import CASES
from benchmarks.construction import SPEC
from benchmarks.fused_norm import measure_fused_norm
from benchmarks.goals import GOALS, verdicts
from benchmarks.measure import Race, Timing, race
from benchmarks.padded import networks, on_padded, on_tensor
from benchmarks.paper import measure_paper, training_step
from benchmarks.races import Effort, Raced, from_record, on_threads, race_record, race_table
from benchmarks.results import Result
from benchmarks.sparse_layers import SparseResult, sparse_verdicts
from benchmarks.supports import share_of_index_tables, small_graphs
from benchmarks.twin_reduction import common_works, measure_twin_reduction
from experiments.methods.twin_reduction import equivalent_nodes

QUICK = Effort(rounds=1, quick=True)


@pytest.fixture(autouse=True)
def eager_compilation(monkeypatch):
    monkeypatch.setattr("benchmarks.compiled.BACKEND", "eager")


def raced(**seconds: float) -> Raced:
    return Raced("a race", 1, {name: Timing((value,), 1) for name, value in seconds.items()}, is_steady=True)


def test_a_ratio_is_named_after_its_race():
    ratio = raced(ours=3.0, bare=2.0).ratio("ours", "bare")
    assert (ratio.what, ratio.value, ratio.goal) == ("a race, ours/bare", 1.5, None)


def test_a_race_is_printed_and_recorded_with_every_contestant():
    shown = raced(ours=3.0, bare=2.0)
    assert race_table([shown]).splitlines()[2:] == [
        "| a race |       1 | ours       | 3000.000 |",
        "| a race |       1 | bare       | 2000.000 |",
    ]
    (found,) = race_record([shown])
    assert found["contestants"]["bare"] == {"median": 2.0, "samples": [2.0], "repetitions": 1}


def test_the_number_of_threads_is_restored():
    before = torch.get_num_threads()
    with on_threads(before + 1):
        assert torch.get_num_threads() == before + 1
    assert torch.get_num_threads() == before


@pytest.mark.parametrize("name", QUESTIONS)
def test_a_section_can_be_measured_alone(name, tmp_path, capsys, monkeypatch):
    # Every contestant runs, with as few repetitions as possible.
    monkeypatch.setattr("benchmarks.__main__.QUICK_ROUNDS", 1)
    monkeypatch.setattr("benchmarks.races.race", partial(race, warm_up=0, least_seconds=0.0))
    monkeypatch.setattr("benchmarks.layouts.COUNT", 8)
    path = tmp_path / "record.json"
    threads = torch.get_num_threads()
    try:
        main(["--quick", "--only", name, "--threads", "1", "--json", str(path)])
    finally:
        torch.set_num_threads(threads)
    record = json.loads(path.read_text(encoding="utf-8"))
    assert (record["results"], record["imports"]) == ([], {})
    assert record["races"]
    assert record["summary"]
    printed = capsys.readouterr().out
    assert QUESTIONS[name].legend in printed
    for entry in record["summary"]:
        assert entry["what"] in printed


def test_every_goal_belongs_to_a_measured_figure(monkeypatch):
    one = Timing((1.0,), 1)
    monkeypatch.setattr("benchmarks.races.race", lambda calls, *, rounds: Race(dict.fromkeys(calls, one), (1.0,)))
    monkeypatch.setattr("benchmarks.construction._make_once", lambda spec: 1.0)
    monkeypatch.setattr("benchmarks.construction.QUICK_SPEC", SPEC)
    measured = [verdict for question in QUESTIONS.values() for verdict in question.measure(QUICK).verdicts]
    results = []
    for case in CASES:
        timings = dict.fromkeys(case.contestants, one)
        peaks = dict.fromkeys(case.contestants, 1)
        results += [Result(case, which, timings, peaks, is_steady=True) for which in case.passes]
    measured += verdicts(results, {"torch": one, "bellnet": one})
    names = {"convolution": ("sparse", "gine"), "dense": ("dense", "sparse")}
    measured += sparse_verdicts(
        [
            SparseResult(
                what,
                dict.fromkeys(pair, 1),
                dict.fromkeys(pair, one),
                dict.fromkeys(pair, 1),
                is_steady=True,
            )
            for what, pair in {**names, "growing": ("a", "b"), "growing, memory retained": ("a", "b")}.items()
        ]
    )
    assert set(GOALS) <= {verdict.what for verdict in measured}


@pytest.mark.parametrize("name", networks())
def test_padded_and_tensor_have_equal_outputs(name):
    net = networks()[name]
    x = torch.randn(3, 4, 4, net.in_channels)
    torch.testing.assert_close(on_padded(net, x, torch.full((3,), 4)), on_tensor(net, x))


def test_the_padded_contestant_is_padded():
    seen = []
    net = networks()["InvariantNet"]
    net.register_forward_pre_hook(lambda module, arguments: seen.append(type(arguments[0])))
    on_padded(net, torch.randn(3, 4, 4, net.in_channels), torch.full((3,), 4))
    assert seen == [Padded]


def test_networks_that_differ_raise(monkeypatch):
    class Other(torch.nn.Module):
        @classmethod
        def like(cls, net):
            return cls()

        def forward(self, x):
            return torch.full((len(x), 2), 1e6)

    monkeypatch.setattr("benchmarks.paper.StackedNet", Other)
    with pytest.raises(ValueError, match="the outputs of the stacked network and of ours differ"):
        measure_paper(QUICK)


def test_fused_and_separate_blocks_run_as_named(monkeypatch):
    monkeypatch.setattr("bellnet.backends.fused_norm.MANY_VALUES", 1)
    normalised = []
    real = torch.batch_norm
    monkeypatch.setattr(torch, "batch_norm", lambda *given: normalised.append(1) or real(*given))
    monkeypatch.setattr(fused_norm, "raced", lambda _, contestants, **__: [run() for run in contestants.values()])
    with pytest.raises(AttributeError):  # the mock returns no times
        measure_fused_norm(QUICK)
    assert len(normalised) == (1 if kernels() else 2)


def test_reduced_and_full_graphs_are_raced_only_if_their_outputs_agree(monkeypatch):
    section = measure_twin_reduction(QUICK)
    assert [verdict.what for verdict in section.verdicts] == [
        "paper's network with equivalent nodes, training step, full/reduced"
    ]
    torch.manual_seed(0)
    graph = common_works(90, 12)
    assert 3 < graph.n**2 / len(equivalent_nodes(graph)) ** 2 < 5  # as in COLLAB, where it is 3.9 on the average
    monkeypatch.setattr("benchmarks.twin_reduction.equivalent_nodes", lambda graph: [[i] for i in range(graph.n - 1)])
    with pytest.raises(ValueError, match="the outputs for reduced and full graphs differ"):
        measure_twin_reduction(QUICK)


def test_every_training_step_begins_with_the_same_weights_and_has_all_gradients():
    net = torch.nn.Sequential(torch.nn.Linear(3, 2))
    before = {name: value.clone() for name, value in net.state_dict().items()}
    step = training_step(net, torch.randn(5, 3), torch.arange(5) % 2)
    step()
    assert all(parameter.grad.count_nonzero() > 0 for parameter in net.parameters())
    step()
    torch.testing.assert_close(net.state_dict(), before, rtol=0, atol=0)


def test_the_share_of_index_tables_excludes_construction_and_a_repeated_support():
    assert share_of_index_tables(raced(new=10.0, repeated=5.0, construction=1.0)) == pytest.approx(0.4)


def test_small_graphs_store_their_diagonal_and_every_edge_with_its_reverse():
    index, sizes = small_graphs()
    tuples = list(map(tuple, index.T.tolist()))
    assert tuples == sorted(set(tuples))
    assert {(graph, b, a) for graph, a, b in tuples} == set(tuples)
    assert {(graph, node, node) for graph, size in enumerate(sizes.tolist()) for node in range(size)} <= set(tuples)


@pytest.mark.parametrize("spec", collections.SIZES)
def test_a_layer_between_several_tensors_equals_its_pairs(spec):
    modules, tensors = collections.contestants(spec, quick=True)
    together, pairs = (modules[name](tensors) for name in (collections.TOGETHER, collections.PAIRS))
    for one, other in zip(together, pairs, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-4)
    assert len(modules[collections.PAIRS].layers) >= 4


def test_layers_with_and_without_braces_accept_the_same_symmetric_matrices():
    modules, (x,) = collections.symmetric_contestants(quick=True)
    assert torch.equal(x, x.transpose(1, 2))
    braces, ordered = (modules[name].layer for name in (collections.BRACES, collections.ORDERED))
    y = braces(x)
    assert torch.equal(y, y.transpose(1, 2))
    assert ordered(x).shape == y.shape


def test_a_race_equals_its_record():
    one = raced(new=10.0, repeated=5.0)
    assert from_record(json.loads(json.dumps(race_record([one])))[0]) == one


def test_all_products_are_equal():
    calls, x = products.contestants(*products.QUICK_CASES[0])
    by_channels = x.permute(0, 3, 1, 2).reshape(-1, 6, 6)
    expected = calls[products.EINSUM](x, x)
    for name in (products.OURS, products.BETWEEN):
        torch.testing.assert_close(calls[name](x, x), expected)
    bare = calls[products.BARE](by_channels, by_channels).reshape(2, 4, 6, 6).permute(0, 2, 3, 1)
    torch.testing.assert_close(bare, expected)


def test_scipy_and_product_are_equal_at_stored_entries():
    calls = products.sparse_contestants(20, 80)
    later, new, by_scipy = (calls[name]() for name in (products.LATER, products.FIRST, products.SCIPY))
    torch.testing.assert_close(later.values, new.values)
    for channel, matrix in enumerate(by_scipy):
        found = torch.from_numpy(matrix.toarray())[tuple(later.index)]
        torch.testing.assert_close(later.values[:, channel], found)
