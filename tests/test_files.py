"""Files are replaced as a whole or not at all, nothing but files is replaced, and locks hold between processes."""

import errno
import os
import signal
import socket
import stat
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from bellnet._utils import files
from bellnet._utils.files import check, check_directory, locked, words, write_files

POSIX = pytest.mark.skipif(os.name != "posix", reason="modes, pipes and locks are those of POSIX")


def names(directory):
    return sorted(path.name for path in directory.iterdir())


def refused(path):
    """The error with which a path is refused, by the check and by writing alike."""
    with pytest.raises(OSError, match=r".") as caught:
        check(path)
    with pytest.raises(OSError, match=r".") as again:
        write_files({path: b"new"})
    assert str(again.value) == str(caught.value)
    assert caught.value.filename == str(path)
    return caught.value


def make_pipe(path):
    os.mkfifo(path)


def make_socket(path):
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(path))


def make_device(path, kind=stat.S_IFCHR):
    """The null device, or a block device that is never opened, under another name."""
    try:
        os.mknod(path, kind | 0o666, os.makedev(1, 3))
    except PermissionError:
        pytest.skip("making devices is not permitted here")


SPECIAL = {
    "device": (make_device, "it is a device, not a file"),
    "block device": (lambda path: make_device(path, stat.S_IFBLK), "it is a device, not a file"),
    "pipe": (make_pipe, "it is a pipe, not a file"),
    "socket": (make_socket, "it is a socket, not a file"),
    "directory": (os.mkdir, "it is a directory"),
}


@POSIX
@pytest.mark.parametrize("linked", [False, True], ids=["itself", "by a link"])
@pytest.mark.parametrize("kind", SPECIAL)
def test_a_path_that_is_no_regular_file_raises_an_error_and_stays(tmp_path, monkeypatch, kind, linked):
    monkeypatch.chdir(tmp_path)  # the name of a socket must be short
    make, description = SPECIAL[kind]
    make("there")
    before = os.lstat("there")
    if linked:
        Path("link").symlink_to("there")
    reason = refused(Path("link" if linked else "there"))
    assert words(reason) == f"{description}.\nChoose another path."
    assert os.lstat("there") == before
    assert names(tmp_path) == (["link", "there"] if linked else ["there"])


@pytest.mark.parametrize("name", ["nowhere/new", "file/new", "nowhere/deeper/new"])
def test_the_error_names_a_missing_directory(tmp_path, name):
    (tmp_path / "file").write_text("not a directory")
    path = tmp_path / name
    assert words(refused(path)) == (f"there is no directory '{path.parent}'.\nMake it first, or choose another path.")
    assert names(tmp_path) == ["file"]


@POSIX
def test_the_error_of_a_link_names_its_missing_directory(tmp_path):
    (tmp_path / "link").symlink_to(tmp_path / "nowhere" / "file")
    assert words(refused(tmp_path / "link")).startswith(f"there is no directory '{tmp_path / 'nowhere'}'.")


@POSIX
def test_cyclic_links_and_long_names_raise_errors(tmp_path):
    (tmp_path / "link").symlink_to("link")
    assert refused(tmp_path / "link").errno == errno.ELOOP
    assert refused(tmp_path / ("n" * 300)).errno == errno.ENAMETOOLONG
    assert words(refused(tmp_path / "a\0b")) == "it is no path: embedded null byte.\nChoose another path."


def test_the_longest_name_of_the_file_system_can_be_written(tmp_path):
    path = tmp_path / ("n" * 255)
    write_files({path: b"new"})
    assert path.read_bytes() == b"new"


def forbid_making(monkeypatch):
    """No file can be made any more, as in a directory without permission, or on a disk that is read-only."""

    def forbid(path, *mode, **options):
        raise OSError(errno.EROFS, "Read-only file system", str(path))

    monkeypatch.setattr(os, "mkdir", forbid)


def test_the_check_finds_a_read_only_file_system(tmp_path, monkeypatch):
    forbid_making(monkeypatch)
    assert words(refused(tmp_path / "new")) == "Read-only file system.\nChoose another path."
    with pytest.raises(OSError, match="Read-only file system"):
        check_directory(tmp_path)


@POSIX
@pytest.mark.skipif(hasattr(os, "geteuid") and os.geteuid() == 0, reason="root may write anywhere")
def test_the_check_finds_a_directory_without_permission(tmp_path):
    tmp_path.chmod(0o500)
    assert refused(tmp_path / "new").errno == errno.EACCES
    tmp_path.chmod(0o700)


