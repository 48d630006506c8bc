"""Every section runs from end to end, compares equal things, and every goal belongs to something that is measured."""

import json
from functools import partial

import pytest
import torch

from bellnet import Padded
from bellnet.kernels import kernels
from benchmarks import between, collections, products
from benchmarks.__main__ import QUESTIONS, main
from benchmarks.between import measure_between
from benchmarks.cases import CASES
from benchmarks.construction import SPEC
from benchmarks.goals import GOALS, verdicts
from benchmarks.listed import ListedResult, verdicts_on_listed
from benchmarks.measure import Race, Timing, race
from benchmarks.padded import networks, on_padded, on_tensor
from benchmarks.paper import measure_paper, training_step
from benchmarks.races import Effort, Raced, from_record, on_threads, race_record, race_table
from benchmarks.results import Result
from benchmarks.supports import share_of_joins, small_graphs
from benchmarks.twins import common_works, measure_twins
from experiments.methods.twin_reduction import equivalent_nodes

QUICK = Effort(rounds=1, quick=True)


@pytest.fixture(autouse=True)
def nothing_is_compiled_to_machine_code(monkeypatch):
    monkeypatch.setattr("benchmarks.compiled.BACKEND", "eager")


def raced(**seconds: float) -> Raced:
    return Raced("a race", 1, {name: Timing((value,), 1) for name, value in seconds.items()}, is_steady=True)


def test_a_ratio_is_named_after_its_race():
    ratio = raced(ours=3.0, bare=2.0).ratio("ours", "bare")
    assert (ratio.what, ratio.value, ratio.goal) == ("a race, ours/bare", 1.5, None)


def test_a_race_is_shown_and_recorded_with_everyone_in_it():
    shown = raced(ours=3.0, bare=2.0)
    assert race_table([shown]).splitlines()[2:] == [
        "| a race |       1 | ours | 3000.000 |",
        "| a race |       1 | bare | 2000.000 |",
    ]
    (found,) = race_record([shown])
    assert found["contestants"]["bare"] == {"median": 2.0, "samples": [2.0], "repetitions": 1}


def test_threads_are_as_many_as_before_afterwards():
    before = torch.get_num_threads()
    with on_threads(before + 1):
        assert torch.get_num_threads() == before + 1
    assert torch.get_num_threads() == before


@pytest.mark.parametrize("name", QUESTIONS)
def test_a_section_can_be_measured_alone(name, tmp_path, capsys, monkeypatch):
    # Everybody runs, but no oftener than a time needs that nobody looks at.
    monkeypatch.setattr("benchmarks.__main__.QUICK_ROUNDS", 1)
    monkeypatch.setattr("benchmarks.races.race", partial(race, warm_up=0, least_seconds=0.0))
    monkeypatch.setattr("benchmarks.layouts.COUNT", 8)
    place = tmp_path / "record.json"
    threads = torch.get_num_threads()
    try:
        main(["--quick", "--only", name, "--threads", "1", "--json", str(place)])
    finally:
        torch.set_num_threads(threads)
    record = json.loads(place.read_text(encoding="utf-8"))
    assert (record["results"], record["imports"]) == ([], {})
    assert record["races"]
    assert record["summary"]
    printed = capsys.readouterr().out
    assert QUESTIONS[name].legend in printed
    for entry in record["summary"]:
        assert entry["what"] in printed


def test_every_goal_is_the_goal_of_something_that_is_measured(monkeypatch):
    one = Timing((1.0,), 1)
    monkeypatch.setattr("benchmarks.races.race", lambda who, *, rounds: Race(dict.fromkeys(who, one), (1.0,)))
    monkeypatch.setattr("benchmarks.construction._make_once", lambda spec: 1.0)
    monkeypatch.setattr("benchmarks.construction.QUICK_SPEC", SPEC)
    measured = [verdict for question in QUESTIONS.values() for verdict in question.measure(QUICK).verdicts]
    results = []
    for case in CASES:
        timings = dict.fromkeys(case.contestants, one)
        peaks = dict.fromkeys(case.contestants, 1)
        results += [Result(case, which, timings, peaks, is_steady=True) for which in case.passes]
    measured += verdicts(results, {"torch": one, "bellnet": one})
    names = {"convolution": ("listed", "gine"), "dense": ("dense", "listed")}
    measured += verdicts_on_listed(
        [
            ListedResult(what, dict.fromkeys(who, 1), dict.fromkeys(who, one), dict.fromkeys(who, 1), is_steady=True)
            for what, who in {**names, "growing": ("a", "b"), "growing, memory kept": ("a", "b")}.items()
        ]
    )
    assert set(GOALS) <= {verdict.what for verdict in measured}


@pytest.mark.parametrize("name", networks())
def test_padded_and_tensor_give_the_same(name):
    net = networks()[name]
    x = torch.randn(3, 4, 4, net.in_channels)
    torch.testing.assert_close(on_padded(net, x, torch.full((3,), 4)), on_tensor(net, x))


