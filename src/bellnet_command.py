"""The command `bellnet` from its first moment on.

Outside of the package, since importing that takes time in which one may have thought better of it; with torch, which
most commands need, it is seconds.
"""

import os
import signal
import sys
from types import FrameType


def main() -> int:
    """Run the command line and return its exit code."""
    # Packages that are imported may catch every error, also the one that Ctrl-C is; nothing is lost by ending at once.
    watched = signal.getsignal(signal.SIGINT) is signal.default_int_handler  # and not ignored, as in the background
    if watched:
        signal.signal(signal.SIGINT, _stop)
    try:
        from bellnet.cli import main as run

        return run(ready=_obey if watched else None)
    finally:
        if watched:
            _obey()


def _obey() -> None:
    """Let Ctrl-C be an error again, which a command may answer."""
    signal.signal(signal.SIGINT, signal.default_int_handler)


def _stop(number: int, frame: FrameType | None) -> None:
    try:
        if sys.stderr is not None:
            print("\nStopped.", file=sys.stderr, flush=True)
    finally:
        os._exit(130)


if __name__ == "__main__":
    sys.exit(main())