@POSIX
def test_a_read_only_file_is_not_replaced(tmp_path, monkeypatch):
    path = tmp_path / "file"
    path.write_bytes(b"old")
    path.chmod(0o400)
    monkeypatch.setattr(os, "access", lambda path, mode: not path.stat().st_mode & 0o400)  # root may all
    assert words(refused(path)) == "it is read-only.\nChoose another path."
    assert path.read_bytes() == b"old"


def test_the_check_changes_nothing(tmp_path):
    (tmp_path / "file").write_bytes(b"old")
    before = (tmp_path / "file").stat()
    check(tmp_path / "file")
    check(tmp_path / "new")
    check_directory(tmp_path)
    assert names(tmp_path) == ["file"]
    assert (tmp_path / "file").stat() == before


def test_content_may_be_bytes_or_a_function(tmp_path):
    write_files({tmp_path / "one": b"bytes", tmp_path / "two": lambda file: file.write(b"written")})
    assert [(tmp_path / name).read_bytes() for name in names(tmp_path)] == [b"bytes", b"written"]


def test_if_one_file_fails_none_is_replaced_and_the_error_names_it(tmp_path):
    def fail(file):
        file.write(b"half")
        raise OSError(errno.ENOSPC, "No space left on device")

    (tmp_path / "one").write_bytes(b"old")
    with pytest.raises(OSError, match="No space left on device") as caught:
        write_files({tmp_path / "one": b"new", tmp_path / "two": fail, tmp_path / "three": b"new"})
    assert caught.value.filename == str(tmp_path / "two")
    assert names(tmp_path) == ["one"]
    assert (tmp_path / "one").read_bytes() == b"old"


@pytest.mark.parametrize("call", ["fsync", "replace"])
@pytest.mark.parametrize("failure", [KeyboardInterrupt, OSError(errno.EIO, "Input/output error")], ids=repr)
def test_an_interruption_leaves_the_old_file_and_no_others(tmp_path, monkeypatch, call, failure):
    def stop(*arguments):
        raise failure

    (tmp_path / "file").write_bytes(b"old")
    monkeypatch.setattr(os, call, stop)
    with pytest.raises(type(failure) if isinstance(failure, OSError) else failure):
        write_files({tmp_path / "file": b"new"})
    assert names(tmp_path) == ["file"]
    assert (tmp_path / "file").read_bytes() == b"old"


def test_content_is_synced_before_the_rename_and_the_directory_after(tmp_path, monkeypatch):
    done = []
    real_sync, real_replace = os.fsync, os.replace

    def sync(descriptor):
        done.append("directory" if stat.S_ISDIR(os.fstat(descriptor).st_mode) else "file")
        real_sync(descriptor)

    monkeypatch.setattr(os, "fsync", sync)
    monkeypatch.setattr(os, "replace", lambda *paths: (done.append("replace"), real_replace(*paths)))
    write_files({tmp_path / "file": b"new"})
    assert done[:2] == ["file", "replace"]
    assert os.name != "posix" or done[2:] == ["directory"]


@POSIX
def test_the_target_of_a_link_is_replaced_and_the_link_stays(tmp_path):
    (tmp_path / "elsewhere").mkdir()
    for name in ("there", "absent"):
        (tmp_path / name).symlink_to(Path("elsewhere") / name)
    (tmp_path / "elsewhere" / "there").write_bytes(b"old")
    write_files({tmp_path / "there": b"new", tmp_path / "absent": b"new"})
    for name in ("there", "absent"):
        assert (tmp_path / name).is_symlink()
        assert (tmp_path / "elsewhere" / name).read_bytes() == b"new"
    assert names(tmp_path / "elsewhere") == ["absent", "there"]


@POSIX
@pytest.mark.parametrize("mask", [0o022, 0o077, 0o007])
def test_a_new_file_has_the_permissions_of_the_umask_and_an_old_one_keeps_its_own(tmp_path, mask):
    (tmp_path / "old").write_bytes(b"old")
    (tmp_path / "old").chmod(0o640)
    before = os.umask(mask)
    try:
        write_files({tmp_path / "new": b"new", tmp_path / "old": b"new"})
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "new").stat().st_mode) == 0o666 & ~mask
    assert stat.S_IMODE((tmp_path / "old").stat().st_mode) == 0o640


@POSIX
def test_a_private_file_is_private_while_it_is_written(tmp_path):
    (tmp_path / "old").write_bytes(b"old")
    (tmp_path / "old").chmod(0o600)
    seen = []
    write_files({tmp_path / "old": lambda file: seen.append(stat.S_IMODE(Path(file.name).parent.stat().st_mode))})
    assert seen == [0o700]
    assert stat.S_IMODE((tmp_path / "old").stat().st_mode) == 0o600


