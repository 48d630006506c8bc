"""Running cells of other methods: records, going on after being killed, side by side, one command at a time."""

from dataclasses import replace

import pytest

from bellnet.errors import DataError
from experiments import run
from experiments.__main__ import main
from experiments.method_cells import MethodCell, cells_of_methods
from experiments.methods.networks import Isomorphism
from experiments.records import Records
from experiments.report import write_report
from experiments.run import exclusive, run_cells
from tests.experiments.graphs import write_set


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    return write_set(tmp_path_factory.mktemp("data"))


def _small(method, data, **changes):
    options = {"epochs": 3, "batch": 8, "C": [1.0], "chosen_by": 3, "depth": [1]}
    (cell,) = cells_of_methods([method], names=["MUTAG"], splits=[0], data=data)
    options = {name: options.get(name, value) for name, value in cell.options}
    return replace(cell, options=options, held_out=4, **changes)


def _without_time(records):
    return [
        {name: value for name, value in record.items() if name not in ("seconds", "kernel_seconds")}
        for record in records
    ]


def test_a_network_is_recorded_epoch_by_epoch_and_a_kernel_at_once(data, tmp_path):
    gin, wl = _small("gin", data), _small("wl", data)
    finals = run_cells([gin, wl], tmp_path, show=False)
    records = Records(tmp_path)
    assert [record["epoch"] for record in records.epochs()[gin.key]] == [0, 1, 2]
    assert wl.key not in records.epochs()
    for final, cell in zip(finals, (gin, wl), strict=True):
        assert MethodCell.from_json(final["config"]) == cell
        assert final["graphs"] == {"train": 18, "validation": 6, "test": 6}
        assert set(final["packages"]) == set(cell.how.packages)
        assert final["commit"] or final["commit"] is None
    assert str(data) not in records.path.read_text()
    before = records.path.read_bytes()
    assert run_cells([replace(gin, data=tmp_path / "nowhere")], tmp_path, show=False) == finals[:1]
    assert records.path.read_bytes() == before
    write_report(tmp_path)
    assert "| GIN, nested | " in (tmp_path / "report.md").read_text()


def test_methods_keep_freed_memory_while_they_compute_as_the_paper_s_network_does(data, tmp_path, monkeypatch):
    kept = []
    monkeypatch.setattr(run, "keep_freed_memory", lambda: kept.append("kept"))
    run_method = Isomorphism.run
    monkeypatch.setattr(Isomorphism, "run", lambda *given: (kept.append("run"), run_method(*given))[1])
    run.run_cell(_small("gin", data), tmp_path)
    assert kept == ["kept", "run"]


def test_a_cell_that_was_stopped_starts_again_and_gives_the_same(data, tmp_path):
    cell = _small("gin", data)
    (whole,) = run_cells([cell], tmp_path / "whole", show=False)
    stopped = Records(tmp_path / "stopped")
    for epoch in Records(tmp_path / "whole").epochs()[cell.key][:2]:
        stopped.append({**epoch, "test": 0.123})
    (again,) = run_cells([cell], stopped.directory, show=False)
    assert _without_time([again]) == _without_time([whole])
    here, there = (Records(tmp_path / name).epochs()[cell.key] for name in ("whole", "stopped"))
    assert _without_time(here) == _without_time(there), "of an epoch that was run twice the last run counts"


def test_a_split_that_is_not_there_is_said(data, tmp_path):
    with pytest.raises(DataError, match=r"MUTAG: there is no split 7\.\nThe published splits are 0 to 4"):
        run_cells([_small("wl", data, split=7)], tmp_path, show=False)


def test_methods_are_given_to_the_command_and_a_second_one_is_refused(data, tmp_path, capsys):
    command = ["table3", "--quick", "--data", str(data), "--epochs", "2", "--split", "0", "--out", str(tmp_path)]
    assert main([*command, "--method", "gin", "ign", "--silent"]) == 0
    printed = capsys.readouterr()
    assert printed.err == ""
    assert "GIN, nested" in printed.out
    configs = [record["config"] for record in Records(tmp_path).finished().values()]
    assert {(config.get("method"), config["protocol"]) for config in configs} == {(None, "fixed"), ("gin", "nested")}
    before = Records(tmp_path).path.read_bytes()
    with exclusive(tmp_path):
        assert main([*command, "--method", "ecc", "--silent"]) == 2
    assert f"{tmp_path} is in use by another process." in capsys.readouterr().err
    assert Records(tmp_path).path.read_bytes() == before
    assert main([*command, "--method", "gin"]) == 0
    assert Records(tmp_path).path.read_bytes() == before


def test_options_that_only_the_papers_network_has_are_refused_for_others(tmp_path, capsys):
    command = ["table3", "--out", str(tmp_path / "out"), "--method"]
    assert main([*command, "gin", "wl", "--protocol", "fixed"]) == 2
    assert capsys.readouterr().err == (
        "python -m experiments table3: --protocol fixed: gin, wl can only be nested.\n"
        "Add nested, or leave --protocol out.\n"
    )
    assert main([*command, "gin", "--layout", "sparse"]) == 2
    assert capsys.readouterr().err == (
        "python -m experiments table3: --layout sparse: gin have no layout to choose.\n"
        "Leave it out, or add ign to --method.\n"
    )
    assert not (tmp_path / "out").exists()
