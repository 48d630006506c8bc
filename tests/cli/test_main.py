"""The command `bellnet` as a process: exit codes, messages, imports, and no traceback."""

import errno
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import bellnet
from bellnet import __main__ as process
from bellnet.cli.command import Command
from bellnet.cli.main import COMMANDS, main
from tests.cli.outcome import outcome

QUIET = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONUNBUFFERED": ""}
UNBUFFERED = {**QUIET, "PYTHONUNBUFFERED": "1"}
PLAN = ["plan", "n n -> n n"]


# Torch is replaced by an empty module, since importing it takes seconds, and the commands by one planted command.
PREPARE = """
import sys, types, warnings
sys.modules["torch"] = types.ModuleType("torch")
from bellnet.cli import main as command_line
from bellnet.cli.command import Command
main = command_line.main

def plant(run):
    command_line.COMMANDS = (Command("planted", "of a test", ("planted",), lambda parser: None, run),)
"""
RUN = "sys.exit(main(sys.argv[1:]))"


def plant(monkeypatch, run):
    """Make the command line have one command, `planted`, that does this."""
    planted = Command("planted", "of a test", ("planted",), lambda parser: None, run)
    monkeypatch.setattr("bellnet.cli.main.COMMANDS", (planted,))


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
def test_a_full_device_is_reported(words, name, env):
    assert shell(words, redirect="> /dev/full", env=env) == (
        2,
        f"{name}: standard output cannot be written: No space left on device.\n",
    )


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no full device")
def test_the_exit_code_is_right_without_any_output():
    assert shell(PLAN, redirect="> /dev/full 2> /dev/full") == (2, "")
    assert shell(["plan", "n"], redirect="2> /dev/full") == (2, "")


@pytest.mark.parametrize("words", [PLAN, ["--help"]])
def test_a_closed_standard_output_is_reported(words):
    assert shell(words, redirect=">&-") == (
        2,
        "bellnet: standard output is closed.\nRedirect it, for instance to /dev/null.\n",
    )


def test_errors_are_never_written_to_standard_output(tmp_path):
    out = tmp_path / "out"
    assert shell(["plan", "n"], redirect=f"> {out} 2>&-") == (2, "")
    assert shell(["plan"], redirect=f">> {out} 2>&-") == (2, "")
    assert out.read_text() == ""


@pytest.mark.parametrize("env", [QUIET, UNBUFFERED], ids=["buffered", "unbuffered"])
def test_a_closed_pipe_does_not_change_the_exit_code(env):
    program = """
plant(lambda arguments: print("Bell(3) is 5: no") or 1)
sys.exit(main(["planted"]))
"""
    reader, writer = os.pipe()
    os.close(reader)
    finished = subprocess.run([sys.executable, "-c", PREPARE + program], stdout=writer, stderr=subprocess.PIPE, env=env)
    os.close(writer)
    assert (finished.returncode, finished.stderr) == (1, b"")


@pytest.mark.parametrize("command", ["fit", "evaluate", "predict"])
def test_a_path_that_is_too_long_is_reported(tmp_path, capsys, command):
    path = str(tmp_path / ("n" * 300))
    words = {"fit": [path, "--out", str(tmp_path / "m")]}.get(command, [str(tmp_path / "m"), path])
    if command != "fit":
        words[0] = path
    assert main([command, *words]) == 2
    error = capsys.readouterr().err
    assert error.startswith(f"bellnet {command}: ")
    assert "File name too long" in error or "there is no such file" in error


def test_an_os_error_without_a_path_is_reported(monkeypatch, capsys):
    def fail(arguments):
        raise OSError(errno.ENOMEM, "Cannot allocate memory")

    plant(monkeypatch, fail)
    assert main(["planted"]) == 2
    assert capsys.readouterr().err == "bellnet planted: Cannot allocate memory.\n"


def test_ctrl_c_ends_a_command_with_exit_code_130(monkeypatch, capsys):
    def stop(arguments):
        raise KeyboardInterrupt

    plant(monkeypatch, stop)
    assert main(["planted"]) == 130
    assert capsys.readouterr().err == "\nStopped.\n"


def test_warnings_are_printed_without_control_characters():
    program = """
plant(lambda arguments: warnings.warn("the file a\\x1b[2J is odd", RuntimeWarning) or 0)
before = warnings.formatwarning
code = main(["planted"])
assert warnings.formatwarning is before
sys.exit(code)
"""
    assert shell([], code=program) == (0, "bellnet planted: RuntimeWarning: the file a\\x1b[2J is odd\n")


def test_the_warning_of_torch_about_numpy_is_suppressed(tmp_path):
    (tmp_path / "torch.py").write_text(
        "import warnings\n"
        "warnings.warn(\"Failed to initialize NumPy: No module named 'numpy' (Triggered internally)\", UserWarning)\n"
        "warnings.warn('Something else', UserWarning)\n"
    )
    program = f"""
del sys.modules["torch"]
sys.path.insert(0, {str(tmp_path)!r})
plant(lambda arguments: 0)
sys.exit(main(["planted"]))
"""
    assert shell([], code=program) == (0, "bellnet planted: UserWarning: Something else\n")


