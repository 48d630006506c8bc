"""`python -m bellnet` is the command `bellnet`."""

import sys

from bellnet_command import main

if __name__ == "__main__":
    sys.exit(main())
