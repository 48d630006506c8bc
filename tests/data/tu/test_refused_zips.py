"""A zip that raises an error writes no files."""

import pytest

from bellnet.data import tu
from bellnet.errors import DataError
from tests.data.tu.small import write_zip
from tests.messages.cases.data import CASES


@pytest.mark.parametrize("member", ["../evil.txt", "/evil.txt", "..\\evil.txt"])
def test_a_zip_with_a_path_outside_of_its_folder_writes_nothing(member, tmp_path):
    zipped = write_zip(tmp_path / "a" / "b" / "SMALL.zip", extra=[member])
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(DataError, match="outside"):
        tu.load(data=zipped)
    assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.parametrize("name", [name for name in CASES if "zip" in name or "edge file" in name])
def test_a_refused_data_set_leaves_nothing_in_the_cache(name, tmp_path):
    with pytest.raises(DataError):
        CASES[name](tmp_path)
    assert not list((tmp_path / "cache").glob("*"))
