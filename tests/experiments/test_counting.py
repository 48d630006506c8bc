"""Networks that count: what products can and linear layers cannot, and the records of it."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
import torch

import bellnet as bn
from bellnet.data import generated, to_dense
from bellnet.errors import OptionError
from bellnet.testing import assert_equivariant
from experiments.__main__ import main
from experiments.counting import QUICK as QUICK_COUNTING
from experiments.counting import counting_net, counting_table, run_counting
from experiments.data import patterns

SMALL = replace(QUICK_COUNTING, graphs=16, epochs=1, channels=4, blocks=2, nodes=(6, 8), degree=3)


@pytest.mark.parametrize("network", ["order 2", "products"])
def test_the_networks_count_the_same_however_nodes_are_numbered(network):
    net = counting_net(network, SMALL)
    assert_equivariant(net, "n n -> n", in_channels=1)
    graphs = [torch.randn(n, n, 1) for n in (5, 1, 3)]
    together = net(bn.Padded.pack(graphs, "n n")).unpack("n")
    for graph, answer in zip(graphs, together, strict=True):
        torch.testing.assert_close(answer, net(graph))


def test_products_can_count_triangles_and_linear_layers_of_order_two_cannot():
    """One cycle of six nodes and two of three: as alike to order two as graphs can be."""
    one, two = (
        bn.data.undirected(6, [(i, (i + 1) % 6) for i in range(6)]),
        bn.data.undirected(6, [(0, 1), (1, 2), (2, 0), (3, 4), (4, 5), (5, 3)]),
    )
    both = torch.stack([to_dense(one), to_dense(two)]).double()
    assert not torch.equal(*patterns.count_pattern(both, "3-cycle"))
    for network, is_told_apart in (("order 2", False), ("products", True)):
        first, second = counting_net(network, SMALL).double()(both[..., None])
        assert torch.allclose(first, second, atol=1e-9) != is_told_apart


def test_records_are_written_once_and_the_table_shows_them(tmp_path):
    told = []
    records = run_counting(tmp_path, SMALL, patterns=["3-cycle"], tell=told.append)
    assert [record["network"] for record in records] == ["order 2", "products"]
    assert len(told) == 2
    assert records[0]["versions"]["torch"] == torch.__version__
    assert run_counting(tmp_path, SMALL, patterns=["3-cycle"], tell=told.append) == records
    assert len(told) == 2, "nothing is trained twice"
    [row] = counting_table(records).rows
    assert row[:4] == ("3-cycle", f"{records[0]['error']:.4f}", f"{records[1]['error']:.4f}", "0.0003")


def test_the_error_is_that_of_an_answer_of_the_mean_if_nothing_is_learned(tmp_path):
    """With a rate of almost nothing the answer is almost zero, which is the mean: the error is the mean deviation."""
    plan = replace(SMALL, graphs=64, rate=1e-12)
    [record] = run_counting(tmp_path, plan, patterns=["3-cycle"], networks=["order 2"])
    torch.manual_seed(plan.seed)
    net = counting_net("order 2", plan)

    def counted(count, seed):
        graphs = generated.random_graphs(count, nodes=plan.nodes, degree=plan.degree, seed=seed)
        return graphs, torch.cat([patterns.count_pattern(to_dense(graph), "3-cycle") for graph in graphs])

    _, known = counted(64, plan.seed)
    graphs, wanted = counted(16, plan.seed + 1)
    with torch.no_grad():
        answers = torch.cat([net(to_dense(graph)[..., None])[:, 0] for graph in graphs])
    expected = (answers - (wanted - known.mean()) / known.std()).abs().mean()
    assert record["error"] == pytest.approx(float(expected), rel=1e-4)


def test_what_is_not_known_is_refused(tmp_path):
    with pytest.raises(OptionError, match=r"patterns must be among 3-cycle, .*; one is '9-cycle'"):
        run_counting(tmp_path, SMALL, patterns=["9-cycle"])
    with pytest.raises(OptionError, match=r"networks must be among order 2, products; one is 'GIN'"):
        run_counting(tmp_path, SMALL, networks=["GIN"])


def test_the_command_prints_the_table(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("experiments.__main__.QUICK_COUNTING", SMALL)
    assert main(["counting", "--quick", "--pattern", "4-cycle", "--out", str(tmp_path)]) == 0
    printed = capsys.readouterr()
    assert "4-cycle" in printed.out
    assert "0.0009" in printed.out
    assert "4-cycle, products: error" in printed.err


def test_the_page_has_the_figures_of_the_recorded_run():
    root = Path(__file__).parents[2]
    lines = (root / "results" / "counting" / "records.jsonl").read_text().splitlines()
    table = counting_table([json.loads(line) for line in lines])
    assert [row[0] for row in table.rows] == [*patterns.PATTERNS]
    page = (root / "docs" / "expressive.md").read_text()
    for row in table.rows:
        assert "| " + " | ".join(map(str, row)) + " |" in page
