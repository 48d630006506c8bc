"""The commands table1, table2, table3 and report."""

import errno
import os
import re
import resource
import shutil
import signal
import subprocess
import sys
import time

import pytest

from experiments.__main__ import COMMANDS, main
from experiments.records import Records
from experiments.report import tables_of
from experiments.run import exclusive
from tests.experiments.graphs import write_set


def test_table1_runs_reports_and_goes_on_where_it_was(tmp_path, capsys):
    command = ["table1", "--quick", "--out", str(tmp_path), "--task", "trace", "--layers", "1", "--silent"]
    command += ["--epochs", "1"]
    assert main([*command, "--method", "trivial"]) == 0
    assert "1 of 39 cells have been run." in capsys.readouterr().out
    assert main([*command, "--method", "trivial", "hartford"]) == 0
    printed = capsys.readouterr()
    assert "2 of 39 cells have been run." in printed.out
    assert f"wrote {tmp_path / 'report.html'}" in printed.out.replace("\n", "") or "report.html" in printed.out
    assert printed.err == ""
    assert len(Records(tmp_path).read()) == 2
    assert main(["report", str(tmp_path)]) == 0
    assert capsys.readouterr().out == printed.out


def test_table3_runs_reports_and_goes_on_where_it_was(tmp_path, capsys):
    data, out = write_set(tmp_path / "data"), tmp_path / "out"
    command = ["table3", "--quick", "--data", str(data), "--epochs", "1", "--out", str(out), "--silent"]
    assert main([*command, "--split", "0"]) == 0
    assert "(1 of 10 splits)" in capsys.readouterr().out
    assert main([*command, "--layout", "dense", "sparse"]) == 0
    printed = capsys.readouterr()
    assert "(2 of 10 splits)" in printed.out
    assert "report.html" in printed.out
    assert printed.err == ""
    cells = [record["config"] for record in Records(out).read().values()]
    expected = [(split, layout, 1) for layout in ("dense", "sparse") for split in (0, 1)]
    found = ((cell["split"], cell["options"]["layout"], cell["options"]["epochs"]) for cell in cells)
    assert sorted(found) == sorted(expected)
    assert main(["report", str(out)]) == 0
    assert capsys.readouterr().out == printed.out


def test_a_rate_and_a_protocol_can_be_given_to_table3(tmp_path, capsys):
    command = ["table3", "--data", str(write_set(tmp_path)), "--set", "MUTAG", "--split", "1", "--epochs", "1"]
    command += ["--learning-rate", "0.25", "--protocol", "nested", "--seed", "3", "--out", str(tmp_path / "out")]
    assert main(command) == 0
    assert "MUTAG, split 1, IGN, dense, nested: accuracy" in capsys.readouterr().err
    (record,) = Records(tmp_path / "out").read().values()
    given = {"protocol": "nested", "seed": 3, "split": 1}
    assert {name: record["config"][name] for name in given} == given
    assert record["config"]["options"]["learning_rate"] == 0.25


def test_table3_reads_of_a_zip_what_its_options_allow(tmp_path, capsys):
    data = write_set(tmp_path / "data")
    shutil.make_archive(str(data / "MUTAG"), "zip", data / "MUTAG")
    shutil.rmtree(data / "MUTAG")
    command = ["table3", "--quick", "--split", "0", "--epochs", "1", "--data", str(data), "--silent"]
    assert main([*command, "--out", str(tmp_path / "out"), "--max-unpacked", "10"]) == 2
    assert "at most 10 are read" in capsys.readouterr().err
    assert main([*command, "--out", str(tmp_path / "out"), "--max-unpacked", "100000", "--max-ratio", "50"]) == 0
    assert main([*command, "--out", str(tmp_path / "out")]) == 0
    assert "max_" not in (tmp_path / "out" / "records.jsonl").read_text()


def test_table3_says_what_is_missing_of_its_data(tmp_path, capsys):
    command = ["table3", "--quick", "--silent", "--out", str(tmp_path / "out"), "--data"]
    assert main([*command, str(tmp_path / "nowhere")]) == 2
    assert capsys.readouterr().err == (
        f"python -m experiments table3: --data: there is no folder {tmp_path / 'nowhere'}.\n"
        "It must hold NAME.zip and splits/NAME.json.\n"
    )
    assert main([*command, str(write_set(tmp_path, splits=False))]) == 2
    assert capsys.readouterr().err == (
        "python -m experiments table3: MUTAG: there are no splits.\n"
        "Table 3 is about published splits: put splits/MUTAG.json beside MUTAG.zip, and name their folder with --data "
        "or the environment variable BELLNET_DATA.\n"
        "docs/experiments.md explains where they come from, and the format of such a file.\n"
    )


