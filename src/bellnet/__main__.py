"""The process of the command `bellnet`, and of `python -m bellnet`: from its start to its exit code."""

import os
import signal
import sys
from types import FrameType


def main() -> int:
    """Run the command line and return its exit code.

    Until the command begins, Ctrl-C ends the process at once: importing torch takes seconds, and packages that are
    being imported may catch every error. Then it raises `KeyboardInterrupt` again.
    """
    # Ctrl-C may be ignored, as in the background, and then stays so.
    is_default = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if is_default:
        signal.signal(signal.SIGINT, _exit)
    try:
        from bellnet.cli.main import main as run

        return run(before_command=_raise_on_interrupt if is_default else None)
    finally:
        if is_default:
            _raise_on_interrupt()


def _raise_on_interrupt() -> None:
    signal.signal(signal.SIGINT, signal.default_int_handler)


def _exit(number: int, frame: FrameType | None) -> None:
    try:
        if sys.stderr is not None:
            print("\nStopped.", file=sys.stderr, flush=True)
    finally:
        os._exit(130)


if __name__ == "__main__":
    sys.exit(main())
