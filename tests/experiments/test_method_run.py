"""Running cells of other methods: records, going on after being killed, side by side, one command at a time."""

from dataclasses import replace

import pytest

from bellnet.errors import DataError
from experiments import run
from experiments.__main__ import main
from experiments.graph_cell import GraphCell, cells_of_table3
from experiments.methods.kernels import Kernel
from experiments.records import Records
from experiments.report import write_report
from experiments.run import exclusive, run_cells
from tests.experiments.graphs import write_set
from tests.experiments.small import timeless


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    return write_set(tmp_path_factory.mktemp("data"))


def _small(method, data, **changes):
    options = {"epochs": 3, "batch_size": 8, "C": [1.0], "n_splits": 3, "depth": [1]}
    (cell,) = cells_of_table3([method], names=["MUTAG"], splits=[0], data=data)
    options = {name: options.get(name, value) for name, value in cell.options}
    return replace(cell, options=options, validation_part=4, **changes)


def test_a_network_is_recorded_epoch_by_epoch_and_a_kernel_at_once(data, tmp_path):
    gin, wl = _small("gin", data), _small("wl", data)
    finals = run_cells([gin, wl], tmp_path, show=False)
    records = Records(tmp_path)
    assert [len(final["curves"].get("test", ())) for final in finals] == [3, 0]
    for final, cell in zip(finals, (gin, wl), strict=True):
        assert GraphCell.from_json(final["config"]) == cell
        assert final["graphs"] == {"train": 18, "validation": 6, "test": 6}
        assert final["commit"] or final["commit"] is None
    assert str(data) not in records.path.read_text()
    before = records.path.read_bytes()
    assert run_cells([replace(gin, data=tmp_path / "nowhere")], tmp_path, show=False) == finals[:1]
    assert records.path.read_bytes() == before
    write_report(tmp_path)
    assert "| GIN, nested | " in (tmp_path / "report.md").read_text()


def test_freed_memory_is_kept_before_a_method_runs(data, tmp_path, monkeypatch):
    calls = []
    monkeypatch.setattr(run, "keep_freed_memory", lambda: calls.append("keep"))
    monkeypatch.setattr(Kernel, "run", lambda *given: calls.append("run") or {})
    run.run_cell(_small("wl", data), tmp_path)
    assert calls == ["keep", "run"]


@pytest.mark.parametrize("method", ["gin", "ppgn"])
def test_a_network_with_dropout_that_was_stopped_goes_on_with_the_same_figures(method, data, tmp_path):
    cell = _small(method, data)
    (whole,) = run_cells([cell], tmp_path / "whole", show=False)

    def stop(epoch):
        if epoch["epoch"] == 1:
            raise KeyError

    with pytest.raises(KeyError):
        run.run_cell(cell, tmp_path / "stopped", stop)
    (again,) = run_cells([cell], tmp_path / "stopped", show=False)
    assert timeless(again) == timeless(whole)


def test_a_split_that_is_not_there_is_said(data, tmp_path):
    with pytest.raises(DataError, match=r"MUTAG: there is no split 7\.\nThe published splits are 0 to 4"):
        run_cells([_small("wl", data, split=7)], tmp_path, show=False)


def test_methods_are_given_to_the_command_and_a_second_one_is_refused(data, tmp_path, capsys):
    command = ["table3", "--quick", "--data", str(data), "--epochs", "2", "--split", "0", "--out", str(tmp_path)]
    assert main([*command, "--method", "gin", "ign", "--silent"]) == 0
    printed = capsys.readouterr()
    assert printed.err == ""
    assert "GIN, nested" in printed.out
    configs = [record["config"] for record in Records(tmp_path).read().values()]
    assert {(config["method"], config["protocol"]) for config in configs} == {("ign", "fixed"), ("gin", "nested")}
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
