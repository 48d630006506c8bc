"""A picture is written whole or not at all."""

import os

import pytest
from matplotlib.figure import Figure

from bellnet.draw import check_path, draw_basis, draw_diagrams, save_figures
from bellnet.errors import OptionError


@pytest.mark.parametrize(("name", "beginning"), [("a.png", b"\x89PNG"), ("a.PDF", b"%PDF"), ("a.svg", b"<?xml")])
def test_the_suffix_chooses_the_format(tmp_path, name, beginning):
    save_figures({tmp_path / name: draw_basis("n -> n", 2)})
    assert (tmp_path / name).read_bytes().startswith(beginning)


@pytest.mark.parametrize("suffix", ["png", "pdf", "svg"])
def test_the_same_picture_is_the_same_file(tmp_path, suffix):
    paths = tmp_path / f"one.{suffix}", tmp_path / f"other.{suffix}"
    for path in paths:
        save_figures({path: draw_diagrams("n n -> n")})
    assert paths[0].read_bytes() == paths[1].read_bytes()


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("a.gif", "its name ends in '.gif'.\nThe suffix chooses the format: .png, .pdf, .svg."),
        ("a", "its name has no suffix.\nThe suffix chooses the format: .png, .pdf, .svg."),
        ("there/a.png", "there is no directory '{}/there'.\nMake it first, or choose another path."),
        ("directory.png", "it is a directory.\nChoose another path."),
        ("pipe.png", "it is a pipe, not a file.\nChoose another path."),
    ],
)
def test_a_path_that_cannot_be_written_is_refused_with_the_reason(tmp_path, name, said):
    (tmp_path / "directory.png").mkdir()
    os.mkfifo(tmp_path / "pipe.png")
    with pytest.raises(OptionError) as refusal:
        check_path(tmp_path / name)
    assert str(refusal.value) == f"The picture '{tmp_path / name}' cannot be written: {said.format(tmp_path)}"


class FailingFigure(Figure):
    def savefig(self, file, **options):
        file.write(b"half a pic")
        raise OSError(28, "No space left on device")


def test_a_failure_leaves_nothing_behind_and_what_was_there_before(tmp_path):
    first, second = tmp_path / "first.png", tmp_path / "second.png"
    first.write_bytes(b"what was there before")
    with pytest.raises(OptionError) as refusal:
        save_figures({first: draw_basis("n -> n", 2), second: FailingFigure()})
    assert str(refusal.value) == (
        f"The picture '{second}' cannot be written: No space left on device.\nChoose another path."
    )
    assert [path.name for path in tmp_path.iterdir()] == ["first.png"]
    assert first.read_bytes() == b"what was there before"


def test_a_mistake_in_one_path_is_found_before_any_picture_is_written(tmp_path):
    with pytest.raises(OptionError, match="no directory"):
        save_figures({tmp_path / "a.png": draw_basis("n -> n", 2), tmp_path / "there" / "b.png": FailingFigure()})
    assert list(tmp_path.iterdir()) == []