@POSIX
@pytest.mark.skipif(hasattr(os, "geteuid") and os.geteuid() != 0, reason="only root can give files away")
def test_a_file_keeps_its_owner_where_that_is_permitted(tmp_path, monkeypatch):
    (tmp_path / "file").write_bytes(b"old")
    os.chown(tmp_path / "file", 1234, 2345)
    write_files({tmp_path / "file": b"new"})
    found = (tmp_path / "file").stat()
    assert (found.st_uid, found.st_gid) == (1234, 2345)

    def forbid(*arguments):
        raise PermissionError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(os, "chown", forbid)
    write_files({tmp_path / "file": b"newer"})
    assert (tmp_path / "file").read_bytes() == b"newer"


# The package itself is replaced by an empty one, since importing it takes seconds.
KILLED = """
import os, signal, sys, types
from pathlib import Path
package = types.ModuleType("bellnet")
package.__path__ = [sys.argv[1]]
sys.modules["bellnet"] = package
from bellnet._utils import files
def die(file):
    file.write(b"half")
    file.flush()
    os.kill(os.getpid(), signal.SIGKILL)
files.write_files({Path(sys.argv[2]): die})
"""


def killed(path):
    """What a process leaves that is killed while it writes."""
    done = subprocess.run([sys.executable, "-S", "-c", KILLED, Path(files.__file__).parents[1], path])
    assert done.returncode == -signal.SIGKILL
    (left,) = path.parent.glob(".*")
    return left


def ago(path, hours):
    os.utime(path, (time.time() - 3600 * hours,) * 2)


@POSIX
def test_temporary_files_of_a_killed_process_are_removed_a_day_later(tmp_path):
    (tmp_path / "file").write_bytes(b"old")
    left = killed(tmp_path / "file")
    assert (tmp_path / "file").read_bytes() == b"old"
    ago(left, 23)
    write_files({tmp_path / "another": b"new"})
    assert left.exists()
    ago(left, 25)
    write_files({tmp_path / "another": b"new"})
    assert names(tmp_path) == ["another", "file"]


@POSIX
def test_other_files_are_not_removed(tmp_path):
    left = killed(tmp_path / "file")
    prefix = left.name[:-8]
    (left / "notes").write_bytes(b"not written by us")
    (tmp_path / f"{prefix}file").write_bytes(b"a file")
    (tmp_path / "precious").mkdir()
    (tmp_path / "precious" / "part").write_bytes(b"precious")
    (tmp_path / f"{prefix}link").symlink_to("precious")
    (tmp_path / "x.part").write_bytes(b"a file")
    before = names(tmp_path)
    for name in before:
        ago(tmp_path / name, 9999)
    write_files({tmp_path / "file": b"new"})
    assert names(tmp_path) == sorted([*before, "file"])
    assert (left / "notes").exists()
    assert (tmp_path / "precious" / "part").exists()


def test_concurrent_writers_leave_the_content_of_one(tmp_path):
    contents = [bytes([number]) * 10**6 for number in range(4)]
    barrier = threading.Barrier(len(contents))

    def write(content):
        barrier.wait()
        for _ in range(5):
            write_files({tmp_path / "file": content})

    threads = [threading.Thread(target=write, args=(content,)) for content in contents]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (tmp_path / "file").read_bytes() in contents
    assert names(tmp_path) == ["file"]


def test_a_lock_raises_an_error_or_waits_until_it_is_released(tmp_path):
    done = []

    def wait():
        with locked(tmp_path / "lock", wait=True) as is_locked:
            done.append(is_locked)

    with locked(tmp_path / "lock", wait=False) as is_locked:
        assert is_locked
        with pytest.raises(TimeoutError), locked(tmp_path / "lock", wait=False):
            pass
        waiting = threading.Thread(target=wait)
        waiting.start()
        waiting.join(0.2)
        assert done == []
    waiting.join()
    assert done == [True]


@POSIX
@pytest.mark.parametrize(("number", "answer"), [(errno.ENOLCK, False), (errno.EIO, None)])
def test_a_file_system_without_locks_is_reported_and_other_errors_are_raised(tmp_path, monkeypatch, number, answer):
    def fail(descriptor, how):
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr("fcntl.flock", fail)
    if answer is None:
        with pytest.raises(OSError, match="Input/output"), locked(tmp_path / "lock", wait=True):
            pass
    else:
        with locked(tmp_path / "lock", wait=True) as is_locked:
            assert is_locked is answer