def test_the_padded_contestant_is_padded():
    seen = []
    net = networks()["InvariantNet"]
    net.register_forward_pre_hook(lambda module, arguments: seen.append(type(arguments[0])))
    on_padded(net, torch.randn(3, 4, 4, net.in_channels), torch.full((3,), 4))
    assert seen == [Padded]


def test_networks_that_differ_are_not_raced(monkeypatch):
    class Other(torch.nn.Module):
        @classmethod
        def like(cls, net):
            return cls()

        def forward(self, x):
            return torch.full((len(x), 2), 1e6)

    monkeypatch.setattr("benchmarks.paper.StackedNet", Other)
    with pytest.raises(ValueError, match="the stacked network does not compute what ours computes"):
        measure_paper(QUICK)


def test_blocks_at_once_and_apart_are_what_they_are_called(monkeypatch):
    monkeypatch.setattr("bellnet.backends.fused_norm.MANY_VALUES", 1)
    normalised = []
    real = torch.batch_norm
    monkeypatch.setattr(torch, "batch_norm", lambda *given: normalised.append(1) or real(*given))
    monkeypatch.setattr(between, "raced", lambda _, contestants, **__: [run() for run in contestants.values()])
    with pytest.raises(AttributeError):  # nothing was timed
        measure_between(QUICK)
    assert len(normalised) == (1 if kernels() else 2)


def test_twins_together_and_apart_are_raced_only_if_they_say_the_same(monkeypatch):
    section = measure_twins(QUICK)
    assert [verdict.what for verdict in section.verdicts] == [
        "paper's network with twins, training step, separate/together"
    ]
    torch.manual_seed(0)
    graph = common_works(90, 12)
    assert 3 < graph.n**2 / len(equivalent_nodes(graph)) ** 2 < 5  # as in COLLAB, where it is 3.9 on the average
    monkeypatch.setattr("benchmarks.twins.equivalent_nodes", lambda graph: [[node] for node in range(graph.n - 1)])
    with pytest.raises(ValueError, match="the outputs for reduced graphs differ"):
        measure_twins(QUICK)


def test_every_training_step_begins_with_the_same_weights_and_has_all_gradients():
    net = torch.nn.Sequential(torch.nn.Linear(3, 2))
    before = {name: value.clone() for name, value in net.state_dict().items()}
    step = training_step(net, torch.randn(5, 3), torch.arange(5) % 2)
    step()
    assert all(parameter.grad.count_nonzero() > 0 for parameter in net.parameters())
    step()
    torch.testing.assert_close(net.state_dict(), before, rtol=0, atol=0)


def test_the_share_of_joins_is_neither_listing_nor_what_is_always_needed():
    assert share_of_joins(raced(new=10.0, repeated=5.0, listing=1.0)) == pytest.approx(0.4)


def test_small_graphs_list_their_diagonals_and_every_edge_with_its_reverse():
    index, sizes = small_graphs()
    tuples = list(map(tuple, index.T.tolist()))
    assert tuples == sorted(set(tuples))
    assert {(graph, b, a) for graph, a, b in tuples} == set(tuples)
    assert {(graph, node, node) for graph, size in enumerate(sizes.tolist()) for node in range(size)} <= set(tuples)


@pytest.mark.parametrize("spec", collections.SIZES)
def test_a_layer_between_several_tensors_and_its_pairs_give_the_same(spec):
    modules, tensors = collections.contestants(spec, quick=True)
    together, pairs = (modules[name](tensors) for name in (collections.TOGETHER, collections.PAIRS))
    for one, other in zip(together, pairs, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-4)
    assert len(modules[collections.PAIRS].layers) >= 4


def test_layers_with_braces_and_without_can_do_the_same_to_symmetric_matrices():
    modules, (x,) = collections.symmetric_contestants(quick=True)
    assert torch.equal(x, x.transpose(1, 2))
    braces, ordered = (modules[name].layer for name in (collections.BRACES, collections.ORDERED))
    y = braces(x)
    assert torch.equal(y, y.transpose(1, 2))
    assert ordered(x).shape == y.shape


def test_a_race_survives_being_written():
    one = raced(new=10.0, repeated=5.0)
    assert from_record(json.loads(json.dumps(race_record([one])))[0]) == one


def test_everyone_who_multiplies_gives_the_same():
    calls, x = products.contestants(*products.QUICK_CASES[0])
    by_channels = x.permute(0, 3, 1, 2).reshape(-1, 6, 6)
    expected = calls[products.EINSUM](x, x)
    for name in (products.OURS, products.BETWEEN):
        torch.testing.assert_close(calls[name](x, x), expected)
    bare = calls[products.BARE](by_channels, by_channels).reshape(2, 4, 6, 6).permute(0, 2, 3, 1)
    torch.testing.assert_close(bare, expected)


def test_scipy_multiplies_at_listed_pairs_what_we_do():
    calls = products.listed_contestants(20, 80)
    later, new, by_scipy = (calls[name]() for name in (products.LATER, products.FIRST, products.SCIPY))
    torch.testing.assert_close(later.values, new.values)
    for channel, matrix in enumerate(by_scipy):
        found = torch.from_numpy(matrix.toarray())[tuple(later.index)]
        torch.testing.assert_close(later.values[:, channel], found)
