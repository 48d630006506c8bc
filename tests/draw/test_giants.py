"""A picture that would have too many panels is refused by counting them, before any map is listed."""

import sys

import pytest

from bellnet.cli.main import main
from bellnet.draw import draw_basis, draw_diagrams
from bellnet.errors import OptionError

COUNTS = {9: "21,147", 10: "115,975", 2000: "at least 10^"}


@pytest.fixture(autouse=True)
def _nothing_is_listed(monkeypatch):
    def listing(*arguments, **options):
        raise AssertionError("maps were listed")

    monkeypatch.setattr(sys.modules["bellnet.plan.diagram"], "partitions", listing)


@pytest.mark.parametrize("slots", COUNTS)
@pytest.mark.parametrize(
    ("draw", "said"), [(draw_basis, "maps; a picture shows up to 60."), (draw_diagrams, "diagrams; a picture shows up")]
)
def test_too_many_maps_for_a_picture_are_counted_and_not_listed(draw, said, slots):
    with pytest.raises(OptionError) as caught:
        draw("n " * slots + "->")
    first = str(caught.value).split("\n")[0]
    assert first.startswith(f'{draw.__name__}("n n n n n n n n')
    assert f": there are {COUNTS[slots]}" in first
    assert said in first
    assert len(first) < 200


@pytest.mark.parametrize("slots", COUNTS)
def test_the_command_refuses_them_in_the_same_way(capsys, tmp_path, slots):
    assert main(["basis", "n " * slots + "->", "--out", str(tmp_path / "a.png")]) == 2
    assert capsys.readouterr().err.startswith('bellnet basis: draw_basis("n n n')
    assert list(tmp_path.iterdir()) == []
