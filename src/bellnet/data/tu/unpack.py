"""A member of a zip, unpacked a piece at a time and never beyond a bound.

The directory of a zip is a claim. What it claims is held against the bound before anything is unpacked, and what comes
is held against the claim while it comes, so no zip gets more memory than a piece beyond what was allowed. `zipfile`
itself unpacks bzip2 and LZMA without any bound: a few kilobytes of these can be gigabytes.
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
    """The most that a member of a zip may unpack to.

    Attributes:
        unpacked: In bytes.
        ratio: In bytes for each byte that it takes in the zip. Up to `FREE` bytes any ratio is good: a short file of
            equal labels packs into next to nothing.
    """

    unpacked: float
    ratio: float

    def __post_init__(self) -> None:
        for name in ("unpacked", "ratio"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int | float) or not value > 0:
                raise OptionError(f"tu.load: max_{name} must be a positive number, not {value!r}.")

    def check(self, member: zipfile.ZipInfo, n_bytes: int, where: str) -> None:
        """Refuse a member, of a zip of so many bytes, that claims to unpack to more."""
        claimed, ratio = member.file_size, member.file_size / max(1, min(member.compress_size, n_bytes))
        if claimed > self.unpacked:
            raise DataError(
                f"{where} unpacks to {claimed} bytes; at most {self.unpacked:.0f} are read.\n{_way_out(claimed)}"
            )
        if claimed > FREE and ratio > self.ratio:
            raise DataError(
                f"{where} unpacks to {claimed} bytes, {ratio:.0f} times what it takes in the zip; at most "
                f"{self.ratio:g} times are read.\n{_way_out(math.ceil(ratio), 'ratio')}"
            )


def _way_out(enough: int, name: str = "unpacked") -> str:
    return (
        f"If you trust the zip, raise the bound, tu.load(..., max_{name}={enough}) or --max-{name} {enough}, or unpack "
        "it and name the folder."
    )


def unpack(file: IO[bytes], member: zipfile.ZipInfo, where: str) -> IO[bytes]:
    """What a member unpacks to; refused as soon as that is more than it claims, or, at its end, something else.

    Args:
        file: The zip.
        member: The member, whose header was found to be good.
        where: How messages name it.
    """
    packed = _packed(file, member)
    if member.compress_type == zipfile.ZIP_STORED:
        pieces = packed
    elif member.compress_type == zipfile.ZIP_DEFLATED:
        pieces = _inflated(packed)
    else:
        pieces = _unpacked(packed, member)
    return io.BufferedReader(_Pieces(_checked(pieces, member, where)), _PIECE)


class _Pieces(io.RawIOBase):
    """A file whose content comes in pieces."""

    def __init__(self, pieces: Iterator[bytes]) -> None:
        self._pieces = pieces
        self._rest = memoryview(b"")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        while not self._rest:
            piece = next(self._pieces, None)
            if piece is None:
                return 0
            self._rest = memoryview(piece)
        target = memoryview(buffer)
        n = min(len(target), len(self._rest))
        target[:n] = self._rest[:n]
        self._rest = self._rest[n:]
        return n


def _packed(file: IO[bytes], member: zipfile.ZipInfo) -> Iterator[bytes]:
    """What a member takes in the zip."""
    file.seek(member.header_offset + _LENGTHS_AT)
    name, extra = struct.unpack("<HH", file.read(4))
    file.seek(name + extra, io.SEEK_CUR)
    left = member.compress_size
    while piece := file.read(min(left, _PIECE)):
        left -= len(piece)
        yield piece


def _inflated(packed: Iterator[bytes]) -> Iterator[bytes]:
    engine = zlib.decompressobj(-zlib.MAX_WBITS)
    for fed in packed:
        while fed and not engine.eof:
            yield engine.decompress(fed, _PIECE)
            fed = engine.unconsumed_tail
    yield engine.flush()  # less than a piece: all that was fed is consumed


def _unpacked(packed: Iterator[bytes], member: zipfile.ZipInfo) -> Iterator[bytes]:
    """The same for bzip2 and LZMA."""
    engine: bz2.BZ2Decompressor | lzma.LZMADecompressor = bz2.BZ2Decompressor()
    if member.compress_type == zipfile.ZIP_LZMA:
        first = next(packed, b"")
        engine = _lzma_engine(first[: _LZMA_OPTIONS.size], member.file_size)
        packed = chain([first[_LZMA_OPTIONS.size :]], packed)
    for piece in packed:
        fed = piece
        while not engine.eof:
            yield engine.decompress(fed, _PIECE)
            if engine.needs_input:
                break
            fed = b""


def _lzma_engine(options: bytes, unpacked: int) -> lzma.LZMADecompressor:
    """What unpacks LZMA with the options that stand before it.

    The dictionary, which takes as much memory as the options say, is never larger than what is unpacked.
    """
    packed, dictionary = _LZMA_OPTIONS.unpack(options)
    bits, literal = divmod(packed, 9)
    chosen = {"dict_size": max(4096, min(dictionary, unpacked)), "lc": literal, "lp": bits % 5, "pb": bits // 5}
    return lzma.LZMADecompressor(lzma.FORMAT_RAW, filters=[{"id": lzma.FILTER_LZMA1, **chosen}])


def _checked(pieces: Iterator[bytes], member: zipfile.ZipInfo, where: str) -> Iterator[bytes]:
    n_bytes = checksum = 0
    for piece in pieces:
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
