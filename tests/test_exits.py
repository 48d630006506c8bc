"""How a command ends where something is wrong with the outside: its exit code, its words, and never a traceback."""

import errno
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import bellnet.verify
from bellnet.cli import main

QUIET = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONUNBUFFERED": ""}
UNBUFFERED = {**QUIET, "PYTHONUNBUFFERED": "1"}
PLAN = ["plan", "n n -> n n"]


# Torch is replaced by nothing, and the checks by some of our own: torch would take seconds each time.
PREPARE = """
import sys, types, warnings
checks = types.ModuleType("bellnet.verify")
sys.modules.update({"torch": types.ModuleType("torch"), "bellnet.verify": checks})
from bellnet.cli import main
"""
RUN = "sys.exit(main(sys.argv[1:]))"


def shell(words, *, redirect="", code=RUN, env=QUIET):
    """The exit code and what reached standard error of a command, its streams redirected as a shell does it."""
    finished = subprocess.run(
        ["sh", "-c", f'exec "$@" {redirect}', "sh", sys.executable, "-c", PREPARE + code, *words],
        capture_output=True,
        text=True,
        env=env,
    )
    return finished.returncode, finished.stderr


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no full device")
@pytest.mark.parametrize("env", [QUIET, UNBUFFERED], ids=["buffered", "unbuffered"])
@pytest.mark.parametrize(
    ("words", "name"), [(PLAN, "bellnet plan"), (["--help"], "bellnet"), (["--version"], "bellnet")]
)
def test_output_that_has_no_room_is_said(words, name, env):
    assert shell(words, redirect="> /dev/full", env=env) == (
        2,
        f"{name}: standard output cannot be written: No space left on device.\n",
    )


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no full device")
def test_where_nothing_can_be_said_at_all_the_exit_code_still_is():
    assert shell(PLAN, redirect="> /dev/full 2> /dev/full") == (2, "")
    assert shell(["plan", "n"], redirect="2> /dev/full") == (2, "")


@pytest.mark.parametrize("words", [PLAN, ["--help"]])
def test_a_closed_standard_output_is_said_before_anything_is_done(words):
    assert shell(words, redirect=">&-") == (
        2,
        "bellnet: standard output is closed, so that nothing can be said.\n"
        "Send it somewhere; /dev/null takes what nobody wants.\n",
    )


def test_without_standard_error_a_mistake_is_not_told_to_standard_output(tmp_path):
    out = tmp_path / "out"
    assert shell(["plan", "n"], redirect=f"> {out} 2>&-") == (2, "")
    assert shell(["plan"], redirect=f">> {out} 2>&-") == (2, "")
    assert out.read_text() == ""


@pytest.mark.parametrize("env", [QUIET, UNBUFFERED], ids=["buffered", "unbuffered"])
def test_a_reader_that_has_seen_enough_does_not_hide_that_a_check_failed(env):
    program = """
checks.verify, checks.show = lambda: [types.SimpleNamespace(ok=False)], lambda rows: "Bell(3) is 5: no"
sys.exit(main(["verify"]))
"""
    reader, writer = os.pipe()
    os.close(reader)
    finished = subprocess.run([sys.executable, "-c", PREPARE + program], stdout=writer, stderr=subprocess.PIPE, env=env)
    os.close(writer)
    assert (finished.returncode, finished.stderr) == (1, b"")


def test_what_the_system_refuses_is_said_with_the_path_and_without_a_traceback(tmp_path, monkeypatch, capsys):
    def refuse(path):
        raise PermissionError(errno.EACCES, "Permission denied", str(path))

    (tmp_path / "folder").mkdir()
    monkeypatch.setattr(os, "listdir", refuse)
    monkeypatch.setattr(os, "scandir", refuse)
    assert main(["fit", str(tmp_path / "folder"), "--out", str(tmp_path / "model")]) == 2
    assert capsys.readouterr().err == (
        f"bellnet fit: {tmp_path / 'folder'} cannot be used: Permission denied.\nCheck the path and its permissions.\n"
    )


@pytest.mark.parametrize("command", ["fit", "evaluate", "predict"])
def test_a_path_that_no_system_has_is_said(tmp_path, capsys, command):
    path = str(tmp_path / ("n" * 300))
    words = {"fit": [path, "--out", str(tmp_path / "m")]}.get(command, [str(tmp_path / "m"), path])
    if command != "fit":
        words[0] = path
    assert main([command, *words]) == 2
    said = capsys.readouterr().err
    assert said.startswith(f"bellnet {command}: ")
    assert "File name too long" in said or "there is no such file" in said


