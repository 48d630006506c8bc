"""Reports: drawn from records alone."""

import base64
import re
from dataclasses import replace

import pytest

from bellnet.errors import DataError
from experiments.records import Records
from experiments.report import write_report
from experiments.run import run_cells
from tests.experiments.small import SMALL, small


@pytest.fixture(scope="module")
def directory(tmp_path_factory):
    place = tmp_path_factory.mktemp("run")
    cells = [small(task=task, method=method) for task in ("diagonal", "singular") for method in ("bellnet", "hartford")]
    run_cells([*cells, replace(SMALL, table="table2", sizes=(3, 4, 5))], place, show=False)
    return place


@pytest.fixture(scope="module")
def files(directory):
    """The report of that directory."""
    return write_report(directory)


def test_a_report_has_tables_and_pictures(directory, files):
    assert [file.name for file in files] == ["curves.png", "sizes.png", "examples.png", "report.md", "report.html"]
    markdown = (directory / "report.md").read_text()
    assert "| task | layers | bellnet | paper |" in markdown
    assert "| diagonal | 1 |" in markdown
    for name in re.findall(r"!\[.*?\]\((.*?)\)", markdown):
        assert (directory / name).read_bytes().startswith(b"\x89PNG")
    assert markdown.count("![") == 3


@pytest.mark.usefixtures("files")
def test_the_page_needs_no_other_file(directory):
    page = (directory / "report.html").read_text()
    sources = re.findall(r'(?:src|href)="(.*?)"', page)
    assert len(sources) == 3
    assert all(source.startswith("data:image/png;base64,") for source in sources)
    assert base64.b64decode(sources[0].partition(",")[2]) == (directory / "curves.png").read_bytes()
    assert page.count("<table>") == 3


@pytest.mark.usefixtures("files")
def test_a_report_is_drawn_again_from_the_records_alone(directory, tmp_path):
    copy = tmp_path / "copy"
    copy.mkdir()
    Records(copy).path.write_bytes(Records(directory).path.read_bytes())
    write_report(copy)
    for name in ("report.md", "curves.png", "sizes.png", "examples.png"):
        assert (copy / name).read_bytes() == (directory / name).read_bytes()


def test_a_directory_without_records_is_refused(tmp_path):
    with pytest.raises(DataError) as caught:
        write_report(tmp_path)
    assert str(caught.value) == (
        f"{tmp_path} has no finished cell to report.\n"
        "Name a directory that table1, table2 or table3 has written with --out."
    )


def test_a_report_that_cannot_be_written_is_refused_and_the_old_one_is_whole(directory, files, tmp_path):
    for file in (Records(directory).path, *files):
        (tmp_path / file.name).write_bytes(file.read_bytes())
    (tmp_path / "report.html").unlink()
    (tmp_path / "report.html").mkdir()
    (tmp_path / "report.md").write_text("old")
    before = sorted(path.name for path in tmp_path.iterdir())
    with pytest.raises(DataError) as caught:
        write_report(tmp_path)
    assert str(caught.value) == (
        f"{tmp_path / 'report.html'} cannot be written: it is a directory.\nChoose another path."
    )
    assert sorted(path.name for path in tmp_path.iterdir()) == before
    assert (tmp_path / "report.md").read_text() == "old"
