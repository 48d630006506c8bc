"""Data to learn from."""

from bellnet.data import sparse, synthetic

__all__ = ["sparse", "synthetic"]
