"""The command `bellnet` from its first moment on.

Outside of the package, since importing any part of that imports torch, which takes seconds in which one may have
thought better of it.
"""

import sys


def main() -> int:
    """Run the command line and return its exit code."""
    try:
        from bellnet.cli import main as run

        return run()
    except KeyboardInterrupt:
        print("\nStopped.", file=sys.stderr)
        return 130


if __name__ == "__main__":
    sys.exit(main())