def test_a_report_of_a_directory_that_cannot_be_read_is_refused(tmp_path, capsys):
    (tmp_path / "records.jsonl").mkdir()
    assert main(["report", str(tmp_path)]) == 2
    assert capsys.readouterr().err.startswith("bellnet report: ")


def test_an_error_of_the_system_without_a_path_is_said(monkeypatch, capsys):
    def fail():
        raise OSError(errno.ENOMEM, "Cannot allocate memory")

    monkeypatch.setattr(bellnet.verify, "verify", fail)
    assert main(["verify"]) == 2
    assert capsys.readouterr().err == "bellnet verify: Cannot allocate memory.\n"


def test_ctrl_c_in_any_command_ends_it_with_a_word_and_130(monkeypatch, capsys):
    def stop():
        raise KeyboardInterrupt

    monkeypatch.setattr(bellnet.verify, "verify", stop)
    assert main(["verify"]) == 130
    assert capsys.readouterr().err == "\nStopped.\n"


def test_a_warning_is_said_in_a_line_that_a_terminal_does_not_obey():
    program = """
checks.verify = lambda: warnings.warn("the file a\\x1b[2J is odd", RuntimeWarning) or []
checks.show = str
before = warnings.formatwarning
code = main(["verify"])
assert warnings.formatwarning is before
sys.exit(code)
"""
    assert shell([], code=program) == (0, "bellnet verify: RuntimeWarning: the file a\\x1b[2J is odd\n")


def test_a_command_does_not_repeat_what_torch_says_of_a_numpy_that_nobody_needs(tmp_path):
    (tmp_path / "torch.py").write_text(
        "import warnings\n"
        "warnings.warn(\"Failed to initialize NumPy: No module named 'numpy' (Triggered internally)\", UserWarning)\n"
        "warnings.warn('Something else', UserWarning)\n"
    )
    program = f"""
del sys.modules["torch"]
sys.path.insert(0, {str(tmp_path)!r})
checks.verify, checks.show = list, str
sys.exit(main(["verify"]))
"""
    assert shell([], code=program) == (0, "bellnet verify: UserWarning: Something else\n")


def test_mistakes_in_arguments_are_said_without_what_a_terminal_obeys(capsys):
    with pytest.raises(SystemExit):
        main([*PLAN, "--\x1b[2J"])
    assert "\x1b" not in capsys.readouterr().err
    assert main(["plan", "n\x1b[2J"]) == 2
    assert "\x1b" not in capsys.readouterr().err


@pytest.mark.parametrize(("package", "words"), [("bellnet", PLAN), ("torch", ["verify"])])
def test_ctrl_c_while_a_package_is_imported_ends_the_command_with_a_word_and_130(tmp_path, package, words):
    # A package of that name, found before the real one, that takes its time and catches whatever comes.
    (tmp_path / package).mkdir()
    (tmp_path / package / "__init__.py").write_text(
        "import time\ntry:\n    print('importing', flush=True)\n    time.sleep(600)\nexcept BaseException:\n    pass\n"
    )
    program = """
import sys
from bellnet_command import main
sys.path.insert(0, sys.argv.pop(1))
sys.exit(main())
"""
    with subprocess.Popen(
        [sys.executable, "-c", program, str(tmp_path), *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    ) as process:
        assert process.stdout.readline() == b"importing\n"
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=60)
    assert (process.returncode, said) == (130, b"\nStopped.\n")


def test_ctrl_c_is_an_error_again_when_a_command_begins(monkeypatch):
    import bellnet_command

    seen = []
    usual = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        monkeypatch.setattr(bellnet.verify, "verify", lambda: seen.append(signal.getsignal(signal.SIGINT)) or [])
        monkeypatch.setattr(sys, "argv", ["bellnet", "verify"])
        assert bellnet_command.main() == 0
        assert seen == [signal.default_int_handler] == [signal.getsignal(signal.SIGINT)]
    finally:
        signal.signal(signal.SIGINT, usual)


def test_ctrl_c_that_is_ignored_stays_so(monkeypatch, capsys):
    import bellnet_command

    usual = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        monkeypatch.setattr(sys, "argv", ["bellnet", *PLAN])
        assert bellnet_command.main() == 0
        assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGINT, usual)


def test_the_command_that_is_installed_runs_the_command_line(capsys, monkeypatch):
    from importlib.metadata import entry_points

    (entry,) = entry_points(group="console_scripts", name="bellnet")
    monkeypatch.setattr(sys, "argv", ["bellnet", *PLAN])
    assert entry.load()() == 0
    assert capsys.readouterr().out == f"{bellnet.plan('n n -> n n')}\n"
    assert entry.module == "bellnet_command"
