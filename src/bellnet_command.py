"""The command `bellnet` from its first moment on.

Outside of the package, since importing any part of that imports torch, which takes seconds in which one may have
thought better of it.
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
    from bellnet.cli import main as run

    if watched:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    return run()


def _stop(number: int, frame: FrameType | None) -> None:
    try:
        if sys.stderr is not None:
            print("\nStopped.", file=sys.stderr, flush=True)
    finally:
        os._exit(130)


if __name__ == "__main__":
    sys.exit(main())
