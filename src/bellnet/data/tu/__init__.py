"""Data sets in the layout of the TU collection: by name, from a folder of zips, a zip, or an unpacked folder."""

from bellnet.data.tu.loading import TUSet, load

__all__ = ["TUSet", "load"]
