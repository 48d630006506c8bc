"""Data to learn from."""

from bellnet.data import synthetic

__all__ = ["synthetic"]
