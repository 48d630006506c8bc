"""The command runs from end to end and writes a record; times are not checked."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from benchmarks.__main__ import main
from benchmarks.cases import CASES, Case
from benchmarks.measure import Timing

ROOT = Path(__file__).parents[2]


@pytest.fixture
def known_imports(monkeypatch):
    timings = {"torch": Timing((2.0,), 1), "bellnet": Timing((2.1,), 1)}
    monkeypatch.setattr("benchmarks.__main__.time_imports", lambda *, rounds: timings)


@pytest.fixture(autouse=True)
def same_number_of_threads_afterwards():
    threads = torch.get_num_threads()
    yield
    torch.set_num_threads(threads)


@pytest.mark.slow
def test_the_command_writes_a_record(tmp_path):
    command = [sys.executable, "-m", "benchmarks", "--quick", "--case", "1,3,1,1", "--threads", "1", "--out", tmp_path]
    done = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True, encoding="utf-8")
    record = json.loads((tmp_path / "latest.json").read_text(encoding="utf-8"))
    assert set(record["imports"]) == {"torch", "bellnet"}
    assert "import bellnet / import torch" in done.stdout


def test_a_tiny_run_writes_a_valid_record(tmp_path, capsys, known_imports):
    other = tmp_path / "record.json"
    main(["--quick", "--case", "2,5,3,4", "3:1,3,2,2", "--threads", "1", "--json", str(other), "--out", str(tmp_path)])
    record = json.loads((tmp_path / "latest.json").read_text(encoding="utf-8"))
    assert json.loads(other.read_text(encoding="utf-8")) == record
    assert set(record) >= {"date", "commit", "versions", "threads", "warnings", "results", "imports", "summary"}
    assert record["threads"] == 1
    assert [(result["spec"], result["pass"]) for result in record["results"]] == [
        ("n n -> n n", "forward"),
        ("n n -> n n", "forward+backward"),
        ("n n n -> n n n", "forward+backward"),
    ]
    for result in record["results"]:
        for contestant in result["contestants"].values():
            assert contestant["median"] > 0
            assert len(contestant["samples"]) == record["rounds"]
            assert contestant["peak_extra_bytes"] > 0
    assert set(record["imports"]) == {"torch", "bellnet"}
    assert all(entry["reached"] in (True, False, None) for entry in record["summary"])
    printed = capsys.readouterr().out
    markdown = (tmp_path / "latest.md").read_text(encoding="utf-8")
    for entry in record["summary"]:
        assert entry["what"] in printed
        assert entry["what"] in markdown


def test_the_record_contains_no_path(tmp_path, known_imports):
    main(["--quick", "--case", "1,3,1,1", "--threads", "1", "--out", str(tmp_path)])
    files = [*tmp_path.iterdir()]
    assert len(files) >= 2
    for file in files:
        text = file.read_text(encoding="utf-8")
        assert str(tmp_path) not in text
        assert "/home" not in text


def test_a_busy_machine_warns(monkeypatch, capsys, known_imports):
    monkeypatch.setattr("benchmarks.__main__.load_average", lambda: 7.25)
    main(["--quick", "--case", "1,3,1,1", "--threads", "1"])
    assert "warning: the load average is 7.25: other work is running" in capsys.readouterr().out


def test_a_full_run_reports_ratios_that_changed_since_the_recorded_run(tmp_path, monkeypatch, capsys, known_imports):
    recorded = tmp_path / "latest.json"
    monkeypatch.setattr("benchmarks.__main__.RECORDED", recorded)
    monkeypatch.setattr("benchmarks.__main__.CASES", (Case.parse("1,3,1,1"),))
    monkeypatch.setattr("benchmarks.__main__.ROUNDS", 1)
    main(["--only", "dense", "--threads", "1", "--out", str(tmp_path)])
    assert "in both runs" not in capsys.readouterr().out
    found = json.loads(recorded.read_text(encoding="utf-8"))
    imports = next(entry for entry in found["summary"] if entry["what"].startswith("import "))
    imports["value"] = 2.1
    recorded.write_text(json.dumps(found), encoding="utf-8")
    main(["--only", "dense", "--threads", "1", "--out", str(tmp_path)])
    printed = capsys.readouterr().out
    assert re.search(r"import bellnet / import torch +\| +2\.10 \| +1\.05 \| -50%", printed)
    assert json.loads(recorded.read_text(encoding="utf-8"))["summary"] != found["summary"]


def test_str_of_a_case_can_be_parsed():
    assert all(Case.parse(str(case)) == case for case in CASES)
    assert Case.parse("1,2,3,4") == Case(2, batch=1, n=2, in_channels=3, out_channels=4)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("2:1,2,3", "cannot read '2:1,2,3'; write order:batch,n,in,out, for instance 2:32,18,16,32"),
        ("5:1,2,3,4", "'5:1,2,3,4' is of order 5; there are contestants for orders 2, 3 and 4"),
        ("2:1,0,3,4", "'2:1,0,3,4' has a size below 1"),
    ],
)
def test_an_invalid_case_raises_with_the_reason(text, reason, capsys):
    with pytest.raises(SystemExit):
        main(["--case", text])
    assert reason in capsys.readouterr().err
