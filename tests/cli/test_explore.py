"""The command `bellnet explore`: the page it opens or writes, and its messages."""

import html
import re
import subprocess
import sys
from pathlib import Path

import pytest

from bellnet.cli import spec_commands
from bellnet.cli.main import main


def _initial_spec(page):
    """The spec in the input field of a page."""
    (escaped,) = re.findall(r'<input id="spec" type="text" value="(.*?)"', page.read_text(encoding="utf-8"))
    return html.unescape(escaped)


@pytest.fixture(autouse=True)
def _no_screen(monkeypatch, tmp_path):
    for name in spec_commands.SCREENS:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(spec_commands.tempfile, "tempdir", str(tmp_path))


def test_out_writes_the_page_and_opens_nothing(monkeypatch, tmp_path, capsys):
    monkeypatch.setenv("DISPLAY", ":0")
    monkeypatch.setattr(spec_commands.webbrowser, "open", lambda address: pytest.fail(f"opened {address}"))
    out = tmp_path / "maps.html"
    assert main(["explore", "u u i -> u i", "--out", str(out)]) == 0
    assert capsys.readouterr().out == f"wrote {out}\n"
    assert _initial_spec(out) == "u u i -> u i"


def test_a_browser_is_opened_where_there_is_a_screen(monkeypatch, capsys):
    opened = []
    monkeypatch.setenv("WAYLAND_DISPLAY", "wayland-0")
    monkeypatch.setattr(spec_commands.webbrowser, "open", lambda address: opened.append(address) or True)
    assert main(["explore"]) == 0
    path = Path(capsys.readouterr().out.removeprefix("opened ").strip())
    assert opened == [path.as_uri()]
    assert _initial_spec(path) == "n n -> n n"


@pytest.mark.skipif(sys.platform in ("win32", "darwin"), reason="there is always a screen")
def test_without_a_screen_the_path_of_the_page_is_printed(monkeypatch, capsys):
    monkeypatch.setattr(spec_commands.webbrowser, "open", lambda address: pytest.fail(f"opened {address}"))
    assert main(["explore", "-> n"]) == 0
    text, path = capsys.readouterr().out.strip().rsplit(maxsplit=1)
    assert text == "there is no browser here that can open"
    assert _initial_spec(Path(path)) == "-> n"


def test_a_browser_that_does_not_open_is_reported(monkeypatch, capsys):
    monkeypatch.setenv("DISPLAY", ":0")
    monkeypatch.setattr(spec_commands.webbrowser, "open", lambda address: False)
    assert main(["explore"]) == 0
    assert capsys.readouterr().out.startswith("there is no browser here that can open ")


def test_an_empty_spec_is_refused(capsys):
    assert main(["explore", ""]) == 2
    assert capsys.readouterr().err.startswith("bellnet explore: This spec cannot be read: the arrow '->'")


def test_a_missing_page_raises_an_error(monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(spec_commands, "files", lambda package: tmp_path)
    assert main(["explore"]) == 2
    error = capsys.readouterr().err
    assert f"{tmp_path / 'explorer.html'} does not exist" in error
    assert "pip install -e ." in error


def test_explore_does_not_import_torch(tmp_path):
    program = f"""
import sys
from bellnet.cli.main import main
main(["explore", "--out", {str(tmp_path / "maps.html")!r}])
print("torch" in sys.modules)
"""
    finished = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert finished.stdout.split()[-1] == "False"
