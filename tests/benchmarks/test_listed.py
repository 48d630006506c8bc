"""The race of listed tuples runs from end to end, and its figures are worked out from what was measured."""

import json
import warnings

import pytest
import torch

from benchmarks.__main__ import main
from benchmarks.listed import (
    QUICK,
    ListedResult,
    ListedSizes,
    _against_convolution,
    listed_table,
    measure_listed,
    random_graph,
    verdicts_on_listed,
)
from benchmarks.measure import Timing

CONVOLUTION = {"listed", "gine", "gine by source", "gine shuffled"}
GROWING = ["growing", "growing, memory kept"]
TINY = ListedSizes(growing=(100, 300), convolution=200, dense_nodes=12, density=0.2)


@pytest.fixture(autouse=True)
def same_number_of_threads_afterwards():
    threads = torch.get_num_threads()
    yield
    torch.set_num_threads(threads)


def test_the_graph_is_symmetric_sorted_and_has_about_so_many_edges():
    index = random_graph(50, 200)
    pairs = list(map(tuple, index.T.tolist()))
    assert pairs == sorted(set(pairs))
    assert {(b, a) for a, b in pairs} == set(pairs)
    assert 150 < len(pairs) <= 200


@pytest.fixture(scope="module")
def results():
    """Races on tiny graphs, run."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", ".torch.jit.script", DeprecationWarning)
        return measure_listed(TINY, rounds=1)


def test_everyone_is_measured(results):
    growing = {"1e+02", "3e+02"}
    assert [set(result.timings) for result in results] == [CONVOLUTION, {"listed", "dense"}, growing, growing]
    assert all(peak > 0 for result in results for peak in result.peak_bytes.values())
    assert results[1].n_tuples["dense"] == 144
    assert listed_table(results).count("\n") == 11


@pytest.mark.filterwarnings("ignore:.torch.jit.script:DeprecationWarning")
def test_the_order_of_its_edges_does_not_change_what_the_convolution_computes():
    found = _against_convolution(200)
    edges = {name: call.args[0].args[1] for name, (_, call) in found.items() if name != "listed"}
    as_sets = [set(map(tuple, torch.as_tensor(index).T.tolist())) for index in edges.values()]
    assert as_sets[0] == as_sets[1] == as_sets[2]
    assert bool((edges["gine"][1].diff() >= 0).all())
    assert not bool((edges["gine by source"][1].diff() >= 0).all())


def _result(what, tuples, seconds, peaks):
    timings = {name: Timing((one,), 1) for name, one in seconds.items()}
    return ListedResult(what, tuples, timings, peaks, is_steady=True)


def test_the_verdicts_are_ratios_for_one_tuple():
    results = [
        _result("convolution", {"listed": 11, "gine": 10}, {"listed": 1.2, "gine": 1.0}, {"listed": 1, "gine": 1}),
        _result("dense", {"listed": 5, "dense": 100}, {"listed": 2.0, "dense": 12.0}, {"listed": 1, "dense": 1}),
        _result("growing", {"a": 10, "b": 100}, {"a": 1.0, "b": 14.0}, {"a": 20, "b": 100}),
        _result("growing, memory kept", {"a": 10, "b": 100}, {"a": 1.0, "b": 20.0}, {"a": 20, "b": 100}),
    ]
    found = verdicts_on_listed(results)
    assert [round(verdict.value, 6) for verdict in found] == [1.2, 6, 1.4, 2, 2]
    assert [verdict.reached for verdict in found] == [False, True, True, False, False]


def test_listed_tuples_can_be_measured_alone(results, tmp_path, monkeypatch, capsys):
    asked = []
    monkeypatch.setattr("benchmarks.__main__.measure_listed", lambda sizes, *, rounds: asked.append(sizes) or results)
    main(["--quick", "--only", "listed", "--threads", "1", "--json", str(tmp_path / "record.json")])
    assert asked == [QUICK]
    record = json.loads((tmp_path / "record.json").read_text(encoding="utf-8"))
    assert (record["results"], record["imports"]) == ([], {})
    assert [race["race"] for race in record["listed"]] == ["convolution", "dense", *GROWING]
    assert len(record["summary"]) == 5 + len(GROWING)
    assert "time, listed/gine" in capsys.readouterr().out
