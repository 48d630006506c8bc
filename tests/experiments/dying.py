"""What a process does that ends before it has done anything; it needs no other module."""

import sys


def die(*given):
    """End with a code."""
    sys.exit(3)
