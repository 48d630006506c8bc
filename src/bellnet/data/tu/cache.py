"""The cache folder: downloaded zips, parsed data sets as arrays, and data sets received from another machine.

Arrays are read without pickle, so that a file from elsewhere cannot run code.
"""

import hashlib
import os
import re
import shutil
import sys
import tempfile
import warnings
import zipfile
import zlib
from collections.abc import Callable, Collection
from dataclasses import dataclass, fields
from http import HTTPStatus
from http.client import HTTPException
from pathlib import Path
from typing import IO

from bellnet._utils.files import words, write_files
from bellnet._utils.optional import require
from bellnet.data.tu.parse import Arrays
from bellnet.data.tu.tu_files import file_digest
from bellnet.errors import DataError, did_you_mean

VERSION = 1
SITE = "https://www.chrsmrrs.com/graphkerneldatasets"
TIMEOUT = 60.0  # seconds without a byte from the site
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*")
_BLOCK = 2**18
_ELSEWHERE = "name a folder that has the zip: tu.load(name, data=...) or the environment variable BELLNET_DATA."

_COLLECTION = """
AIDS BZR BZR_MD COIL-DEL COIL-RAG COLLAB COLORS-3 COX2 COX2_MD Cuneiform DBLP_v1 DD DHFR DHFR_MD ENZYMES ER_MD
FIRSTMM_DB FRANKENSTEIN Fingerprint IMDB-BINARY IMDB-MULTI KKI Letter-high Letter-low Letter-med MCF-7 MCF-7H MOLT-4
MOLT-4H MSRC_21 MSRC_21C MSRC_9 MUTAG Mutagenicity NCI-H23 NCI-H23H NCI1 NCI109 OHSU OVCAR-8 OVCAR-8H P388 P388H
PC-3 PC-3H PROTEINS PROTEINS_full PTC_FM PTC_FR PTC_MM PTC_MR Peking_1 QM9 REDDIT-BINARY REDDIT-MULTI-12K
REDDIT-MULTI-5K SF-295 SF-295H SN12C SN12CH SW-620 SW-620H SYNTHETIC SYNTHETICnew Synthie TRIANGLES
TWITTER-Real-Graph-Partial UACC257 UACC257H Yeast YeastH ZINC_full ZINC_test ZINC_train ZINC_val alchemy_full
aspirin benzene deezer_ego_nets ethanol github_stargazers malonaldehyde naphthalene reddit_threads salicylic_acid
toluene twitch_egos uracil
"""
NAMES = tuple(_COLLECTION.split())
"""The data sets of https://chrsmrrs.github.io/datasets."""


def default_folder() -> Path:
    """The cache folder: $BELLNET_CACHE, or the platform's folder for caches."""
    if given := os.environ.get("BELLNET_CACHE"):
        return Path(given).expanduser()
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "bellnet"
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA", Path.home() / "AppData" / "Local")) / "bellnet" / "Cache"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "bellnet"


def read(file: Path) -> Arrays | None:
    """The arrays in a file; None if there is no file or it cannot be read."""
    import numpy as np

    try:
        with file.open("rb") as stream, np.load(stream, allow_pickle=False) as stored:
            arrays = {name: stored[name] for name in stored.files}
        return Arrays(**{**arrays, "directed": bool(arrays["directed"])})
    except (OSError, EOFError, KeyError, TypeError, ValueError, zipfile.BadZipFile, zlib.error):
        return None


def write(file: Path, arrays: Arrays) -> None:
    """Writes the arrays to a file, completely or, with a warning, not at all."""
    import numpy as np

    present = {field.name: value for field in fields(arrays) if (value := getattr(arrays, field.name)) is not None}
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        write_files({file: lambda stream: np.savez(stream, **present)})
    except OSError as reason:
        warnings.warn(
            f"bellnet.data.tu cannot write {file}: {reason}. The data set will be parsed again next time.\n"
            "Name another folder with cache=... or the environment variable BELLNET_CACHE, or pass cache=False.",
            RuntimeWarning,
            stacklevel=5,
        )


@dataclass(frozen=True)
class Parcel:
    """A data set with everything that `load` reads, for another machine.

    Attributes:
        name: The name of the data set.
        zipped: The bytes of its zip.
        splits: The bytes of its published splits, or None.
    """

    name: str
    zipped: bytes
    splits: bytes | None

    @property
    def digest(self) -> str:
        """A digest of zip and splits."""
        parts = (self.zipped, self.splits or b"")
        return hashlib.sha256("".join(hashlib.sha256(part).hexdigest() for part in parts).encode()).hexdigest()


