"""matplotlib is imported when a picture is drawn, never before, and its state is left alone."""

import subprocess
import sys

import pytest

from bellnet._utils.optional import require
from bellnet.draw import draw_basis, draw_diagrams
from bellnet.errors import MissingExtraError


@pytest.mark.parametrize("draw", [draw_basis, draw_diagrams])
def test_without_matplotlib_the_message_says_what_to_install(monkeypatch, draw):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(MissingExtraError) as missing:
        draw("n n -> n n")
    assert str(missing.value) == (
        f'{draw.__name__}("n n -> n n") needs matplotlib, which is not installed.\n'
        "Install it: pip install 'bellnet[draw]'"
    )
    assert isinstance(missing.value, ImportError)


def test_a_package_that_is_there_but_broken_is_not_called_missing(monkeypatch, tmp_path):
    (tmp_path / "broken_package.py").write_text("import a_package_that_nobody_has")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ModuleNotFoundError, match="a_package_that_nobody_has") as reason:
        require("broken_package", extra="draw", call="this")
    assert not isinstance(reason.value, MissingExtraError)


def test_importing_the_package_does_not_import_matplotlib_nor_does_drawing_import_pyplot():
    program = (
        "import sys, bellnet.draw as draw\n"
        "assert 'matplotlib' not in sys.modules\n"
        "draw.draw_basis('n n -> n'), draw.draw_diagrams('n n -> n')\n"
        "assert 'matplotlib' in sys.modules\n"
        "assert 'matplotlib.pyplot' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-W", "error", "-c", program], check=True)
