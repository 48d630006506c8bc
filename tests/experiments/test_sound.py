"""Records that tables cannot be made of are named, with a way out that leads out."""

import math

import pytest

from bellnet.errors import DataError
from experiments import Records, run_cells, write_report
from experiments.__main__ import main
from tests.experiments.graphs import classified, tiny
from tests.experiments.small import finished, small

CELL = small(method="trivial")
MATRICES, GRAPHS = finished(CELL, 1.0), classified(tiny(), 0.5)


def _changed(record, **changes):
    return {name: value for name, value in {**record, **changes}.items() if value is not ...}


FOREIGN = {
    "no config": (_changed(MATRICES, config=...), "has no config"),
    "a config that is a list": (_changed(MATRICES, config=[]), "has no config"),
    "another table": (_changed(MATRICES, config={"table": "table9"}), "has a config that is no cell of a table"),
    "no table": (_changed(GRAPHS, config={}), "has a config that is no cell of a table"),
    "a cell that cannot be": (
        _changed(MATRICES, config={**CELL.to_json(), "layers": -1}),
        "has a config that is no cell of a table",
    ),
    "no versions": (_changed(MATRICES, versions=...), "has no versions"),
    "a machine that is a name": (_changed(MATRICES, machine="mine"), "has no machine"),
    "no time": (_changed(MATRICES, seconds=...), "has no seconds"),
    "no errors": (_changed(MATRICES, errors=...), "has no errors"),
    "errors of no size": (_changed(MATRICES, errors={"many": 1.0}), "has no errors"),
    "an error that is a word": (_changed(MATRICES, errors={"4": "small"}), "has no error for 4 nodes"),
    "a validation that is true": (_changed(MATRICES, validation=True), "has no validation"),
    "no accuracy": (_changed(GRAPHS, accuracy=...), "has no accuracy"),
    "a time of 401 digits": (_changed(MATRICES, seconds=10**400), "has an impossible number for seconds"),
    "a time that is no number": (_changed(GRAPHS, seconds=math.nan), "has an impossible number for seconds"),
    "a time before it began": (_changed(GRAPHS, seconds=-1.0), "has an impossible number for seconds"),
    "an error of 401 digits": (
        _changed(MATRICES, errors={"4": 10**400}),
        "has an impossible number for error for 4 nodes",
    ),
    "an error below zero": (_changed(MATRICES, errors={"4": -1.0}), "has an impossible number for error for 4 nodes"),
    "an error whose sums overflow": (
        _changed(MATRICES, errors={"4": 1e308}),
        "has an impossible number for error for 4 nodes",
    ),
    "an error of a size of 5000 digits": (_changed(MATRICES, errors={"4" * 5000: 1.0}), "has no errors"),
    "a validation of 401 digits": (_changed(MATRICES, validation=10**400), "has an impossible number for validation"),
    "an accuracy that is no number": (_changed(GRAPHS, accuracy=math.nan), "has an impossible number for accuracy"),
    "an accuracy above one": (_changed(GRAPHS, accuracy=89.4), "has an impossible number for accuracy"),
    "a cell of 401 digits of nodes": (
        _changed(MATRICES, config={**CELL.to_json(), "n": 10**400}),
        "has a config that is no cell of a table",
    ),
}


@pytest.mark.parametrize("foreign", FOREIGN)
def test_a_result_that_is_none_of_a_table_is_named(tmp_path, foreign, capsys):
    record, words = FOREIGN[foreign]
    records = Records(tmp_path)
    records.append(record)
    assert main(["report", str(tmp_path)]) == 2
    assert capsys.readouterr().err == (
        f'python -m experiments report: {records.path}: lines of the kind "cell" are not results of a table:\n'
        f'  - "{record["key"]}" {words}\n'
        "Delete the lines with these keys and that kind. A command that wants such a cell runs what it lacks.\n"
    )


def test_all_such_results_are_named_at_once_and_without_them_there_is_a_report(tmp_path):
    records = Records(tmp_path)
    for record in (_changed(MATRICES, errors=...), GRAPHS, {"kind": "cell", "key": "another"}):
        records.append(record)
    with pytest.raises(DataError) as caught:
        write_report(tmp_path)
    assert f'  - "{CELL.key}" has no errors\n  - "another" has no config\n' in str(caught.value)
    lines = records.path.read_text().splitlines(keepends=True)
    records.path.write_text(lines[1])
    run_cells([CELL], tmp_path, show=False)
    assert write_report(tmp_path)