def receive(name: str, digest: str, fetch: Callable[[], Parcel]) -> Path:
    """The folder of the cache with a data set, for `load`; the data set is fetched if it is not there.

    Args:
        name: The name of the data set.
        digest: The digest of its parcel.
        fetch: Returns the parcel.
    """
    folder = default_folder() / "received" / f"{name}-{digest[:16]}"
    zipped = folder / f"{name}.zip"
    if not zipped.is_file():
        parcel = fetch()
        if (parcel.name, parcel.digest) != (name, digest):
            raise DataError(f"{name}: the data set received has another digest than the one sent.\nSend it again.")
        splits = {} if parcel.splits is None else {folder / "splits" / f"{name}.json": parcel.splits}
        try:
            for path in (*splits, zipped):
                path.parent.mkdir(parents=True, exist_ok=True)
            # The zip is written last: where it exists, the splits do.
            write_files({**splits, zipped: parcel.zipped})
        except OSError as reason:
            raise DataError(
                f"{name} cannot be written to {folder}: {reason.strerror or reason}.\n"
                "Name another folder with the environment variable BELLNET_CACHE."
            ) from reason
    return folder


def fetch(name: str, folder: Path, known: Collection[str]) -> Path:
    """The zip of a data set, downloaded into a folder unless it is there.

    A checksum is written beside the zip and compared with it later; a zip copied by hand has none. The known names are
    for a suggestion if the name is misspelled.
    """
    call = f'tu.load("{name}")'
    if not _NAME.fullmatch(name):
        raise DataError(
            f'{call}: the name of a data set that is to be downloaded has letters, digits, "_", "-" and "." only.\n'
            'For a zip or a folder pass its path: tu.load("folder/NAME.zip").'
        )
    zipped, checksum = folder / f"{name}.zip", folder / f"{name}.zip.sha256"
    if zipped.is_file():
        if checksum.is_file() and checksum.read_bytes().split()[:1] != [file_digest(zipped).encode()]:
            raise DataError(
                f"{call}: {zipped} has changed since it was downloaded: its checksum is not that of {checksum.name}.\n"
                "Remove both to download it again, or only the checksum if you trust the zip."
            )
        return zipped
    if name not in known and Path(name).exists():
        raise DataError(
            f"{call}: no data set of the TU collection is called {name}, but a file or folder is.\n"
            f'Write a path with a separator: tu.load("./{name}").'
        )
    require("pooch", extra="graphs", call="tu.load")
    with tempfile.TemporaryFile(prefix="bellnet-") as found:
        _download(call, name, found, known)
        found.seek(0)
        line = f"{hashlib.file_digest(found, 'sha256').hexdigest()}  {zipped.name}\n".encode()  # as sha256sum reads it
        found.seek(0)
        try:
            folder.mkdir(parents=True, exist_ok=True)
            write_files({zipped: lambda file: shutil.copyfileobj(found, file), checksum: line})
        except OSError as reason:
            raise DataError(
                f"{call}: {reason.filename} cannot be written: {words(reason)}\n"
                "Name another folder with root=... or the environment variable BELLNET_CACHE."
            ) from reason
    return zipped


def _download(call: str, name: str, file: IO[bytes], known: Collection[str]) -> None:
    """Downloads the zip of a data set into a file, or raises a `DataError` with the reason."""
    from pooch import HTTPDownloader

    url = f"{SITE}/{name}.zip"
    meant = "" if name in known else did_you_mean(name, known)
    print(f"downloading {url}", file=sys.stderr)
    download = HTTPDownloader(progressbar=sys.stderr.isatty(), chunk_size=_BLOCK, timeout=TIMEOUT)
    try:
        download(url, file, None)
    except OSError as reason:  # the base class of the exceptions of requests
        response = getattr(reason, "response", None)
        if response is not None:
            response.close()  # pooch leaves it open
        if response is not None and response.status_code == HTTPStatus.NOT_FOUND:
            raise DataError(
                f"{call}: there is no {url}. {meant}".rstrip()
                + "\nThe names are those of https://chrsmrrs.github.io/datasets."
            ) from reason
        cause: BaseException = reason
        while cause.__context__ is not None:
            cause = cause.__context__
        if not isinstance(cause, HTTPException):  # otherwise the connection was closed too early
            status = cause if response is None else f"HTTP status {response.status_code}, {response.reason}"
            raise DataError(
                f"{call}: {url} cannot be downloaded: {status}. {meant}".rstrip()
                + f"\nCheck the network, or {_ELSEWHERE}"
            ) from reason
    if not zipfile.is_zipfile(file):
        raise DataError(f"{call}: the download of {url} is not a complete zip.\nTry again, or {_ELSEWHERE}")
