"""The command explore: a page on which the maps of a spec can be seen and tried."""

import argparse
import os
import sys
import tempfile
import webbrowser
from pathlib import Path

from bellnet.commands.command import OK, Command, write_file
from bellnet.commands.names import harmless

SCREENS = ("BROWSER", "DISPLAY", "WAYLAND_DISPLAY")
"""Variables one of which is set where a browser can be opened, on systems that may have no screen."""


def _declare_explore(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("spec", metavar="SPEC", nargs="?", help='the spec that it begins with (default "n n -> n n")')
    parser.add_argument("--out", metavar="FILE", type=Path, help="write the page to a file and open nothing")


def _run_explore(arguments: argparse.Namespace) -> int:
    from bellnet.explorer import EXAMPLE, page

    content = page(EXAMPLE if arguments.spec is None else arguments.spec).encode()
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


def _opened(path: Path) -> bool:
    has_screen = sys.platform in ("win32", "darwin") or any(map(os.environ.get, SCREENS))
    # Without a screen there may be browsers for terminals, which show nothing of this page.
    return has_screen and webbrowser.open(path.as_uri())


COMMANDS = (
    Command(
        "explore",
        "open a page on which the maps of a spec can be tried",
        ("explore", 'explore "u u i -> u i"', 'explore "n n -> n n" --out explorer.html'),
        _declare_explore,
        _run_explore,
        uses_torch=False,
    ),
)
