"""One run at a time in a directory: the second is refused, and a process that was killed keeps nobody out."""

import errno
import multiprocessing
import os

import pytest

from bellnet.errors import OptionError
from experiments.report import write_report
from experiments.run import exclusive, run_cells
from tests.experiments.processes import killed, started
from tests.experiments.small import SMALL, small

TRIVIAL = small(method="trivial")


def _hold(directory, line):
    with exclusive(directory) as is_locked:
        line.send(is_locked)
        line.recv()


@pytest.fixture
def holder(tmp_path):
    """Another process that runs in the directory until it is killed."""
    ours, theirs = multiprocessing.Pipe()
    process, _ = started(_hold, tmp_path, theirs)
    assert ours.recv() is True
    yield process
    killed(process)


def _refused(directory):
    return (
        f"{directory} is in use by another process.\nWait until that one has ended, or stop it and run the same "
        "command again: it goes on from there. Or choose another directory with --out."
    )


def test_a_second_run_is_refused_by_name_and_leaves_everything_as_it_is(tmp_path, holder):
    with pytest.raises(OptionError) as caught:
        run_cells([TRIVIAL], tmp_path, show=False)
    assert str(caught.value) == _refused(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == [".lock"]


def test_a_second_run_in_the_same_process_is_refused_too(tmp_path):
    with exclusive(tmp_path), pytest.raises(OptionError) as caught:
        run_cells([TRIVIAL], tmp_path, show=False)
    assert str(caught.value) == _refused(tmp_path)


def test_a_process_that_was_killed_keeps_nobody_out(tmp_path, holder):
    killed(holder)
    assert len(run_cells([TRIVIAL], tmp_path, show=False)) == 1


def test_a_run_that_has_failed_keeps_nobody_out(tmp_path, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr("experiments.run.run_cell", lambda *given, **options: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            run_cells([TRIVIAL], tmp_path, show=False)
    assert len(run_cells([TRIVIAL], tmp_path, show=False)) == 1


def test_other_directories_are_free_and_a_report_needs_no_lock(tmp_path):
    with exclusive(tmp_path / "one"):
        run_cells([TRIVIAL], tmp_path / "two", show=False)
    with exclusive(tmp_path / "two"):
        assert write_report(tmp_path / "two")


def test_a_file_system_without_locks_is_used_with_a_word_of_warning(tmp_path, monkeypatch, capsys):
    def no_locks(file, how):
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr("fcntl.flock", no_locks)
    run_cells([TRIVIAL], tmp_path, show=False)
    assert capsys.readouterr().err == (
        f"{tmp_path}: this file system has no locks. Run no second command there before this ends.\n"
    )


def _words(path, reason):
    return (
        f"{path} cannot be written: {reason}.\n"
        "Records and checkpoints go there. Fix that, or choose another directory with --out."
    )


def test_a_directory_that_cannot_be_used_is_found_before_anything_runs(tmp_path, monkeypatch):
    monkeypatch.setattr("experiments.run.run_cell", lambda *given, **options: pytest.fail("it ran"))
    (tmp_path / "file").write_text("")
    (tmp_path / "locked" / ".lock").mkdir(parents=True)
    (tmp_path / "kept").mkdir()
    (tmp_path / "kept" / "checkpoints").write_text("")
    cases = {
        "file": ("file", "File exists"),
        "file/below": ("file/below", "Not a directory"),
        "locked": ("locked/.lock", "Is a directory"),
        "kept": ("kept/checkpoints", "File exists"),
    }
    for directory, (named, reason) in cases.items():
        with pytest.raises(OptionError) as caught:
            run_cells([SMALL], tmp_path / directory, show=False)
        assert str(caught.value) == _words(tmp_path / named, reason)


@pytest.mark.parametrize("number", [errno.EROFS, errno.EACCES, errno.ENOSPC])
def test_a_directory_that_is_read_only_or_full_is_found_before_anything_runs(tmp_path, monkeypatch, number):
    monkeypatch.setattr("experiments.run.run_cell", lambda *given, **options: pytest.fail("it ran"))

    def refuse(*given, **options):
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr("os.mkdir", refuse)
    with pytest.raises(OptionError) as caught:
        run_cells([SMALL], tmp_path, show=False)
    monkeypatch.undo()
    assert str(caught.value) == _words(tmp_path, os.strerror(number))


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="nothing is read-only for root")
def test_a_directory_without_permission_is_found_before_anything_runs(tmp_path, monkeypatch):
    monkeypatch.setattr("experiments.run.run_cell", lambda *given, **options: pytest.fail("it ran"))
    tmp_path.chmod(0o555)
    with pytest.raises(OptionError) as caught:
        run_cells([SMALL], tmp_path, show=False)
    tmp_path.chmod(0o755)
    assert str(caught.value) == _words(tmp_path, os.strerror(errno.EACCES))
