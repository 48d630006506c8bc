"""Data sets of the TU collection over the network, from where it is published."""

import hashlib
import re
import shutil
import sys
import tempfile
import zipfile
from collections.abc import Collection
from http import HTTPStatus
from http.client import HTTPException
from pathlib import Path
from typing import IO

from bellnet._utils.files import words, write_files
from bellnet._utils.optional import require
from bellnet.errors import DataError, did_you_mean

SITE = "https://www.chrsmrrs.com/graphkerneldatasets"
SECONDS = 60.0  # without a word from the site
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*")
_BLOCK = 2**18
_ELSEWHERE = "name a folder that has the zip: tu.load(name, data=...) or the environment variable BELLNET_DATA."


def fetch(name: str, folder: Path, known: Collection[str]) -> Path:
    """The zip of a data set, downloaded into a folder unless it is there.

    Its checksum is kept beside it, and what does not fit that any more is not what was fetched.

    Args:
        name: The name of the data set.
        folder: Where downloads are.
        known: The names of data sets that may have been meant.
    """
    if not _NAME.fullmatch(name):
        raise DataError(
            f'tu.load("{name}"): the name of a data set that is to be downloaded has letters, digits, "_", "-" and "." '
            "only.\nA zip or a folder is data=..., tu.load(data=...)."
        )
    zipped, checksum = folder / f"{name}.zip", folder / f"{name}.zip.sha256"
    if zipped.is_file():
        _compare(name, zipped, checksum)
        return zipped
    require("pooch", extra="graphs", call="tu.load")
    with tempfile.TemporaryFile(prefix="bellnet-") as found:
        _download(name, found, known)
        found.seek(0)
        digest = hashlib.file_digest(found, "sha256").hexdigest()
        found.seek(0)
        try:
            folder.mkdir(parents=True, exist_ok=True)
            line = f"{digest}  {zipped.name}\n".encode()  # as sha256sum reads it
            write_files({zipped: lambda file: shutil.copyfileobj(found, file), checksum: line})
        except OSError as reason:
            raise DataError(
                f'tu.load("{name}"): {reason.filename} cannot be written: {words(reason)}\n'
                "Name another folder with root=... or the environment variable BELLNET_CACHE."
            ) from reason
    return zipped


def _compare(name: str, zipped: Path, checksum: Path) -> None:
    """Refuse a zip that has another checksum than the one beside it; one that was put there by hand has none."""
    if not checksum.is_file():
        return
    with zipped.open("rb") as stream:
        digest = hashlib.file_digest(stream, "sha256").hexdigest()
    if checksum.read_bytes().split()[:1] != [digest.encode()]:
        raise DataError(
            f'tu.load("{name}"): {zipped} is not what was fetched: its checksum is not that of {checksum.name}.\n'
            "Remove both to fetch it again, or only the checksum if the zip is to be trusted."
        )


def _download(name: str, file: IO[bytes], known: Collection[str]) -> None:
    """Download the zip of a data set into a file, or raise a `DataError` with the reason."""
    from pooch import HTTPDownloader

    url = f"{SITE}/{name}.zip"
    meant = "" if name in known else did_you_mean(name, known)
    print(f"downloading {url}", file=sys.stderr)
    download = HTTPDownloader(progressbar=sys.stderr.isatty(), chunk_size=_BLOCK, timeout=SECONDS)
    try:
        download(url, file, None)
    except OSError as reason:  # as are all exceptions of requests
        response = getattr(reason, "response", None)
        if response is not None:
            response.close()  # pooch leaves it open
        if response is not None and response.status_code == HTTPStatus.NOT_FOUND:
            raise DataError(
                f'tu.load("{name}"): there is no {url}. {meant}'.rstrip()
                + "\nThe names are those of https://chrsmrrs.github.io/datasets."
            ) from reason
        cause: BaseException = reason
        while cause.__context__ is not None:
            cause = cause.__context__
        if not isinstance(cause, HTTPException):  # otherwise the connection was closed too early
            said = cause if response is None else f"HTTP status {response.status_code}, {response.reason}"
            raise DataError(
                f'tu.load("{name}"): {url} cannot be had: {said}. {meant}'.rstrip()
                + f"\nCheck the network, or {_ELSEWHERE}"
            ) from reason
    if not zipfile.is_zipfile(file):
        raise DataError(f'tu.load("{name}"): {url} did not give a whole zip.\nTry again, or {_ELSEWHERE}')
