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
def test_the_networks_are_equivariant_and_padding_invariant(network):
    net = counting_net(network, SMALL)
    assert_equivariant(net, "n n -> n", in_channels=1)
    graphs = [torch.randn(n, n, 1) for n in (5, 1, 3)]
    together = net(bn.Padded.pack(graphs, "n n")).unpack("n")
    for graph, output in zip(graphs, together, strict=True):
        torch.testing.assert_close(output, net(graph))


def test_products_can_count_triangles_and_linear_layers_of_order_two_cannot():
    """One cycle of six nodes and two of three: which order 2 does not distinguish."""
    one, two = (
        bn.data.undirected(6, [(i, (i + 1) % 6) for i in range(6)]),
        bn.data.undirected(6, [(0, 1), (1, 2), (2, 0), (3, 4), (4, 5), (5, 3)]),
    )
    both = torch.stack([to_dense(one), to_dense(two)]).double()
    assert not torch.equal(*patterns.count_pattern(both, "3-cycle"))
    for network, is_distinguished in (("order 2", False), ("products", True)):
        first, second = counting_net(network, SMALL).double()(both[..., None])
        assert torch.allclose(first, second, atol=1e-9) != is_distinguished


def test_records_are_written_once_and_the_table_shows_them(tmp_path):
    lines = []
    records = run_counting(tmp_path, SMALL, patterns=["3-cycle"], progress=lines.append)
    assert [record["network"] for record in records] == ["order 2", "products"]
    assert len(lines) == 2
    assert records[0]["versions"]["torch"] == torch.__version__
    assert run_counting(tmp_path, SMALL, patterns=["3-cycle"], progress=lines.append) == records
    assert len(lines) == 2, "no network is trained twice"
    [row] = counting_table(records).rows
    assert row[:4] == ("3-cycle", f"{records[0]['error']:.4f}", f"{records[1]['error']:.4f}", "0.0003")


def test_the_error_is_the_mean_deviation_if_nothing_is_learned(tmp_path):
    """With a learning rate of almost zero the output is almost zero, which is the mean."""
    plan = replace(SMALL, graphs=64, learning_rate=1e-12)
    record, _ = run_counting(tmp_path, plan, patterns=["3-cycle"])
    torch.manual_seed(plan.seed)
    net = counting_net("order 2", plan)

    def counted(count, seed):
        graphs = generated.random_graphs(count, nodes=plan.nodes, degree=plan.degree, seed=seed)
        return graphs, torch.cat([patterns.count_pattern(to_dense(graph), "3-cycle") for graph in graphs])

    _, known = counted(64, plan.seed)
    graphs, wanted = counted(16, plan.seed + 1)
    with torch.no_grad():
        outputs = torch.cat([net(to_dense(graph)[..., None])[:, 0] for graph in graphs])
    expected = (outputs - (wanted - known.mean()) / known.std()).abs().mean()
    assert record["error"] == pytest.approx(float(expected), rel=1e-4)


def test_an_unknown_pattern_is_refused(tmp_path):
    with pytest.raises(OptionError, match=r"pattern must be one of 3-cycle, .*; it is '9-cycle'"):
        run_counting(tmp_path, SMALL, patterns=["9-cycle"])


def test_the_command_prints_the_table(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("experiments.counting.QUICK", SMALL)
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
