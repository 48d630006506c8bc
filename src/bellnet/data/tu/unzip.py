"""Members of a zip, unpacked in pieces and within a bound.

The size in the directory of a zip is a claim: it is compared with the bound before unpacking, and with the unpacked
bytes during it, so no zip takes more memory than a piece beyond the bound. `zipfile` itself unpacks bzip2 and LZMA
without a bound.
"""

import bz2
import io
import lzma
import math
import struct
import zipfile
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain
from typing import IO, Any

from bellnet.errors import DataError, OptionError

MAX_UNPACKED = 2**30
MAX_RATIO = 200.0
FREE = 2**25
_PIECE = 2**18
_LENGTHS_AT = 26  # of the name and of the extra field, in the header of a member
_LZMA_OPTIONS = struct.Struct("<4xBI")  # after the version and the length of the options: lc, lp and pb; dictionary


@dataclass(frozen=True)
class Bound:
    """The maximum size of an unpacked member of a zip.

    Attributes:
        unpacked: In bytes.
        ratio: In bytes for each byte in the zip. Up to `FREE` bytes any ratio is accepted: a short file of equal labels
            packs into a few bytes.
    """

    unpacked: float
    ratio: float

    def __post_init__(self) -> None:
        for name in ("unpacked", "ratio"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int | float) or not value > 0:
                raise OptionError(f"tu.load: max_{name} must be a positive number, not {value!r}.")

    def check(self, member: zipfile.ZipInfo, n_bytes: int, where: str) -> None:
        """Raises a `DataError` if a member of a zip of `n_bytes` bytes claims to unpack to more."""
        claimed, ratio = member.file_size, member.file_size / max(1, min(member.compress_size, n_bytes))
        if claimed > self.unpacked:
            raise DataError(
                f"{where} unpacks to {claimed} bytes; at most {self.unpacked:.0f} are read.\n{_remedy(claimed)}"
            )
        if claimed > FREE and ratio > self.ratio:
            raise DataError(
                f"{where} unpacks to {claimed} bytes, {ratio:.0f} times what it takes in the zip; at most "
                f"{self.ratio:g} times are read.\n{_remedy(math.ceil(ratio), 'ratio')}"
            )


def _remedy(enough: int, name: str = "unpacked") -> str:
    return (
        f"If you trust the zip, raise the bound, tu.load(..., max_{name}={enough}) or --max-{name} {enough}, or unpack "
        "it and name the folder."
    )


def unpack(file: IO[bytes], member: zipfile.ZipInfo, where: str) -> Iterator[bytes]:
    """The content of a member in pieces; a `DataError` as soon as it exceeds the claim, or if it differs at its end."""
    n_bytes = checksum = 0
    for piece in _unpacked(_packed(file, member), member):
        n_bytes += len(piece)
        if n_bytes > member.file_size:
            raise DataError(
                f"{where} goes on after the {member.file_size} bytes that the directory of the zip claims.\n"
                "Do not trust this zip; get the data set from where it is published."
            )
        checksum = zlib.crc32(piece, checksum)
        yield piece
    if (n_bytes, checksum) != (member.file_size, member.CRC):
        raise DataError(
            f"{where} cannot be read: its length or its checksum is not what the directory of the zip claims.\n"
            "It is cut off or damaged; get it again."
        )


def _packed(file: IO[bytes], member: zipfile.ZipInfo) -> Iterator[bytes]:
    """The packed bytes of a member."""
    file.seek(member.header_offset + _LENGTHS_AT)
    name, extra = struct.unpack("<HH", file.read(4))
    file.seek(name + extra, io.SEEK_CUR)
    left = member.compress_size
    while piece := file.read(min(left, _PIECE)):
        left -= len(piece)
        yield piece


def _unpacked(packed: Iterator[bytes], member: zipfile.ZipInfo) -> Iterator[bytes]:
    """The unpacked bytes of a member, in pieces."""
    decompressor: Any
    if member.compress_type == zipfile.ZIP_STORED:
        yield from packed
        return
    if member.compress_type == zipfile.ZIP_DEFLATED:
        decompressor = zlib.decompressobj(-zlib.MAX_WBITS)
    elif member.compress_type == zipfile.ZIP_LZMA:
        first = next(packed, b"")
        decompressor = _lzma_decompressor(first[: _LZMA_OPTIONS.size], member.file_size)
        packed = chain([first[_LZMA_OPTIONS.size :]], packed)
    else:
        decompressor = bz2.BZ2Decompressor()
    for piece in packed:
        fed = piece
        while not decompressor.eof:
            yield decompressor.decompress(fed, _PIECE)
            fed = getattr(decompressor, "unconsumed_tail", b"")  # of zlib; the others store it themselves
            if getattr(decompressor, "needs_input", not fed):
                break
    if member.compress_type == zipfile.ZIP_DEFLATED:
        yield decompressor.flush()  # less than a piece: all input is consumed


def _lzma_decompressor(options: bytes, unpacked: int) -> lzma.LZMADecompressor:
    """The decompressor for LZMA with the options that precede the data.

    The dictionary, whose size the options choose, is limited to the size of the unpacked member.
    """
    packed, dictionary = _LZMA_OPTIONS.unpack(options)
    bits, literal = divmod(packed, 9)
    chosen = {"dict_size": max(4096, min(dictionary, unpacked)), "lc": literal, "lp": bits % 5, "pb": bits // 5}
    return lzma.LZMADecompressor(lzma.FORMAT_RAW, filters=[{"id": lzma.FILTER_LZMA1, **chosen}])
