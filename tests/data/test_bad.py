"""A battery of bad objects and files: each is refused, in these words, and no way of refusing is left out."""

import pytest

from bellnet.data import tu
from bellnet.errors import BellnetError, DataError, OptionError
from tests.data.bad import CASES, OF_OPTIONS, words_of_cases
from tests.data.tu.small import write_zip
from tests.messages.sites import LIBRARY, raise_sites, site_of

WORDS = words_of_cases()
TESTED_ELSEWHERE = {  # word by word, each in the test of its own name
    "data/generated.py",
    "data/tu/fetch.py",
    "data/tu/parcel.py",
}


@pytest.mark.parametrize("name", CASES)
def test_it_is_refused_in_these_words(name, tmp_path):
    with pytest.raises(OptionError if name in OF_OPTIONS else DataError) as caught:
        CASES[name](tmp_path)
    assert str(caught.value).replace(str(tmp_path), "PLACE") == WORDS[name]


def test_there_are_words_for_every_case_and_no_others():
    assert list(WORDS) == list(CASES)
    assert {*CASES} >= OF_OPTIONS


@pytest.mark.parametrize("name", WORDS)
def test_the_words_can_be_read_in_a_terminal(name):
    lines = WORDS[name].split("\n")
    assert max(map(len, lines)) <= 200
    assert lines[-1].endswith(".")


def test_every_raise_statement_has_a_case(tmp_path, monkeypatch):
    sites = [site for file in sorted((LIBRARY / "data").rglob("*.py")) for site in raise_sites(file)]
    sites = [site for site in sites if site.file not in TESTED_ELSEWHERE]
    reached = set()
    for number, call in enumerate(CASES.values()):
        place = tmp_path / str(number)
        place.mkdir()
        try:
            call(place)
        except BellnetError as error:
            reached.add(site_of(error.__traceback__, sites))
    monkeypatch.setenv("BELLNET_DATA", str(tmp_path / "nowhere"))
    with pytest.raises(
        DataError, match=r'tu.load\("MUTAG"\): the environment variable BELLNET_DATA must name'
    ) as caught:
        tu.load("MUTAG")
    reached.add(site_of(caught.value.__traceback__, sites))
    assert len(sites) > 50
    assert [site for site in sites if site not in reached] == []


@pytest.mark.parametrize("member", ["../evil.txt", "/evil.txt", "..\\evil.txt"])
def test_a_zip_that_climbs_out_writes_nothing(member, tmp_path):
    zipped = write_zip(tmp_path / "a" / "b" / "SMALL.zip", extra=[member])
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(DataError, match="outside"):
        tu.load(data=zipped)
    assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.parametrize("name", [name for name in CASES if "zip" in name or "edge file" in name])
def test_what_was_refused_leaves_nothing_in_the_cache(name, tmp_path):
    with pytest.raises(DataError):
        CASES[name](tmp_path)
    assert not list((tmp_path / "cache").glob("*"))
