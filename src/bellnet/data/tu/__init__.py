"""Data sets in the layout of the TU collection: by name, from a folder of zips, a zip, or an unpacked folder."""

from bellnet.data.tu.loading import TUSet, known_names, load

__all__ = ["TUSet", "known_names", "load"]