def test_errors_in_arguments_have_no_control_characters(capsys):
    with pytest.raises(SystemExit):
        main([*PLAN, "--\x1b[2J"])
    assert "\x1b" not in capsys.readouterr().err
    assert main(["plan", "n\x1b[2J"]) == 2
    assert "\x1b" not in capsys.readouterr().err


@pytest.mark.parametrize(("package", "words"), [("argparse", PLAN), ("torch", ["basis", "n -> n", "--out", "a.png"])])
def test_ctrl_c_during_an_import_ends_the_command_with_exit_code_130(tmp_path, package, words):
    # A package of that name, found before the real one, that takes its time and catches whatever comes.
    (tmp_path / package).mkdir()
    (tmp_path / package / "__init__.py").write_text(
        "import time\ntry:\n    print('importing', flush=True)\n    time.sleep(600)\nexcept BaseException:\n    pass\n"
    )
    program = """
import sys
from bellnet.__main__ import main
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
        _, error = process.communicate(timeout=60)
    assert (process.returncode, error) == (130, b"\nStopped.\n")


def test_ctrl_c_raises_keyboard_interrupt_in_a_command(monkeypatch):
    seen = []
    usual = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        plant(monkeypatch, lambda arguments: seen.append(signal.getsignal(signal.SIGINT)) or 0)
        monkeypatch.setattr(sys, "argv", ["bellnet", "planted"])
        assert process.main() == 0
        assert seen == [signal.default_int_handler] == [signal.getsignal(signal.SIGINT)]
    finally:
        signal.signal(signal.SIGINT, usual)


def test_ctrl_c_that_is_ignored_stays_so(monkeypatch, capsys):
    usual = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        monkeypatch.setattr(sys, "argv", ["bellnet", *PLAN])
        assert process.main() == 0
        assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGINT, usual)


def test_the_command_that_is_installed_runs_the_command_line(capsys, monkeypatch):
    from importlib.metadata import entry_points

    (entry,) = entry_points(group="console_scripts", name="bellnet")
    monkeypatch.setattr(sys, "argv", ["bellnet", *PLAN])
    assert entry.load()() == 0
    assert capsys.readouterr().out == f"{bellnet.plan('n n -> n n')}\n"
    assert entry.value == "bellnet.__main__:main"


def test_without_arguments_the_usage_is_shown(capsys):
    code, printed, text = outcome(capsys)
    assert (code, printed) == (2, "")
    assert text.startswith("usage: bellnet")


def test_the_version_is_that_of_the_package(capsys):
    assert outcome(capsys, "--version") == (0, f"bellnet {bellnet.__version__}\n", "")


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command.name)
def test_the_help_of_every_command_has_its_examples(capsys, command):
    code, printed, _ = outcome(capsys, command.name, "--help")
    assert code == 0
    for example in command.examples:
        assert example.startswith(command.name)
        assert f"  bellnet {example}\n" in printed


def test_the_help_lists_commands_and_exit_codes(capsys):
    code, printed, _ = outcome(capsys, "--help")
    assert code == 0
    for command in COMMANDS:
        assert f" {command.name} {command.summary} " in " ".join(printed.split())
    assert "exit codes:\n  0  done\n  2  bad arguments or bad input, or output" in printed
    assert "\n  130  stopped by Ctrl-C\n" in printed


def test_the_exit_code_reaches_the_shell():
    command = [sys.executable, "-W", "error", "-m", "bellnet", "plan", "n n"]
    finished = subprocess.run(command, capture_output=True, text=True)
    assert (finished.returncode, finished.stdout) == (2, "")
    assert finished.stderr.startswith("bellnet plan: This spec cannot be read")


def test_a_closed_pipe_is_not_an_error():
    command = [sys.executable, "-m", "bellnet", "plan", "n n n n -> n n n n", "--diagrams"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        process.stdout.readline()
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait() == 0


def test_the_package_can_be_run_as_a_module():
    command = [sys.executable, "-m", "bellnet", "plan", "n n -> n n"]
    finished = subprocess.run(command, capture_output=True, text=True)
    assert (finished.returncode, finished.stdout, finished.stderr) == (0, f"{bellnet.plan('n n -> n n')}\n", "")


STARTS = {
    "the command": "from bellnet.__main__ import main\nsys.exit(main())",
    "the module": "import runpy\nrunpy.run_module('bellnet', run_name='__main__')",
}


@pytest.mark.parametrize("start", STARTS)
@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (("--help",), 0),
        (("--version",), 0),
        (("fit", "--help"), 0),
        (("plan", "n n -> n n", "--diagrams", "--cost", "5"), 0),
        (("plan", "n n"), 2),
        (("fit",), 2),
    ],
)
def test_help_plan_and_errors_in_arguments_do_not_import_torch(start, arguments, code):
    program = f"""
import sys
sys.argv[0] = "bellnet"
try:
    {STARTS[start].replace(chr(10), chr(10) + "    ")}
except SystemExit as stop:
    assert stop.code == {code}, stop.code
else:
    raise AssertionError("it did not end")
for name in ("torch", "numpy", "matplotlib"):
    assert name not in sys.modules, name
"""
    done = subprocess.run([sys.executable, "-c", program, *arguments], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
