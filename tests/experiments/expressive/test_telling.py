"""Networks tell apart what theory says, no pair more and none less; and where that fails, it is said."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

from bellnet.data import generated, undirected
from bellnet.errors import EquivarianceError
from experiments.__main__ import main
from experiments.data import families, refinement
from experiments.data.families import cfi, cycle
from experiments.expressive import report as running
from experiments.expressive.networks import matrices, of_order, with_products
from experiments.expressive.report import learned_table, lines, run_expressive, told_table, two_rings, values
from experiments.expressive.skip_links import NETWORKS, Learned, _train, learn
from experiments.expressive.suite import Family, Group, Kinds, RandomNetworks, compare, from_pairs, models
from tests.experiments.data.lines import as_graph6

RESULTS = Path(__file__).parents[3] / "results" / "expressive"
SIXTEEN = "strongly regular (16, 6, 2, 2)"
QUICK = models(quick=True)


def small():
    """One family of each kind, as small as they come."""
    yield from_pairs("regular graphs", families.regular_pairs(2))
    yield from_pairs("double covers", families.cover_pairs(2))
    yield from_pairs("Cai, Fürer, Immerman", [pair for pair in families.cfi_pairs() if pair.first.n <= 24])
    yield Family(SIXTEEN, (Group(SIXTEEN, tuple(families.strongly_regular(16, 6, 2, 2))),))


@pytest.fixture(scope="module")
def rows():
    return {family.name: compare(family, QUICK) for family in small()}


def told(row):
    return {name: (score.told, score.pairs) for name, score in row.scores.items()}


def test_all_networks_agree_with_theory_on_every_pair(rows):
    assert all(row.agrees for row in rows.values())


def test_order_2_and_message_passing_tell_nothing_that_colour_refinement_leaves_alike(rows):
    for row in rows.values():
        assert row.theory[1].told == 0
        assert told(row)["order 2"] == told(row)["GIN"] == (0, row.pairs)


def test_order_3_and_products_tell_what_refinement_of_pairs_tells(rows):
    expected = {"regular graphs": 2, "double covers": 2, "Cai, Fürer, Immerman": 4, SIXTEEN: 0}
    for name, number in expected.items():
        row = rows[name]
        assert row.theory[2].told == number
        assert told(row)["order 3"] == told(row)["order 2 with products"] == (number, row.pairs)


def test_order_4_tells_the_rooks_graph_from_shrikhandes(rows):
    assert told(rows[SIXTEEN])["order 4"] == (1, 1)


def test_products_tell_all_circular_skip_links_apart():
    (model,) = [model for model in QUICK if model.name == "order 2 with products"]
    group = Group("skip links", tuple(generated.skip_links(10)[0]))
    assert RandomNetworks(model, group.n).kinds(group).n_pairs_apart == group.n_pairs == 45


@pytest.mark.parametrize("rounds", [0, 4])
def test_a_network_has_a_layer_for_every_round_or_misses_what_takes_more(rounds):
    """The graphs over a cycle of 24 nodes take four rounds; three layers are too few, and six are enough."""
    pair = Group("cycles", (cfi(cycle(24)), cfi(cycle(24), twisted=True)))
    assert refinement.refine(pair.graphs, 2).rounds >= 4
    model = with_products(layers=3, channels=4, largest=99)
    assert RandomNetworks(model, pair.n, rounds=rounds).kinds(pair).n_pairs_apart == (1 if rounds else 0)


def test_kinds_count_the_pairs_that_differ():
    assert Kinds.of("abca") == Kinds((0, 1, 2, 0))
    assert (Kinds.of("abca").n_pairs_apart, Kinds.of("aa").n_pairs_apart, Kinds.of("").n_pairs_apart) == (5, 0, 0)


def test_a_network_that_sees_the_numbering_is_not_believed():
    numbers = of_order(2, layers=2, channels=2, largest=9)

    class First(nn.Module):
        def forward(self, x):
            return x[0].sum(0)

    seeing = replace(numbers, make=lambda prime, layers: First())
    star = undirected(9, [(0, node) for node in range(1, 9)])
    with pytest.raises(EquivarianceError) as caught:
        RandomNetworks(seeing, 9).kinds(Group("stars", (star, star)))
    words = "order 2 gives a graph of stars other numbers when it is renumbered, so that nothing can be said."
    assert str(caught.value) == words


def test_theory_that_is_not_met_is_named_and_fails(monkeypatch, tmp_path, capsys):
    wrong = replace(of_order(2, layers=2, channels=2, largest=99), dimension=2)
    monkeypatch.setattr(running, "models", lambda quick: [wrong])
    monkeypatch.setattr(running, "made_here", lambda quick, seed: [from_pairs("regular", families.regular_pairs(2))])
    assert main(["expressive", "--skip-learning", "--out", str(tmp_path)]) == 1
    output = capsys.readouterr().out
    assert "0 !" in output
    assert "! regular, order 2: number 0, " in output
    assert "GIN is left out" in output


def test_a_run_writes_a_page_that_stands_alone_and_a_record(monkeypatch, tmp_path):
    asked = [model for model in QUICK if model.dimension < 3]
    monkeypatch.setattr(running, "models", lambda quick: asked)
    monkeypatch.setattr(running, "made_here", lambda quick, seed: [from_pairs("regular", families.regular_pairs(2))])
    extra = tmp_path / "mine.g6"
    extra.write_text("\n".join(as_graph6(graph) for graph in families.strongly_regular(16, 6, 2, 2)))
    np.save(tmp_path / "cfi.npy", np.array([[as_graph6(cfi(cycle(9), twisted=twisted)) for twisted in (0, 1)]]))
    out = tmp_path / "out"
    out.mkdir()
    options = {"graph6": [extra], "brec": tmp_path, "train": False, "progress": lambda text: None}
    assert run_expressive(out, say=lambda text: None, **options)
    page = (out / "report.html").read_text()
    assert "data:image/png;base64," in page
    assert 'src="confused' not in page
    assert all(words in page for words in ("mine.g6", "below 2^53", "renumbered at random", "torch"))
    record = json.loads((out / "record.json").read_text())
    assert [row["family"] for row in record["rows"]] == ["regular", "mine.g6", "BREC, CFI"]
    assert record["rows"][0]["scores"]["order 3"] == {"pairs": 2, "told": 2, "expected": 2, "wrong": []}
    assert record["rows"][2]["scores"]["order 2 with products"]["told"] == 1
    assert (record["seed"], record["graph6"], record["brec"]) == (0, ["mine.g6"], True)
    assert {path.name for path in out.iterdir()} == {"report.md", "report.html", "confused.png", "record.json"}


def test_a_folder_that_is_not_there_is_refused_before_any_work(tmp_path, capsys):
    assert main(["expressive", "--brec", str(tmp_path / "none"), "--out", str(tmp_path)]) == 2
    assert "--brec: there is no folder" in capsys.readouterr().err


def test_tables_say_how_many_were_asked(rows):
    table = told_table(list(rows.values()), QUICK)
    assert table.head[:5] == ("graphs", "pairs", "1-WL", "GIN", "order 2")
    assert table.rows[3] == (SIXTEEN, "1", "0", "0", "0", "0", "0", "0", "1", "1")
    assert "of" in table.rows[2][-1]
    assert any("too large to ask" in note for note in table.notes)
    text = lines(table)
    assert text[0] == "Pairs of graphs told apart"
    assert len({len(line) for line in text[2:7]}) == 1


def test_the_drawn_pair_is_alike_to_order_2_and_apart_for_order_3():
    graphs = [graph for _, graph, _ in two_rings()]
    two, three = ([sorted(numbers) for numbers in values(order, graphs)] for order in (2, 3))
    assert two[0] == two[1]
    assert len({*two[0]}) == 3
    assert not {*three[0]} & {*three[1]}


def test_products_learn_to_name_the_skip_and_order_2_does_not():
    learned = {name: learn(name, splits=1, steps=60) for name in ("order 2", "order 2 with products")}
    assert learned["order 2 with products"].mean == 1.0
    assert learned["order 2"].mean <= 0.2


def test_triples_learn_to_tell_two_skips_of_eleven_nodes():
    graphs, labels = generated.skip_links(12, n=11, skips=(2, 3))
    inputs = torch.stack([matrices(graph) for graph in graphs]).float().reshape(6, 2, 11, 11, 2)
    torch.manual_seed(0)
    net = NETWORKS["order 3"]()
    _train(net, inputs[:4], labels[:2], steps=40)
    with torch.no_grad():
        assert net(inputs[4:].flatten(0, 1)).argmax(-1).tolist() == labels[8:].tolist()


def test_a_table_of_what_was_learned():
    table = learned_table([Learned("order 3", (1.0, 0.95), 61.2)])
    assert table.rows == (("order 3", "97.5%", "95%", "2", "61"),)


def test_the_recorded_run_shows_what_is_claimed():
    record = json.loads((RESULTS / "record.json").read_text())
    scores = {row["family"]: row["scores"] for row in record["rows"]}
    assert not any(score["wrong"] for some in scores.values() for score in some.values())
    assert all(some["order 2"]["told"] == some["GIN"]["told"] == 0 for some in scores.values())
    assert scores["circular skip links"]["order 3"]["told"] == 45
    assert scores["strongly regular (16, 6, 2, 2)"]["order 4"]["told"] == 1
    twenty_five = scores["strongly regular (25, 12, 5, 6)"]
    assert (twenty_five["order 3"]["told"], twenty_five["order 2 with products"]["told"]) == (0, 0)
    accuracies = {one["name"]: one["accuracies"] for one in record["learned"]}
    means = {name: sum(some) / len(some) for name, some in accuracies.items()}
    assert all(len(some) == (1 if record["quick"] else 10) for some in accuracies.values())
    assert means.pop("order 2") <= 0.15
    assert set(means) == {"order 2 with products"} if record["quick"] else {"order 2 with products", "order 3"}
    assert min(means.values()) >= 0.99
