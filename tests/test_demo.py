"""The demonstration compares new errors with those of the paper and of recorded runs."""

from dataclasses import replace

from examples.demo import beside_table
from experiments.matrix_cell import cells_of_table1
from experiments.page import Page, Table
from experiments.records import Records
from tests.experiments.small import finished

CELLS = cells_of_table1(tasks=["symmetric", "trace"], layers=[1], readouts=["mean"])


def recorded(place, cells, error, **changes):
    records = Records(place)
    for cell in cells:
        records.add(finished(replace(cell, **changes) if cell.is_learned else cell, error))
    return place


def test_row_has_the_new_the_papers_and_the_recorded_error(tmp_path):
    now, before = recorded(tmp_path / "now", CELLS, 5e-6, epochs=3), recorded(tmp_path / "before", CELLS[:2], 7e-9)
    table = beside_table(now, before)
    assert table.rows == (
        ("symmetric", "1", "bellnet, 15 maps", "5.0e-06", "1.0e-05", "7.0e-09", "better"),
        ("symmetric", "1", "Hartford et al., 4 maps", "5.0e-06", "2.09", "7.0e-09", "-"),
        ("symmetric", "1", "trivial: the mean", "5.0e-06", "4.17", "-", "-"),
        ("trace", "1", "bellnet, 15 maps", "5.0e-06", "0.005", "-", "better"),
        ("trace", "1", "Hartford et al., 4 maps", "5.0e-06", "316.2", "-", "-"),
        ("trace", "1", "trivial: the mean", "5.0e-06", "333.3", "-", "-"),
    )
    assert table.notes == (
        "now: 10000 examples, 1000 of them for validation; epochs: 3; tested on 1000 others.",
        "recorded: 10000 examples, 1000 of them for validation; epochs: 20; tested on 1000 others.",
        "the paper: 10000 examples, tested on 1000 others; number of epochs not stated.",
        "The readout of the trace is the mean over each orbit; the paper uses the maximum.",
    )


def test_worse_errors_are_marked_and_other_sizes_are_not_compared(tmp_path):
    assert beside_table(recorded(tmp_path / "bad", CELLS[:1], 1.0), tmp_path).rows[0][-1] == "worse"
    table = beside_table(recorded(tmp_path / "small", CELLS[:1], 1.0, n=4), tmp_path)
    assert table.rows[0][-1] == "-"
    assert table.notes[1:] == (
        "recorded: nothing.",
        "the paper: 10000 examples, tested on 1000 others; number of epochs not stated.",
        "Not comparable: the paper has n=40.",
    )


def test_page_escapes_its_content():
    page = Page("<title>", "a `b -> c` < d")
    page.heading("<h>")
    page.words("<w>")
    page.listing("<l>")
    page.items(["<i>"])
    page.table(Table("<t>", ("<a>", "b"), (("1", "✓"),), ("<n>",)), level=3)
    page.picture(b"png", '"quoted"')
    html = page.html()
    for given in ("title", "h", "w", "l", "i", "t", "a", "n"):
        assert f"&lt;{given}&gt;" in html
        assert f"<{given}>" not in html.replace("<title>", "", 1)
    assert "a <code>b -&gt; c</code> &lt; d" in html
    assert "<h3>&lt;t&gt;</h3>" in html
    assert 'alt="&quot;quoted&quot;" src="data:image/png;base64,cG5n"' in html
