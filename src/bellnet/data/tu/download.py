"""Downloads of the data sets of the TU collection, and their names."""

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


def fetch(name: str, folder: Path, known: Collection[str]) -> Path:
    """The zip of a data set, downloaded into a folder unless it is there.

    A checksum is written beside the zip and compared with it later.

    Args:
        name: The name of the data set.
        folder: The folder for downloads.
        known: The names of data sets, for the suggestion if a name is misspelled.
    """
    if not _NAME.fullmatch(name):
        raise DataError(
            f'tu.load("{name}"): the name of a data set that is to be downloaded has letters, digits, "_", "-" and "." '
            'only.\nFor a zip or a folder pass its path: tu.load("folder/NAME.zip").'
        )
    zipped, checksum = folder / f"{name}.zip", folder / f"{name}.zip.sha256"
    if zipped.is_file():
        _compare(name, zipped, checksum)
        return zipped
    if name not in known and Path(name).exists():
        raise DataError(
            f'tu.load("{name}"): no data set of the TU collection is called {name}, but a file or folder is.\n'
            f'Write a path with a separator: tu.load("./{name}").'
        )
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
    """Raises a `DataError` if the checksum beside a zip is not its own; a zip copied by hand has none."""
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
