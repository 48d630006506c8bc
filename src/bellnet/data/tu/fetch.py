"""Data sets of the TU collection over the network, from where PyTorch Geometric gets them."""

import shutil
import tempfile
import zipfile
from pathlib import Path

from bellnet.errors import DataError
from bellnet.extras import require
from bellnet.files import words, write_files


def fetch(name: str, folder: Path) -> Path:
    """The zip of a data set, downloaded into a folder unless it is there."""
    zipped = folder / f"{name}.zip"
    if zipped.is_file():
        return zipped
    require("torch_geometric", extra="pyg", call=f'tu.load("{name}") without data=...')
    from torch_geometric.data import download_url
    from torch_geometric.datasets import TUDataset

    url = f"{TUDataset.url}/{name}.zip"
    with tempfile.TemporaryDirectory(prefix="bellnet-") as place:
        try:
            found = Path(download_url(url, place))
        except OSError as reason:
            raise DataError(
                f'tu.load("{name}"): {url} cannot be had: {reason}.\n'
                "Check the name (as in https://chrsmrrs.github.io/datasets) and the network, or name a folder that has "
                "the zip: tu.load(name, data=...) or the environment variable BELLNET_DATA."
            ) from reason
        if not zipfile.is_zipfile(found):
            raise DataError(f'tu.load("{name}"): {url} did not give a whole zip.\nTry again, or pass data=...')
        try:
            folder.mkdir(parents=True, exist_ok=True)
            with found.open("rb") as stream:
                write_files({zipped: lambda file: shutil.copyfileobj(stream, file)})
        except OSError as reason:
            raise DataError(
                f'tu.load("{name}"): {reason.filename} cannot be written: {words(reason)}\n'
                "Name another folder with root=... or the environment variable BELLNET_CACHE."
            ) from reason
    return zipped
