"""Downloads of data sets."""

import hashlib
import sys

import pytest

from bellnet.data import tu
from bellnet.errors import DataError
from tests.data.tu.site import serving
from tests.data.tu.small import write_zip
from tests.data.tu.test_load import check_small


@pytest.fixture
def site(tmp_path):
    with serving() as found:
        found.files["/sets/SMALL.zip"] = write_zip(tmp_path / "SMALL.zip").read_bytes()
        yield found


@pytest.fixture
def root(tmp_path):
    return tmp_path / "root"


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def test_a_data_set_is_downloaded_once_with_its_checksum(site, root, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "torch_geometric", None)
    check_small(tu.load("SMALL", root=root))
    digest = hashlib.sha256(site.files["/sets/SMALL.zip"]).hexdigest()
    assert names(root) == ["SMALL.zip", "SMALL.zip.sha256"]
    assert (root / "SMALL.zip.sha256").read_text() == f"{digest}  SMALL.zip\n"
    assert capsys.readouterr() == ("", f"downloading {site.url}/SMALL.zip\n")
    check_small(tu.load("SMALL", root=root))
    assert site.requested == ["/sets/SMALL.zip"]
    assert capsys.readouterr() == ("", "")


def test_a_data_set_is_downloaded_into_the_cache_by_default(site, tmp_path, capsys):
    check_small(tu.load("SMALL"))
    assert names(tmp_path / "cache" / "tu") == ["SMALL.zip", "SMALL.zip.sha256"]


def test_a_zip_without_a_checksum_is_read(site, root):
    write_zip(root / "SMALL.zip")
    check_small(tu.load("SMALL", root=root))
    assert site.requested == []


def test_a_zip_that_does_not_match_its_checksum_raises_an_error(site, root, capsys):
    tu.load("SMALL", root=root)
    with (root / "SMALL.zip").open("ab") as file:
        file.write(b"more")
    with pytest.raises(DataError) as refusal:
        tu.load("SMALL", root=root)
    assert str(refusal.value) == (
        f'tu.load("SMALL"): {root / "SMALL.zip"} has changed since it was downloaded: its checksum is not that of '
        "SMALL.zip.sha256.\nRemove both to download it again, or only the checksum if you trust the zip."
    )


def test_a_damaged_checksum_raises_an_error(site, root, capsys):
    tu.load("SMALL", root=root)
    (root / "SMALL.zip.sha256").write_bytes(b"\xff\xfe")
    with pytest.raises(DataError, match=r"its checksum is not that of SMALL\.zip\.sha256"):
        tu.load("SMALL", root=root)


def test_an_unknown_data_set_raises_an_error_with_the_closest_name(site, root, capsys):
    with pytest.raises(DataError) as refusal:
        tu.load("Mutagg", root=root)
    assert str(refusal.value) == (
        f'tu.load("Mutagg"): there is no {site.url}/Mutagg.zip. Did you mean MUTAG?\n'
        "The names are those of https://chrsmrrs.github.io/datasets."
    )
    with pytest.raises(DataError, match=r"/elsewhere\.zip\.\nThe names are"):
        tu.load("elsewhere", root=root)
    assert not root.exists()


NOT_WHOLE = (
    'tu.load("SMALL"): the download of {url} is not a complete zip.\nTry again, or name a folder that has the zip: '
    "tu.load(name, data=...) or the environment variable BELLNET_DATA."
)


def test_an_interrupted_download_leaves_no_files(site, root, capsys):
    site.missing = 1000
    with pytest.raises(DataError) as refusal:
        tu.load("SMALL", root=root)
    assert str(refusal.value) == NOT_WHOLE.format(url=f"{site.url}/SMALL.zip")
    assert not root.exists()


def test_a_download_that_is_no_zip_leaves_no_files(site, root, capsys):
    site.files["/sets/SMALL.zip"] = b"<html>please log in</html>"
    with pytest.raises(DataError) as refusal:
        tu.load("SMALL", root=root)
    assert str(refusal.value) == NOT_WHOLE.format(url=f"{site.url}/SMALL.zip")
    assert not root.exists()


def test_the_error_has_the_status_of_a_failing_site(site, root, capsys):
    site.status = 503
    with pytest.raises(DataError) as refusal:
        tu.load("SMALL", root=root)
    assert str(refusal.value) == (
        f'tu.load("SMALL"): {site.url}/SMALL.zip cannot be downloaded: HTTP status 503, Service Unavailable.\n'
        "Check the network, or name a folder that has the zip: tu.load(name, data=...) or the environment variable "
        "BELLNET_DATA."
    )
    assert not root.exists()


@pytest.fixture
def gone(monkeypatch):
    """A site that nobody answers for."""
    with serving() as found:
        pass
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    monkeypatch.setattr("bellnet.data.tu.cache.SITE", found.url)
    return found


def test_the_error_without_a_network_has_the_remedy(gone, root, capsys):
    with pytest.raises(DataError) as refusal:
        tu.load("SMALL", root=root)
    message = str(refusal.value)
    assert message.startswith(f'tu.load("SMALL"): {gone.url}/SMALL.zip cannot be downloaded: ')
    assert "Connection refused" in message
    assert "Check the network, or name a folder that has the zip" in message
    assert not root.exists()


@pytest.mark.parametrize(
    ("name", "meant"), [("MUTAGG", " Did you mean MUTAG?"), ("own_sett", " Did you mean own_set?"), ("MUTAG", "")]
)
def test_the_error_without_a_network_has_the_closest_name(gone, root, tmp_path, name, meant, monkeypatch, capsys):
    write_zip(tmp_path / "data" / "own_set.zip")
    monkeypatch.setenv("BELLNET_DATA", str(tmp_path / "data"))
    with pytest.raises(DataError) as refusal:
        tu.load(name, root=root)
    first, second = str(refusal.value).split("\n")
    assert first.startswith(f'tu.load("{name}"): {gone.url}/{name}.zip cannot be downloaded: ')
    assert first.endswith(f"Connection refused.{meant}")
    assert second.startswith("Check the network, or name a folder that has the zip")


@pytest.mark.parametrize("name", ["", ".", "..", "SMALL?x", "SM ALL", "\\SMALL"])
def test_an_invalid_name_is_not_requested(site, root, name):
    with pytest.raises(DataError) as refusal:
        tu.load(name, root=root)
    assert str(refusal.value) == (
        f'tu.load("{name}"): the name of a data set that is to be downloaded has letters, digits, "_", "-" and "." '
        'only.\nFor a zip or a folder pass its path: tu.load("folder/NAME.zip").'
    )
    assert site.requested == []


def test_a_download_that_cannot_be_written_raises_an_error(site, root, capsys):
    (root / "SMALL.zip").mkdir(parents=True)
    with pytest.raises(DataError) as refusal:
        tu.load("SMALL", root=root)
    assert str(refusal.value) == (
        f'tu.load("SMALL"): {root / "SMALL.zip"} cannot be written: it is a directory.\n'
        "Choose another path.\nName another folder with root=... or the environment variable BELLNET_CACHE."
    )
    assert names(root) == ["SMALL.zip"]


def test_a_terminal_shows_the_progress_of_a_download(site, root, capsys, monkeypatch):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    tu.load("SMALL", root=root)
    assert "100%" in capsys.readouterr().err
