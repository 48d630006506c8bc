"""The command `bellnet explore`: opens an interactive page with the basis maps of a spec."""

import argparse
import os
import sys
import tempfile
import webbrowser
from html import escape
from importlib.resources import files
from pathlib import Path

from bellnet.commands.command import OK, Command, write_file
from bellnet.commands.names import harmless
from bellnet.errors import BellnetError
from bellnet.spec import parse_spec

DEFAULT_SPEC = "n n -> n n"

SCREENS = ("BROWSER", "DISPLAY", "WAYLAND_DISPLAY")
"""Variables one of which is set where a browser can be opened, on systems that may have no screen."""


def _declare_explore(parser: argparse.ArgumentParser) -> None:
    default = f'initial spec (default "{DEFAULT_SPEC}")'
    parser.add_argument("spec", metavar="SPEC", nargs="?", default=DEFAULT_SPEC, help=default)
    parser.add_argument("--out", metavar="FILE", type=Path, help="write the page to a file and open nothing")


def _run_explore(arguments: argparse.Namespace) -> int:
    content = _page(arguments.spec).encode()
    if arguments.out is not None:
        write_file(arguments.out, content)
        print(f"wrote {harmless(arguments.out)}")
        return OK
    path = Path(tempfile.mkdtemp(prefix="bellnet-")) / "explorer.html"
    path.write_bytes(content)
    if _opened(path):
        print(f"opened {harmless(path)}")
    else:
        print(f"There is no browser to open here. The page is {harmless(path)}")
    return OK


def _page(spec: str) -> str:
    """The page that was built when bellnet was installed, with this spec in its input field."""
    text = escape(str(parse_spec(spec)), quote=True)
    page = files("bellnet") / "explorer.html"
    try:
        return page.read_text(encoding="utf-8").replace("@@spec@@", text)
    except FileNotFoundError as reason:
        raise BellnetError(
            f"The page {page} does not exist. It is built when bellnet is installed; install bellnet again, "
            "in a clone with: pip install -e ."
        ) from reason


def _opened(path: Path) -> bool:
    has_screen = sys.platform in ("win32", "darwin") or any(map(os.environ.get, SCREENS))
    # Without a screen there may be browsers for terminals, which show nothing of this page.
    return has_screen and webbrowser.open(path.as_uri())


COMMANDS = (
    Command(
        "explore",
        "open an interactive page with the basis maps of a spec",
        ("explore", 'explore "u u i -> u i"', 'explore "n n -> n n" --out explorer.html'),
        _declare_explore,
        _run_explore,
        uses_torch=False,
    ),
)
