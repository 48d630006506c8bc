"""The page as a file: one piece that needs nothing else, made of what the library has."""

import re
from pathlib import Path

import pytest

import bellnet.explorer
from bellnet.draw import strands, style
from bellnet.errors import SpecError
from bellnet.explorer import page
from bellnet.explorer.join import LIBRARY, PAGE

PARTS = Path(bellnet.explorer.__file__).parent


def test_the_page_loads_nothing():
    whole = page()
    addresses = set(re.findall(r"\w+://[\w./]+", whole))
    assert addresses == {"http://www.w3.org/2000/svg"}  # the name of a kind of element
    for word in ("src=", "@import", "url(", "import(", "fetch(", "XMLHttpRequest", '<link rel="stylesheet'):
        assert word not in whole, word
    assert "default-src 'none'" in whole


def test_nothing_is_left_to_be_filled_in():
    assert "@@" not in page()


def test_every_script_is_on_the_page_once():
    assert sorted([*LIBRARY, *PAGE, "theme"]) == sorted(path.stem for path in (PARTS / "js").iterdir())
    whole = page()
    for path in (PARTS / "js").iterdir():
        assert whole.count(path.read_text(encoding="utf-8")) == 1, path.name


def test_scripts_of_the_library_know_no_document():
    for name in LIBRARY:
        script = (PARTS / "js" / f"{name}.js").read_text(encoding="utf-8")
        assert not re.search(r"\b(document|window|byId|make|makeSvg)\b", re.sub("//.*", "", script)), name


def test_the_page_begins_with_a_spec_and_refuses_one_that_cannot_be_read():
    assert 'value="{u u} i -&gt; u"' in page("{u u}  i->u")
    with pytest.raises(SpecError, match="is not part of a node set name"):
        page('n -> "><script>')


def test_light_colours_and_markers_are_those_of_pictures():
    look = (PARTS / "look.css").read_text(encoding="utf-8")
    light = dict(re.findall(r"--(\w+): light-dark\((#\w+), #\w+\)", look))
    names = ("ink", "soft", "rule", "faint", "paper", "map", "bias")
    assert {name: light[name] for name in names} == {name: getattr(style, name.upper()) for name in names}
    assert tuple(light[f"color{number}"] for number in range(6)) == style.PALETTE
    script = (PARTS / "js" / "strands.js").read_text(encoding="utf-8")
    assert f"COLORS = {len(style.PALETTE)};" in script
    (markers,) = re.findall(r"MARKERS = \[(.*)\];", script)
    assert re.findall('"(.)"', markers) == [letter for _, letter in strands.MARKERS]
