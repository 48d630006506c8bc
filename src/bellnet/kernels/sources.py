"""Which sources kernels were made of: a number that is compiled into them, and compared when they are loaded."""

import hashlib
from pathlib import Path


def digest(place: Path) -> int:
    """The number of the C files in a folder, as they are now."""
    found = hashlib.sha256()
    for path in sorted([*place.glob("*.c"), *place.glob("*.h")]):
        found.update(path.name.encode() + b"\0" + path.read_bytes() + b"\0")
    return int.from_bytes(found.digest()[:7])