def test_a_quick_run_has_a_directory_of_its_own(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    for options in (["--quick"], []):
        assert main(["table1", "--task", "trace", "--layers", "1", "--method", "trivial", "--silent", *options]) == 0
    assert sorted(path.name for path in (tmp_path / "results").iterdir()) == ["table1", "table1-quick"]


def test_the_number_of_epochs_can_be_given(tmp_path):
    command = ["table1", "--quick", "--task", "trace", "--layers", "1", "--method", "hartford", "trivial", "--silent"]
    assert main([*command, "--epochs", "1", "--out", str(tmp_path)]) == 0
    assert sorted(len(record["curves"].get("loss", ())) for record in Records(tmp_path).read().values()) == [0, 1]


def test_progress_goes_to_standard_error(tmp_path, capsys):
    assert main(["table1", "--quick", "--out", str(tmp_path), "--task", "trace", "--method", "trivial"]) == 0
    assert "trace, 1 layer, trivial: error" in capsys.readouterr().err


def test_ctrl_c_says_how_to_go_on(tmp_path, capsys, monkeypatch):
    def stop(*arguments, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr("experiments.__main__.run_cells", stop)
    assert main(["table2", "--quick", "--out", str(tmp_path)]) == 130
    assert capsys.readouterr().err == (
        f"\nStopped. {tmp_path} keeps what was done; the same command goes on from there.\n"
    )


def test_a_missing_extra_is_said_before_anything_runs(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    for command in (["table1", "--out", str(tmp_path / "a")], ["table2"], ["table3"], ["report", str(tmp_path)]):
        assert main(command) == 2
        assert capsys.readouterr().err == (
            f"python -m experiments {command[0]}: {command[0]} needs lightning, which is not installed.\n"
            "Install it, in the clone of the repository: pip install -e '.[experiments]'\n"
        )
    assert not (tmp_path / "a").exists()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["table1", "--task", "rank"], "invalid choice: 'rank'"),
        (["table1", "--seed", "-1"], "'-1' is not an integer from 0 up"),
        (["table1", "--seed", "x"], "'x' is not an integer from 0 up"),
        (["table1", "--learning-rate", "0"], "'0' is not a positive number"),
        (["table1", "--jobs", "0"], "'0' is not an integer from 1 up"),
        (["table2", "--task", "rank"], "invalid choice: 'rank'"),
        (["table3", "--set", "ENZYMES"], "argument --set: invalid choice: 'ENZYMES' (choose from "),
        (["table3", "--split", "10"], "argument --split: invalid choice: 10 (choose from "),
        (["table3", "--split", "x"], "argument --split: 'x' is not an integer from 0 up"),
        (["table3", "--layout", "padded"], "argument --layout: invalid choice: 'padded' (choose from "),
        (["table3", "--protocol", "best"], "argument --protocol: invalid choice: 'best' (choose from "),
        (["table3", "--method", "svm"], "argument --method: invalid choice: 'svm' (choose from "),
        (["table3", "--learning-rate", "0"], "argument --learning-rate: '0' is not a positive number"),
        (["table3", "--epochs", "0"], "argument --epochs: '0' is not an integer from 1 up"),
    ],
)
def test_what_cannot_be_is_refused(words, said, capsys):
    with pytest.raises(SystemExit) as stop:
        main(words)
    assert stop.value.code == 2
    assert said in capsys.readouterr().err


def test_layers_that_no_task_has_are_refused(capsys, tmp_path):
    assert main(["table1", "--layers", "7", "--out", str(tmp_path)]) == 2
    assert "No cell of the table is left." in capsys.readouterr().err


def test_a_file_cannot_be_the_directory(capsys, tmp_path):
    (tmp_path / "file").write_text("")
    assert main(["table1", "--quick", "--out", str(tmp_path / "file")]) == 2
    assert f"{tmp_path / 'file'} cannot be written: File exists." in capsys.readouterr().err


@pytest.mark.parametrize("name", ["records.jsonl", "report.md", "report.html", "curves.png"])
@pytest.mark.parametrize("command", ["table1", "table2", "table3"])
def test_what_cannot_be_written_in_the_directory_is_found_before_anything_runs(
    tmp_path, capsys, monkeypatch, command, name
):
    monkeypatch.setattr("experiments.__main__.run_cells", lambda *given, **options: pytest.fail("something ran"))
    os.mkfifo(tmp_path / name)
    assert main([command, "--quick", "--out", str(tmp_path)]) == 2
    assert capsys.readouterr().err == (
        f"python -m experiments {command}: {tmp_path / name} cannot be written: it is a pipe, not a file.\n"
        "Choose another path.\n"
    )


@pytest.mark.parametrize("command", ["table1", "table2", "table3"])
def test_a_directory_in_which_nothing_can_be_made_is_found_before_anything_runs(tmp_path, capsys, monkeypatch, command):
    def forbid(path, *mode, **options):
        raise OSError(errno.EROFS, "Read-only file system", str(path))

    monkeypatch.setattr("experiments.__main__.run_cells", lambda *given, **options: pytest.fail("something ran"))
    monkeypatch.setattr(os, "mkdir", forbid)
    assert main([command, "--out", str(tmp_path)]) == 2
    assert capsys.readouterr().err == (
        f"python -m experiments {command}: {tmp_path} cannot be written: Read-only file system.\n"
        "Records and checkpoints go there. Fix that, or choose another directory with --out.\n"
    )


