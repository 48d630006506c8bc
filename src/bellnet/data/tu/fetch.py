"""Data sets of the TU collection over the network, from where PyTorch Geometric gets them."""

import shutil
import tempfile
import zipfile
from pathlib import Path

from bellnet.errors import DataError
from bellnet.extras import require


def fetch(name: str, folder: Path) -> Path:
    """The zip of a data set, downloaded into a folder unless it is there."""
    zipped = folder / f"{name}.zip"
    if zipped.is_file():
        return zipped
    require("torch_geometric", extra="pyg", call=f'tu.load("{name}") without data=...')
    from torch_geometric.data import download_url
    from torch_geometric.datasets import TUDataset

    url = f"{TUDataset.url}/{name}.zip"
    folder.mkdir(parents=True, exist_ok=True)
    temporary = Path(tempfile.mkdtemp(prefix=f"{name}-", dir=folder))
    try:
        found = Path(download_url(url, str(temporary)))
        if not zipfile.is_zipfile(found):
            raise DataError(f'tu.load("{name}"): {url} did not give a whole zip.\nTry again, or pass data=...')
        found.replace(zipped)
    except OSError as reason:
        raise DataError(
            f'tu.load("{name}"): {url} cannot be had: {reason}.\n'
            "Check the name (as in https://chrsmrrs.github.io/datasets) and the network, or name a folder that has "
            "the zip: tu.load(name, data=...) or the environment variable BELLNET_DATA."
        ) from reason
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
    return zipped
