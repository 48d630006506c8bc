"""The link checker finds broken links of the built pages."""

import importlib.util

import pytest

from tests.docs.reference import DOCS

_file = importlib.util.spec_from_file_location("check_links", DOCS / "check_links.py")
check_links = importlib.util.module_from_spec(_file)
_file.loader.exec_module(check_links)


@pytest.fixture
def site(tmp_path):
    """Two pages with working links."""
    (tmp_path / "index.html").write_text('<a href="more/page.html#part">x</a> <a href="https://example.org/none">y</a>')
    (tmp_path / "more").mkdir()
    (tmp_path / "more" / "page.html").write_text('<h2 id="part">x</h2><a href="../">up</a><a href="#part">here</a>')
    return tmp_path


def test_working_links_are_not_reported(site):
    assert check_links.problems(site) == []


@pytest.mark.parametrize(
    ("planted", "reason"),
    [
        ('<a href="gone.html">x</a>', "no such file"),
        ('<img src="gone.png">', "no such file"),
        ('<a href="page.html#gone">x</a>', "no such anchor"),
        ('<a href="#gone">x</a>', "no such anchor"),
        ('<script src="https://example.org/x.js"></script>', "loaded from another site"),
        ('<link rel="stylesheet" href="//example.org/x.css">', "loaded from another site"),
    ],
)
def test_broken_link_is_reported(site, planted, reason):
    page = site / "more" / "page.html"
    page.write_text(page.read_text() + planted)
    (problem,) = check_links.problems(site)
    assert problem.startswith("more/page.html: ")
    assert problem.endswith(reason)


def test_directory_without_pages_is_reported(tmp_path):
    assert check_links.problems(tmp_path) == [f"{tmp_path}: no pages"]