def test_a_report_of_a_directory_that_cannot_be_read_is_refused(tmp_path, capsys):
    (tmp_path / "records.jsonl").mkdir()
    assert main(["report", str(tmp_path)]) == 2
    assert capsys.readouterr().err.startswith("python -m experiments report: ")


def test_a_second_command_with_the_same_directory_is_refused_and_a_report_is_not(tmp_path, capsys):
    command = ["table1", "--quick", "--task", "trace", "--layers", "1", "--method", "trivial", "--silent"]
    assert main([*command, "--out", str(tmp_path)]) == 0
    before = Records(tmp_path).path.read_bytes()
    capsys.readouterr()
    with exclusive(tmp_path):
        assert main([*command, "--seed", "1", "--out", str(tmp_path)]) == 2
        said = capsys.readouterr().err
        assert main(["report", str(tmp_path)]) == 0
    assert said.startswith(f"python -m experiments table1: {tmp_path} is in use by another process.")
    assert Records(tmp_path).path.read_bytes() == before


def test_damaged_records_are_named_before_anything_runs(tmp_path, capsys):
    (tmp_path / "records.jsonl").write_text("[]\n")
    for command in (["table1", "--quick", "--silent", "--out"], ["report"]):
        assert main([*command, str(tmp_path)]) == 2
        assert f": {tmp_path / 'records.jsonl'}: line 1 is not a record.\nDelete it and run" in capsys.readouterr().err


@pytest.mark.parametrize("name", COMMANDS)
def test_the_help_of_every_command_has_its_example(capsys, name):
    summary, example = COMMANDS[name].help, COMMANDS[name].example
    for words in ([name, "--help"], ["--help"]):
        with pytest.raises(SystemExit) as stop:
            main(words)
        assert stop.value.code == 0
    printed = " ".join(capsys.readouterr().out.split())
    assert f" {name} {summary} " in printed
    assert f"For example: python -m experiments {name} {example} " in printed


@pytest.fixture
def command(tmp_path):
    """A run of two cells, each with more epochs than a test waits for."""
    return ["table3", "--quick", "--data", str(write_set(tmp_path / "data")), "--protocol", "nested", "--epochs", "100"]


def _start(command, directory, jobs, *, checkpoints=1):
    """A command in a group of processes of its own, when it has so many checkpoints."""
    process = subprocess.Popen(
        [sys.executable, "-m", "experiments", *command, "--out", directory, "--jobs", jobs],
        stderr=subprocess.PIPE,
        start_new_session=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )
    while len(list(directory.glob("checkpoints/*.ckpt"))) < checkpoints:
        assert process.poll() is None
        time.sleep(0.05)
    return process


@pytest.mark.slow
@pytest.mark.parametrize("jobs", ["1", "2"])
def test_a_real_interrupt_ends_all_processes_and_keeps_what_was_done(command, tmp_path, jobs):
    process = _start(command, tmp_path / "out", jobs)
    os.killpg(process.pid, signal.SIGINT)
    _, said = process.communicate(timeout=60)
    assert process.returncode == 130
    assert said.decode().endswith("keeps what was done; the same command goes on from there.\n")
    while _is_there(process.pid):  # Python's own tracker of shared resources ends a moment after the others
        time.sleep(0.05)
    assert list((tmp_path / "out" / "checkpoints").glob("*.ckpt"))


@pytest.mark.slow
def test_a_file_that_no_longer_fits_stops_all_processes_with_words(command, tmp_path):
    ended = subprocess.run(
        [sys.executable, "-m", "experiments", *command, "--jobs", "2", "--silent", "--out", tmp_path / "out"],
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096)),
        capture_output=True,
        text=True,
    )
    assert ended.returncode == 2
    assert re.fullmatch(
        r"python -m experiments table3: \S+\.ckpt cannot be written: File too large\.\n"
        r"What was done before is kept\. Once that is fixed, the same command goes on from there\.\n",
        ended.stderr,
    )


@pytest.mark.slow
def test_a_command_that_was_killed_leaves_no_process_and_gives_the_table_of_an_undisturbed_one(
    command, tmp_path, capsys
):
    command = [*command[:-1], "16", "--method", "ign", "gin", "wl"]
    assert main([*command, "--silent", "--out", str(tmp_path / "whole")]) == 0
    killed = tmp_path / "killed"
    process = _start(command, killed, "2", checkpoints=3)
    process.kill()
    process.communicate(timeout=60)
    while _is_there(process.pid):
        time.sleep(0.05)
    assert len(Records(killed).read()) < 4
    for path in killed.glob("checkpoints/*.ckpt"):  # and the disk has lost a part
        path.write_bytes(path.read_bytes()[:1000])
    assert main([*command, "--silent", "--out", str(killed)]) == 0
    assert "is damaged or of another network; it starts again" in capsys.readouterr().err
    whole, again = (tables_of(tmp_path / name) for name in ("whole", "killed"))
    assert whole[:2] == again[:2]
    assert whole[2].head == again[2].head, "only the times may differ"


def _is_there(group):
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    return True
