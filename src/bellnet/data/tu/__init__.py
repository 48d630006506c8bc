"""Data sets of the TU collection, or in its layout: by name, from a folder of zips, a zip, or an unpacked folder."""

from bellnet.data.tu.cache import Parcel, receive
from bellnet.data.tu.loading import known_names, load, pack

__all__ = ["Parcel", "known_names", "load", "pack", "receive"]
