"""The built page: one self-contained file, consistent with the library."""

import re
from importlib import resources

from bellnet.draw import diagrams, style
from docs.explorer.build_page import INTERFACE, LIBRARY, SOURCES, build_page

SCRIPTS = SOURCES / "js"


def test_page_loads_nothing():
    page = build_page()
    addresses = set(re.findall(r"\w+://[\w./]+", page))
    assert addresses == {"http://www.w3.org/2000/svg"}  # the name of a kind of element
    for word in ("src=", "@import", "url(", "import(", "fetch(", "XMLHttpRequest", '<link rel="stylesheet'):
        assert word not in page, word
    assert "default-src 'none'" in page


def test_spec_is_the_only_placeholder():
    assert re.findall("@@.*?@@", build_page()) == ["@@spec@@"]


def test_installed_page_is_built_from_the_current_sources():
    assert (resources.files("bellnet") / "explorer.html").read_text(encoding="utf-8") == build_page()


def test_page_contains_every_script_once():
    assert sorted([*LIBRARY, *INTERFACE, "theme"]) == sorted(path.stem for path in SCRIPTS.iterdir())
    page = build_page()
    for path in SCRIPTS.iterdir():
        assert page.count(path.read_text(encoding="utf-8")) == 1, path.name


def test_library_scripts_use_no_dom():
    for name in LIBRARY:
        script = (SCRIPTS / f"{name}.js").read_text(encoding="utf-8")
        assert not re.search(r"\b(document|window|byId|makeHtml|makeSvg)\b", re.sub("//.*", "", script)), name


def test_light_colors_and_markers_are_those_of_the_pictures():
    style_sheet = (SOURCES / "page.css").read_text(encoding="utf-8")
    light = dict(re.findall(r"--(\w+): light-dark\((#\w+), #\w+\)", style_sheet))
    names = ("ink", "soft", "rule", "faint", "paper", "map", "bias")
    assert {name: light[name] for name in names} == {name: getattr(style, name.upper()) for name in names}
    assert tuple(light[f"color{number}"] for number in range(6)) == style.PALETTE
    script = (SCRIPTS / "diagram_svg.js").read_text(encoding="utf-8")
    assert f"N_COLORS = {len(style.PALETTE)};" in script
    (markers,) = re.findall(r"MARKERS = \[(.*)\];", script)
    assert re.findall('"(.)"', markers) == [letter for _, letter in diagrams.MARKERS]
