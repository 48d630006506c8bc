"""Records that tables cannot be made of are named, with a way out that leads out."""

import math

import pytest

from bellnet.errors import DataError
from experiments.__main__ import main
from experiments.records import Records
from experiments.report import write_report
from experiments.run import run_cells
from tests.experiments.graphs import classified, tiny
from tests.experiments.small import finished, small

CELL = small(method="trivial")
MATRICES, GRAPHS = finished(CELL, 1.0), classified(tiny(), 0.5)


def _changed(record, **changes):
    return {name: value for name, value in {**record, **changes}.items() if value is not ...}


FOREIGN = {
    "no config": (_changed(MATRICES, config=...), "has no config"),
    "a config that is a list": (_changed(MATRICES, config=[]), "has no config"),
    "another table": (_changed(MATRICES, config={"table": "table9"}), "has no config of a cell of a table"),
    "no table": (_changed(GRAPHS, config={}), "has no config of a cell of a table"),
    "a cell that cannot be": (
        _changed(MATRICES, config={**CELL.to_json(), "layers": -1}),
        "has no config of a cell of a table",
    ),
    "no curves": (_changed(MATRICES, curves=...), "has no curves"),
    "no versions": (_changed(MATRICES, versions=...), "has no versions"),
    "a machine that is a name": (_changed(MATRICES, machine="mine"), "has no machine"),
    "no time": (_changed(MATRICES, seconds=...), "has no seconds"),
    "no errors": (_changed(MATRICES, errors=...), "has no errors"),
    "an error that is a word": (_changed(MATRICES, errors={"4": "small"}), "has no 4"),
    "no accuracy": (_changed(GRAPHS, accuracy=...), "has no accuracy"),
}


@pytest.mark.parametrize("foreign", FOREIGN)
def test_a_result_that_is_none_of_a_table_is_named(tmp_path, foreign, capsys):
    record, words = FOREIGN[foreign]
    records = Records(tmp_path)
    records.add(record)
    assert main(["report", str(tmp_path)]) == 2
    assert capsys.readouterr().err == (
        f"python -m experiments report: {records.path}: lines are not results of a table:\n"
        f'  - "{record["key"]}" {words}\n'
        "Delete the lines with these keys. A command that needs such a cell runs it again.\n"
    )


def test_all_such_results_are_named_at_once_and_without_them_there_is_a_report(tmp_path):
    records = Records(tmp_path)
    for record in (_changed(MATRICES, errors=...), GRAPHS, {"key": "another"}):
        records.add(record)
    with pytest.raises(DataError) as caught:
        write_report(tmp_path)
    assert f'  - "{CELL.key}" has no errors\n  - "another" has no config\n' in str(caught.value)
    lines = records.path.read_text().splitlines(keepends=True)
    records.path.write_text(lines[1])
    run_cells([CELL], tmp_path, show=False)
    assert write_report(tmp_path)


def test_a_curve_with_anything_but_numbers_is_named(tmp_path):
    records = Records(tmp_path)
    records.add(_changed(GRAPHS, curves={"loss": [1.0, 0.5], "test": [0.5, None]}))
    with pytest.raises(DataError, match="has no test of epoch 2"):
        write_report(tmp_path)


@pytest.mark.parametrize("error", [0.0, 1e100], ids=["zero", "large"])
def test_extreme_errors_are_drawn(tmp_path, error):
    curves = {"validation": [error, error]}
    Records(tmp_path).add(finished(small(), error, validation=error, errors={"4": error, "5": error}, curves=curves))
    assert write_report(tmp_path)


def test_a_run_that_has_diverged_is_reported(tmp_path):
    curves, errors = {"validation": [1.0, math.inf, math.nan]}, {"4": math.nan, "5": math.inf}
    Records(tmp_path).add(finished(small(), math.nan, validation=math.nan, errors=errors, curves=curves))
    assert write_report(tmp_path)
