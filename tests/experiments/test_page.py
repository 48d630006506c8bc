"""The report page, opened in a browser: nothing is missing and nothing complains."""

from dataclasses import replace

import pytest

from experiments.records import Records
from experiments.report import write_report
from experiments.run import run_cells
from tests.browser import needs_browser, open_browser
from tests.experiments.small import SMALL, small

pytestmark = [pytest.mark.slow, needs_browser]


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    directory = tmp_path_factory.mktemp("page")
    cells = [small(task=task) for task in ("symmetric", "singular")]
    run_cells([*cells, small(method="trivial"), replace(SMALL, table="table2", sizes=(3, 4))], directory, show=False)
    write_report(directory)
    return directory / "report.html"


@pytest.fixture(scope="module")
def browser(page, tmp_path_factory):
    with open_browser(tmp_path_factory.mktemp("profile")) as driver:
        driver.get(page.as_uri())
        yield driver


def test_every_picture_is_there(browser):
    sizes = browser.execute_script("return [...document.images].map(i => [i.complete, i.naturalWidth, i.alt])")
    assert len(sizes) == 3
    assert all(complete and width > 300 and words for complete, width, words in sizes)


@pytest.mark.parametrize("width", [1200, 500])
def test_every_table_is_there_and_fits(browser, width):
    browser.set_window_size(width, 800)
    heads = browser.execute_script("return [...document.querySelectorAll('h2')].map(h => h.innerText)")
    assert [head.partition(":")[0] for head in heads[:2]] == ["Table 1", "Table 2"]
    rows = browser.execute_script("return [...document.querySelectorAll('table')].map(t => t.rows.length)")
    assert rows[0] == 14
    assert browser.execute_script("return document.documentElement.scrollWidth <= window.innerWidth")


def test_nothing_complains(browser):
    assert browser.get_log("browser") == []


def test_the_figures_are_those_of_the_records(browser, page):
    (record,) = [
        record
        for record in Records(page.parent).read().values()
        if (record["config"]["task"], record["config"]["table"]) == ("symmetric", "table1")
    ]
    row = browser.execute_script("return document.querySelectorAll('table')[0].rows[1].innerText").split("\t")
    assert row[:2] == ["symmetric", "1"]
    assert float(row[2]) == pytest.approx(record["errors"]["4"], rel=1e-3)
