"""Tests use a cache folder of their own, and real data sets where they exist."""

import os
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


def real_folder():
    """The folder with the TU zips: $BELLNET_DATA, or beside the repository."""
    return Path(os.environ.get("BELLNET_DATA") or ROOT.parent / "shared" / "data" / "tu")


REAL = real_folder()


@pytest.fixture(autouse=True)
def _own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("BELLNET_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("BELLNET_DATA", raising=False)


@pytest.fixture
def real():
    """The folder with the TU zips."""
    if not (REAL / "MUTAG.zip").is_file():
        pytest.skip(f"the TU data sets are not in {REAL}; set BELLNET_DATA")
    return REAL
