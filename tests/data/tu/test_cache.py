"""Cached data sets: the same graphs, complete files, no code, and no outdated data."""

import os
import pickle
import signal
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest

from bellnet.data import tu
from bellnet.data.tu import cache, parse
from tests.data.tu.small import FILES, write_folder, write_zip


def cached_files(tmp_path):
    return sorted((tmp_path / "cache").glob("*"))


def load_counting(monkeypatch, *args, **options):
    """Load a set and say whether its files were parsed."""
    parsed = []
    monkeypatch.setattr("bellnet.data.tu.loading.parse", lambda files: parsed.append(files) or parse.parse(files))
    return tu.load(*args, **options), bool(parsed)


@pytest.mark.parametrize("changes", [{}, {"graph_labels": None}, {"A": "1, 2\n4, 4\n5, 6\n"}])
def test_a_cached_data_set_is_not_parsed_and_equals_the_parsed_one(tmp_path, monkeypatch, changes):
    files = {**FILES, "edge_attributes": None, "edge_labels": None, **changes}
    path = write_zip(tmp_path / "SMALL.zip", files=files)
    first, parsed = load_counting(monkeypatch, data=path)
    second, parsed_again = load_counting(monkeypatch, data=path)
    assert (parsed, parsed_again) == (True, False)
    assert first.graphs == second.graphs
    assert [graph.directed for graph in first.graphs] == [graph.directed for graph in second.graphs]
    assert first.classes == second.classes
    assert first.targets.equal(second.targets)
    assert (first.labels is None and second.labels is None) or first.labels.equal(second.labels)
    assert len(cached_files(tmp_path)) == 1


WRITERS = {
    "folder": lambda path, **changes: write_folder(path / "f", **changes),
    "zip": lambda path, **changes: write_zip(path / "S.zip", **changes),
}


@pytest.mark.parametrize("write", WRITERS.values(), ids=WRITERS)
def test_a_changed_data_set_is_parsed_again(tmp_path, monkeypatch, write):
    tu.load(data=write(tmp_path))
    found, parsed = load_counting(monkeypatch, data=write(tmp_path, graph_labels="7\n7\n7\n"))
    assert parsed
    assert found.labels.tolist() == [0, 0, 0]


def test_the_cache_folder_can_be_chosen_or_turned_off(tmp_path):
    path = write_folder(tmp_path / "f")
    tu.load(data=path, cache=False)
    assert cached_files(tmp_path) == []
    tu.load(data=path, cache=tmp_path / "own")
    assert cached_files(tmp_path) == []
    assert len(list((tmp_path / "own").iterdir())) == 1


@pytest.mark.parametrize("damage", ["cut", "empty", "foreign", "other arrays", "wrong graphs"])
def test_a_damaged_cache_file_is_written_again(tmp_path, monkeypatch, damage):
    path = write_folder(tmp_path / "f")
    tu.load(data=path)
    (file,) = cached_files(tmp_path)
    whole = file.read_bytes()
    if damage == "cut":
        file.write_bytes(whole[: len(whole) // 2])
    elif damage == "empty":
        file.write_bytes(b"")
    elif damage == "foreign":
        file.write_bytes(b"no zip at all")
    elif damage == "other arrays":
        np.savez(file, something=np.zeros(3))
    else:
        with np.load(file) as stored:
            np.savez(file, **{**stored, "edges": stored["edges"] + 7})
    found, parsed = load_counting(monkeypatch, data=path)
    assert parsed
    assert found.labels.tolist() == [1, 0, 1]
    assert not load_counting(monkeypatch, data=path)[1]
    assert len(cached_files(tmp_path)) == 1


class _Planted:
    def __reduce__(self):
        return (Path.touch, (Path(os.environ["PLANTED"]),))


def test_a_planted_pickle_does_not_run(tmp_path, monkeypatch):
    monkeypatch.setenv("PLANTED", str(tmp_path / "planted"))
    path = write_folder(tmp_path / "f")
    tu.load(data=path)
    (file,) = cached_files(tmp_path)
    planted = np.array([_Planted()], dtype=object)
    with np.load(file) as stored:
        members = {name: stored[name] for name in stored.files}
    np.savez(file, **{**members, "labels": planted})
    tu.load(data=path)
    assert not (tmp_path / "planted").exists()
    file.write_bytes(pickle.dumps(_Planted()))
    tu.load(data=path)
    assert not (tmp_path / "planted").exists()
    with np.load(file) as stored, zipfile.ZipFile(file) as zipped:
        assert len(stored.files) == len(zipped.namelist())  # it has been made again


def test_a_failure_during_writing_leaves_no_cache_file(tmp_path, monkeypatch):
    def stop(stream, **arrays):
        stream.write(b"half")
        raise KeyboardInterrupt

    monkeypatch.setattr(np, "savez", stop)
    with pytest.raises(KeyboardInterrupt):
        tu.load(data=write_folder(tmp_path / "f"))
    assert cached_files(tmp_path) == []


def test_a_cache_folder_that_cannot_be_written_gives_a_warning(tmp_path):
    (tmp_path / "cache").write_text("a file where the folder should be")
    with pytest.warns(RuntimeWarning, match=r"cannot write .*\nName another folder with cache="):
        found = tu.load(data=write_folder(tmp_path / "f"))
    assert len(found) == 3


def test_a_killed_process_leaves_no_cache_file_and_its_temporary_files_are_removed_later(tmp_path):
    path = write_folder(tmp_path / "f")
    program = f"""
import os, signal
import numpy as np
from bellnet.data import tu
def die(stream, **arrays):
    stream.write(b"half")
    stream.flush()
    os.kill(os.getpid(), signal.SIGKILL)
np.savez = die
tu.load(data={str(path)!r})
"""
    done = subprocess.run([sys.executable, "-c", program], env={**os.environ, "OMP_NUM_THREADS": "1"})
    assert done.returncode == -signal.SIGKILL
    (left,) = cached_files(tmp_path)
    assert left.is_dir()
    os.utime(left, (0, 0))
    assert len(tu.load(data=path)) == 3
    assert [file.suffix for file in cached_files(tmp_path)] == [".npz"]


def test_the_default_cache_folder_is_that_of_the_platform(monkeypatch):
    monkeypatch.delenv("BELLNET_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", "/x")
    monkeypatch.setattr(sys, "platform", "linux")
    assert cache.default_folder() == Path("/x/bellnet")
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert cache.default_folder() == Path.home() / ".cache" / "bellnet"
    monkeypatch.setattr(sys, "platform", "darwin")
    assert cache.default_folder() == Path.home() / "Library" / "Caches" / "bellnet"
    monkeypatch.setattr(sys, "platform", "win32")
    monkeypatch.setenv("LOCALAPPDATA", "/local")
    assert cache.default_folder() == Path("/local/bellnet/Cache")
