"""The race of sparse layers runs from end to end, and its figures are computed from the measurements."""

import json
import warnings

import pytest
import torch

from benchmarks.__main__ import main
from benchmarks.measure import Timing
from benchmarks.sparse_layers import (
    QUICK,
    SparseResult,
    SparseSizes,
    _against_convolution,
    measure_sparse_layers,
    random_graph,
    sparse_table,
    sparse_verdicts,
)

CONVOLUTION = {"sparse", "gine", "gine by source", "gine shuffled"}
GROWING = ["growing", "growing, memory retained"]
TINY = SparseSizes(growing=(100, 300), convolution=200, dense_nodes=12, density=0.2)


@pytest.fixture(autouse=True)
def same_number_of_threads_afterwards():
    threads = torch.get_num_threads()
    yield
    torch.set_num_threads(threads)


def test_random_graphs_are_symmetric_and_sorted_and_have_the_number_of_edges():
    index = random_graph(50, 200)
    pairs = list(map(tuple, index.T.tolist()))
    assert pairs == sorted(set(pairs))
    assert {(b, a) for a, b in pairs} == set(pairs)
    assert 150 < len(pairs) <= 200


@pytest.fixture(scope="module")
def results():
    """Results of races on tiny graphs."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", ".torch.jit.script", DeprecationWarning)
        return measure_sparse_layers(TINY, rounds=1)


def test_every_contestant_is_measured(results):
    growing = {"1e+02", "3e+02"}
    assert [set(result.timings) for result in results] == [CONVOLUTION, {"sparse", "dense"}, growing, growing]
    assert all(peak > 0 for result in results for peak in result.peak_bytes.values())
    assert results[1].n_entries["dense"] == 144
    assert sparse_table(results).count("\n") == 11


@pytest.mark.filterwarnings("ignore:.torch.jit.script:DeprecationWarning")
def test_all_convolutions_have_the_same_edges():
    found = _against_convolution(200)
    edges = {name: call.args[0].args[1] for name, (_, call) in found.items() if name != "sparse"}
    as_sets = [set(map(tuple, torch.as_tensor(index).T.tolist())) for index in edges.values()]
    assert as_sets[0] == as_sets[1] == as_sets[2]
    assert bool((edges["gine"][1].diff() >= 0).all())
    assert not bool((edges["gine by source"][1].diff() >= 0).all())


def _result(what, entries, seconds, peaks):
    timings = {name: Timing((one,), 1) for name, one in seconds.items()}
    return SparseResult(what, entries, timings, peaks, is_steady=True)


def test_verdicts_are_ratios_per_stored_entry():
    results = [
        _result("convolution", {"sparse": 11, "gine": 10}, {"sparse": 1.2, "gine": 1.0}, {"sparse": 1, "gine": 1}),
        _result("dense", {"sparse": 5, "dense": 100}, {"sparse": 2.0, "dense": 12.0}, {"sparse": 1, "dense": 1}),
        _result("growing", {"a": 10, "b": 100}, {"a": 1.0, "b": 14.0}, {"a": 20, "b": 100}),
        _result("growing, memory retained", {"a": 10, "b": 100}, {"a": 1.0, "b": 20.0}, {"a": 20, "b": 100}),
    ]
    found = sparse_verdicts(results)
    assert [round(verdict.value, 6) for verdict in found] == [1.2, 6, 1.4, 2, 2]
    assert [verdict.reached for verdict in found] == [False, True, True, False, False]


def test_sparse_layers_can_be_measured_alone(results, tmp_path, monkeypatch, capsys):
    measured = []
    monkeypatch.setattr(
        "benchmarks.__main__.measure_sparse_layers", lambda sizes, *, rounds: measured.append(sizes) or results
    )
    main(["--quick", "--only", "sparse_layers", "--threads", "1", "--json", str(tmp_path / "record.json")])
    assert measured == [QUICK]
    record = json.loads((tmp_path / "record.json").read_text(encoding="utf-8"))
    assert (record["results"], record["imports"]) == ([], {})
    assert [race["race"] for race in record["sparse"]] == ["convolution", "dense", *GROWING]
    assert len(record["summary"]) == 5 + len(GROWING)
    assert "time, sparse/gine" in capsys.readouterr().out
