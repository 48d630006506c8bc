"""Figures in notebooks and in files; matplotlib is imported late."""

import os
import pickle
import struct
import subprocess
import sys

import pytest
from matplotlib.figure import Figure

from bellnet._utils.optional import require
from bellnet.draw import Panels, check_path, draw_basis, draw_diagrams, new_figure, save_figures
from bellnet.errors import MissingExtraError, OptionError


def some_panels():
    panels = Panels(["one"], across="epoch", up="error")
    panels.curve("one", ([1, 2], [2.0, 1.0]), "error")
    return panels.finish()


@pytest.mark.parametrize(
    "draw",
    [
        lambda: draw_basis("n -> n", 3),
        lambda: draw_diagrams("n -> n"),
        lambda: new_figure(2, 1),
        some_panels,
    ],
    ids=["basis", "diagrams", "new", "panels"],
)
def test_the_png_for_notebooks_has_twice_the_width(draw):
    content, about = draw()._repr_png_()
    assert content.startswith(b"\x89PNG")
    (width,) = struct.unpack(">I", content[16:20])
    assert abs(width - 2 * about["width"]) <= 2


def test_a_figure_can_be_pickled():
    assert pickle.loads(pickle.dumps(new_figure(2, 1)))._repr_png_()


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
    ("name", "reason"),
    [
        ("a.gif", "its name ends in '.gif'.\nThe suffix chooses the format: .png, .pdf, .svg."),
        ("a", "its name has no suffix.\nThe suffix chooses the format: .png, .pdf, .svg."),
        ("there/a.png", "there is no directory '{}/there'.\nMake it first, or choose another path."),
        ("directory.png", "it is a directory.\nChoose another path."),
        ("pipe.png", "it is a pipe, not a file.\nChoose another path."),
    ],
)
def test_a_path_that_cannot_be_written_is_refused(tmp_path, name, reason):
    (tmp_path / "directory.png").mkdir()
    os.mkfifo(tmp_path / "pipe.png")
    with pytest.raises(OptionError) as refusal:
        check_path(tmp_path / name)
    assert str(refusal.value) == f"The picture '{tmp_path / name}' cannot be written: {reason.format(tmp_path)}"


class FailingFigure(Figure):
    def savefig(self, file, **options):
        file.write(b"half a pic")
        raise OSError(28, "No space left on device")


def test_a_failure_changes_no_file(tmp_path):
    first, second = tmp_path / "first.png", tmp_path / "second.png"
    first.write_bytes(b"the old picture")
    with pytest.raises(OptionError) as refusal:
        save_figures({first: draw_basis("n -> n", 2), second: FailingFigure()})
    assert str(refusal.value) == (
        f"The picture '{second}' cannot be written: No space left on device.\nChoose another path."
    )
    assert [path.name for path in tmp_path.iterdir()] == ["first.png"]
    assert first.read_bytes() == b"the old picture"


def test_all_paths_are_checked_before_any_picture_is_written(tmp_path):
    with pytest.raises(OptionError, match="no directory"):
        save_figures({tmp_path / "a.png": draw_basis("n -> n", 2), tmp_path / "there" / "b.png": FailingFigure()})
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("draw", [draw_basis, draw_diagrams])
def test_without_matplotlib_the_error_names_what_to_install(monkeypatch, draw):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(MissingExtraError) as missing:
        draw("n n -> n n")
    assert str(missing.value) == (
        f'{draw.__name__}("n n -> n n") needs matplotlib, which is not installed.\n'
        "Install it: pip install 'bellnet[draw]'"
    )
    assert isinstance(missing.value, ImportError)


def test_a_package_with_a_broken_import_is_not_called_missing(monkeypatch, tmp_path):
    (tmp_path / "broken_package.py").write_text("import a_package_that_does_not_exist")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ModuleNotFoundError, match="a_package_that_does_not_exist") as reason:
        require("broken_package", extra="draw", call="this")
    assert not isinstance(reason.value, MissingExtraError)


def test_matplotlib_is_imported_when_a_picture_is_drawn_and_pyplot_never():
    program = (
        "import sys, bellnet.draw as draw\n"
        "assert 'matplotlib' not in sys.modules\n"
        "draw.draw_basis('n n -> n'), draw.draw_diagrams('n n -> n')\n"
        "assert 'matplotlib' in sys.modules\n"
        "assert 'matplotlib.pyplot' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-W", "error", "-c", program], check=True)