@pytest.mark.parametrize(("result", "shown"), [(finished(small(), 1.0), "validation"), (GRAPHS, "test")])
def test_an_epoch_without_the_figure_of_its_curve_is_named(tmp_path, result, shown):
    records = Records(tmp_path)
    for number in range(3):
        figures = {} if number == 1 else {shown: 0.5}
        records.append({"kind": "epoch", "key": result["key"], "epoch": number, **figures})
    records.append(result)
    with pytest.raises(DataError) as caught:
        write_report(tmp_path)
    assert str(caught.value) == (
        f'{records.path}: lines of the kind "epoch" are not whole:\n  - "{result["key"]}", epoch 1, has no {shown}\n'
        "Delete these lines. Their cells keep their results; curves and the best averaged epoch do without them."
    )
    lines = records.path.read_text().splitlines(keepends=True)
    records.path.write_text("".join(lines[:1] + lines[2:]))
    assert write_report(tmp_path)


def test_a_report_takes_results_of_unfinished_company(tmp_path):
    records = Records(tmp_path)
    records.append({"kind": "epoch", "key": "not finished", "epoch": 0})
    records.append(GRAPHS)
    assert write_report(tmp_path)


@pytest.mark.parametrize("error", [0.0, 1e100], ids=["nothing", "the most"])
def test_errors_at_either_end_are_drawn(tmp_path, error):
    cell = small()
    for number in range(2):
        Records(tmp_path).append({"kind": "epoch", "key": cell.key, "epoch": number, "validation": error})
    Records(tmp_path).append(finished(cell, error, validation=error, errors={"4": error, "5": error}))
    assert write_report(tmp_path)


def test_a_run_that_has_diverged_is_reported(tmp_path):
    cell = small()
    records = Records(tmp_path)
    for number, error in enumerate((1.0, math.inf, math.nan)):
        records.append({"kind": "epoch", "key": cell.key, "epoch": number, "validation": error})
    records.append(finished(cell, math.nan, validation=math.nan, errors={"4": math.nan, "5": math.inf}))
    assert write_report(tmp_path)


@pytest.mark.parametrize(
    ("result", "epoch", "words"),
    [
        (finished(small(), 1.0), {"validation": 10**400}, "epoch 1, has an impossible number for validation"),
        (finished(small(), 1.0), {"validation": -1.0}, "epoch 1, has an impossible number for validation"),
        (GRAPHS, {"test": math.nan}, "epoch 1, has an impossible number for test"),
        (GRAPHS, {"test": 2}, "epoch 1, has an impossible number for test"),
        (GRAPHS, {"test": 0.5, "epoch": 3}, "epoch 3, is none of the 3 that the cell has"),
        (GRAPHS, {"test": 0.5, "epoch": 10**400}, "epoch 1000000000..., is none of the 3 that the cell has"),
    ],
)
def test_an_epoch_that_cannot_be_is_named(tmp_path, result, epoch, words, capsys):
    records = Records(tmp_path)
    records.append({"kind": "epoch", "key": result["key"], "epoch": 1, **epoch})
    records.append(result)
    assert main(["report", str(tmp_path)]) == 2
    assert f'lines of the kind "epoch" are not whole:\n  - "{result["key"]}", {words}\n' in capsys.readouterr().err


LEARNED = {**finished(small(), 1.0), "said": [[0.5] * 4] * 4}
RECORDS = {
    "matrices": (LEARNED, {"kind": "epoch", "key": LEARNED["key"], "epoch": 1, "validation": 0.5}),
    "graphs": (GRAPHS, {"kind": "epoch", "key": GRAPHS["key"], "epoch": 1, "test": 0.5}),
}


def _numbers(value, path=()):
    """The places of all numbers within a record."""
    if isinstance(value, dict | list):
        for name, part in value.items() if isinstance(value, dict) else enumerate(value):
            yield from _numbers(part, (*path, name))
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield path


def _replaced(value, path, number):
    if not path:
        return number
    parts = dict(value) if isinstance(value, dict) else list(value)
    parts[path[0]] = _replaced(parts[path[0]], path[1:], number)
    return parts


@pytest.mark.parametrize("kind", RECORDS)
def test_no_number_whatever_it_is_ends_a_report_without_words(tmp_path, kind, monkeypatch):
    drawn = RECORDS[kind]
    monkeypatch.setattr("experiments.report.png", lambda figure: b"")  # a second for each
    for which, record in enumerate(drawn):
        for path in _numbers(record):
            if path[:1] == ("said",) and path != ("said", 1, 2):
                continue  # one of the sixteen is enough
            for number in (10**400, math.nan, -math.inf, 1e308, -1):
                (tmp_path / "records.jsonl").unlink(missing_ok=True)
                for place, other in enumerate(drawn):
                    Records(tmp_path).append(_replaced(other, path, number) if place == which else other)
                assert main(["report", str(tmp_path)]) in (0, 2), path
