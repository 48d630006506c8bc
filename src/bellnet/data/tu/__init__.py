"""Data sets in the layout of the TU collection: by name, from a folder of zips, a zip, or an unpacked folder."""

from bellnet.data.tu.loading import TUSet, known_names, load, pack
from bellnet.data.tu.parcel import Parcel, receive

__all__ = ["Parcel", "TUSet", "known_names", "load", "pack", "receive"]
