"""The commands plan and basis: what they print and draw, and their errors."""

import os
import re

import pytest

import bellnet as bn
from bellnet.draw import draw_basis
from tests.cli.outcome import outcome


def test_plan_prints_the_table_of_the_plan(capsys):
    assert outcome(capsys, "plan", "n n -> n n") == (0, f"{bn.plan('n n -> n n')}\n", "")


def test_the_help_of_plan_explains_every_column(capsys):
    _, printed, _ = outcome(capsys, "plan", "--help")
    heading = str(bn.plan("n n -> n n")).splitlines()[1]
    assert [name for name in heading.split() if not re.search(f"^  {name}  +[a-z]", printed, re.MULTILINE)] == []


def test_plan_has_the_options_symmetric_and_hollow(capsys):
    _, printed, _ = outcome(capsys, "plan", "n n -> n n", "--symmetric", "--hollow")
    assert printed == f"{bn.plan('n n -> n n', symmetric=True, hollow=True)}\n"


def test_plan_prints_many_exchangeable_axes(capsys):
    code, printed, _ = outcome(capsys, "plan", "n n n n n n n ->", "--symmetric", "--max-maps", "15")
    assert code == 0
    assert printed.startswith("n n n n n n n ->    15 maps, 1 bias    on symmetric inputs\n")


@pytest.mark.parametrize("spec", ["->", "->n", "-> n n", "n n ->"])
def test_a_spec_without_source_or_target_is_not_an_option(capsys, spec):
    assert outcome(capsys, "plan", spec) == (0, f"{bn.plan(spec)}\n", "")


def test_plan_prints_every_diagram_in_words(capsys):
    code, printed, _ = outcome(capsys, "plan", "n n -> n n", "--diagrams")
    rows = printed.split("\n\n")[1].splitlines()[1:]
    assert code == 0
    assert [re.split(" {2,}", line.strip()) for line in rows] == [
        [str(number), diagram.name, diagram.words(), diagram.describe()]
        for number, diagram in enumerate(bn.plan("n n -> n n").diagrams)
    ]


def test_plan_prints_the_tensors_of_every_map(capsys):
    code, printed, _ = outcome(capsys, "plan", "n n, n -> n, ", "--diagrams", "--cost", "10", "--channels", "2", "3")
    assert code == 0
    assert printed.startswith(f"{bn.plan('n n, n -> n, ')}\n")
    (line,) = [line for line in printed.splitlines() if line.startswith("    7  ")]
    assert re.split(" {2,}", line.strip()) == ["7", "[1] to [0]", "a->a", "the input, unchanged", "copy"]


def test_plan_prints_the_cost(capsys):
    code, printed, _ = outcome(capsys, "plan", "n n -> n n", "--cost", "10", "--channels", "2", "3", "--batch", "4")
    assert code == 0
    # (2 n^2 + 9 n + 4) d d' for each graph, against 15 n^2 d d'.
    assert f"multiplications        {4 * 294 * 6:>6,}\n" in printed
    assert f"with all maps stacked  {4 * 1500 * 6:>6,}  5.1 times as many\n" in printed


def test_plan_has_a_size_for_each_node_set(capsys):
    code, printed, _ = outcome(capsys, "plan", "u i -> u i", "--cost", "u=3, i=5")
    assert code == 0
    assert f"  {bn.plan('u i -> u i').cost({'u': 3, 'i': 5}).multiplications}\n" in printed


def test_plan_prints_the_cost_of_the_largest_numbers(capsys):
    largest = str(2**63 - 1)
    assert outcome(capsys, "plan", "n n -> n n", "--cost", largest, "--channels", largest, "00" + largest)[0] == 0


def test_basis_draws_both_pictures(capsys, tmp_path):
    matrices, diagrams = tmp_path / "figure1.png", tmp_path / "diagrams.svg"
    code, printed, complaint = outcome(
        capsys, "basis", "n n -> n", "--n", "3", "--out", str(matrices), "--diagrams", str(diagrams)
    )
    assert (code, complaint) == (0, "")
    assert printed == f"wrote {matrices}\nwrote {diagrams}\n"
    assert matrices.read_bytes().startswith(b"\x89PNG")
    assert diagrams.read_bytes().startswith(b"<?xml")


def test_diagrams_are_written_beside_the_matrices_by_default(capsys, tmp_path):
    assert outcome(capsys, "basis", "n -> n", "--out", str(tmp_path / "figure1.png"))[0] == 0
    assert sorted(path.name for path in tmp_path.iterdir()) == ["figure1-diagrams.png", "figure1.png"]


def test_basis_draws_every_pair_of_several_tensors(capsys, tmp_path):
    given = "u i, u -> i", "--n", "u=2,i=3", "--out", str(tmp_path / "a.svg")
    code, printed, _ = outcome(capsys, "basis", *given)
    names = ["a-0-to-0.svg", "a-1-to-0.svg", "a-diagrams-0-to-0.svg", "a-diagrams-1-to-0.svg"]
    assert code == 0
    assert sorted(path.name for path in tmp_path.iterdir()) == names
    assert all(name in printed for name in names)
    for draw in bn.draw.draw_basis, bn.draw.draw_diagrams:
        with pytest.raises(bn.errors.SpecError, match=r'Draw the pairs one by one, for instance "u i -> i"'):
            draw("u i, u -> i")


def test_basis_has_the_options_basis_and_n(capsys, monkeypatch, tmp_path):
    calls = []

    def watched(*given, **options):
        calls.append((given, options))
        return draw_basis(*given, **options)

    monkeypatch.setattr("bellnet.draw.draw_basis", watched)
    path = tmp_path / "a.pdf"
    code, _, _ = outcome(capsys, "basis", "u i -> u", "--n", "u=2,i=3", "--basis", "diagram", "--out", str(path))
    assert code == 0
    assert calls == [(("u i -> u", {"u": 2, "i": 3}), {"basis": "diagram"})]
    assert path.read_bytes().startswith(b"%PDF")


def test_a_directory_without_permission_is_refused(capsys, monkeypatch, tmp_path):
    def forbid(path, *mode, **options):
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(os, "mkdir", forbid)
    monkeypatch.setattr("bellnet.draw.draw_basis", lambda *given, **options: pytest.fail("it was drawn"))
    code, printed, complaint = outcome(capsys, "basis", "n -> n", "--out", str(tmp_path / "a.png"))
    assert (code, printed) == (2, "")
    assert complaint == (
        f"bellnet basis: The picture '{tmp_path / 'a.png'}' cannot be written: Permission denied.\n"
        "Choose another path.\n"
    )
