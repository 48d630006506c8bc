"""Cells on a Ray cluster: what workers are given and send back, and whatever dies, the same table as without."""

import os
import platform
import re
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager, redirect_stdout, suppress
from io import StringIO
from pathlib import Path
from types import SimpleNamespace

import pytest

from bellnet.data import tu
from bellnet.errors import DataError, MissingExtraError, OptionError
from experiments import on_ray
from experiments.__main__ import main
from experiments.display import Display
from experiments.graph_cell import cells_of_table3
from experiments.on_ray import BEGIN, CHECKPOINT, END, EPOCH, FAILED, NOTE, Payload
from experiments.records import Records
from experiments.run import run_cells
from tests.experiments.graphs import tiny, write_set
from tests.experiments.small import epochs_done, small, timeless

EPOCHS = 4


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    return write_set(tmp_path_factory.mktemp("data"))


def _same(record):
    """A record without times and places."""
    return {name: value for name, value in timeless(record).items() if name not in ("commit", "versions")}


def _sent(payload):
    """What a worker sends that is given this."""
    return [(what, value) for what, value in on_ray._work(payload)]


def _of_kind(messages, kind):
    return [value for what, value in messages if what == kind]


def test_a_worker_sends_every_epoch_its_checkpoints_and_the_result(tmp_path):
    cell = small(epochs=EPOCHS)
    (whole,) = run_cells([cell], tmp_path, show=False)
    messages = _sent(Payload(cell))
    assert [what for what, _ in messages] == [BEGIN, *[EPOCH] * EPOCHS, CHECKPOINT, END]
    assert [epoch["loss"] for epoch in _of_kind(messages, EPOCH)] == whole["curves"]["loss"]
    assert _same(messages[-1][1]) == _same(whole)


@pytest.mark.parametrize("kind", ["matrices", "nested"])
def test_another_worker_goes_on_where_the_first_has_died(tmp_path, data, kind):
    """The driver has the checkpoint of the second epoch."""
    cell = (
        small(epochs=EPOCHS)
        if kind == "matrices"
        else tiny(data=data, protocol="nested", validation_part=4, epochs=EPOCHS)
    )
    first = _sent(Payload(cell, seconds=0.0))
    second = _sent(Payload(cell, _of_kind(first, CHECKPOINT)[1]))
    assert [epoch["epoch"] for epoch in _of_kind(second, EPOCH)] == [2, 3]
    assert not _of_kind(second, NOTE)
    assert _same(second[-1][1]) == _same(first[-1][1])


def test_a_cell_that_fails_on_a_worker_says_why(tmp_path):
    *_, (what, reason) = _sent(Payload(tiny(data=tmp_path / "nowhere")))
    assert what == FAILED
    assert isinstance(reason, DataError)
    assert "nowhere" in str(reason)


def test_cells_carry_a_digest_and_no_path_and_workers_keep_the_data_set_by_it(data, tmp_path, monkeypatch):
    ray = pytest.importorskip("ray")
    monkeypatch.setenv("BELLNET_CACHE", str(tmp_path / "cache"))
    put = []
    monkeypatch.setattr(ray, "put", lambda value: put.append(value) or len(put) - 1)
    monkeypatch.setattr(ray, "get", lambda place: put[place])
    folder = shutil.copytree(data, tmp_path / "data")
    parcels = {}
    packed = [
        on_ray._packed(tiny(data=folder, split=split, epochs=1), Records(tmp_path / "out"), parcels) for split in (0, 1)
    ]
    shutil.rmtree(folder)
    assert len(put) == 1, "a data set is handed over once"
    assert [payload.cell.data for payload in packed] == [None, None]
    assert {payload.parcel[1] for payload in packed} == {tu.pack("MUTAG", data).digest}
    assert str(tmp_path) not in repr(packed)
    assert _sent(packed[0])[-1][0] == END
    put.clear()
    assert _sent(packed[1])[-1][0] == END, "it was fetched again"
    assert [path.name for path in (tmp_path / "cache").rglob("*.zip")] == ["MUTAG.zip"]


def test_a_client_of_ray_is_refused_with_the_way_out(tmp_path):
    with pytest.raises(OptionError) as caught:
        run_cells([small()], tmp_path / "out", ray="ray://head:10001", show=False)
    assert str(caught.value) == (
        "--ray ray://head:10001: a Ray client cannot stream records back.\n"
        "Run the command on a machine of the cluster, with --ray auto or with the address HOST:PORT of its head."
    )
    assert not (tmp_path / "out").exists()


def test_without_ray_the_extra_is_named(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(MissingExtraError) as caught:
        run_cells([small()], tmp_path, ray="local", show=False)
    assert str(caught.value) == (
        "--ray local needs ray, which is not installed.\n"
        "Install it, in the clone of the repository: pip install -e '.[ray]'"
    )


def test_where_there_is_no_cluster_it_is_said_how_to_start_one(tmp_path, monkeypatch):
    ray = pytest.importorskip("ray")

    def refuse(**options):
        raise ConnectionError("Could not find any running Ray instance.\nPlease specify the one to connect to.")

    monkeypatch.setattr(ray, "init", refuse)
    with pytest.raises(OptionError) as caught:
        run_cells([small()], tmp_path, ray="auto", show=False)
    assert str(caught.value) == (
        "--ray auto: there is no Ray cluster: Could not find any running Ray instance.\n"
        "Start one with `ray start --head` on this machine and `ray start --address=HOST:PORT` on others, or use "
        "--ray local."
    )


@pytest.fixture
def no_cluster(monkeypatch):
    """Ray without a cluster: tasks run when they are asked, and those of seed 1 lose their worker at once."""
    ray = pytest.importorskip("ray")

    def stream(payload):
        dead = ray.exceptions.WorkerCrashedError()
        return iter([(BEGIN, None), dead]) if payload.cell.seed == 1 else on_ray._work(payload)

    def get(message):
        if isinstance(message, Exception):
            raise message
        return message

    monkeypatch.setattr(ray, "remote", lambda **options: lambda work: SimpleNamespace(remote=stream))
    monkeypatch.setattr(ray, "wait", lambda streams, num_returns: (streams[:1], streams[1:]))
    monkeypatch.setattr(ray, "get", get)
    monkeypatch.setattr(ray, "cancel", lambda stream, force: None)
    monkeypatch.setattr(ray, "cluster_resources", lambda: {"CPU": 2.0})
    return ray


def test_a_cell_that_kills_its_workers_is_given_up_when_the_others_are_done(no_cluster, tmp_path, capsys):
    deadly, other, records = small(epochs=1, seed=1), small(epochs=1), Records(tmp_path)
    with Display([deadly, other], show=False) as display, pytest.raises(DataError) as caught:
        on_ray.run_on_ray([deadly, other], records, display, jobs=1)
    assert str(caught.value).startswith(
        f"3 workers have died, one after the other, while they ran\n  - {deadly.title}: The worker died unexpectedly"
    )
    assert str(caught.value).endswith(
        "\nEverything else is done, and what these had recorded is kept. Mostly such a cell needs more memory than a "
        "machine has: run the same command again where there is more."
    )
    said = f"{deadly.title}: its worker has died; it is sent to another one.\n"
    assert capsys.readouterr().err == said * 2
    assert list(records.read()) == [other.key]
    assert records.checkpoint(other.key).is_file()


def test_a_cluster_without_a_processor_is_waited_for_with_a_word(no_cluster, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(no_cluster, "cluster_resources", lambda: {"memory": 1.0})
    with Display([], show=False) as display:
        on_ray.run_on_ray([], Records(tmp_path), display)
    assert capsys.readouterr().err == ("The cluster has no processor. Cells wait until a machine with one joins it.\n")


def test_machines_that_lack_packages_are_told_what_they_need(no_cluster, tmp_path, monkeypatch):
    lacking = no_cluster.exceptions.RayTaskError("_work", "a trace\nModuleNotFoundError: No module named 'torch'", None)
    monkeypatch.setattr(no_cluster, "get", lambda message: _raise(lacking))
    with Display([small()], show=False) as display, pytest.raises(DataError) as caught:
        on_ray.run_on_ray([small()], Records(tmp_path), display)
    assert str(caught.value) == (
        f"{small().title} cannot begin on the cluster: ModuleNotFoundError: No module named 'torch'\n"
        f"Its machines need Python {platform.python_version()} and the packages of "
        "'bellnet[experiments,graphs,ray]'; bellnet itself and the experiments are sent to them."
    )


def _raise(reason):
    raise reason


COMMAND = ("table3", "--set", "MUTAG", "--split", "0", "1", "2", "--epochs", "20", "--silent", "--data")


CELLS = [cell.changed(max_epochs=20) for cell in cells_of_table3(names=["MUTAG"], splits=[0, 1, 2])]
# Every checkpoint is sent.
SCRIPT = """
import sys
from experiments import __main__, on_ray
on_ray.SECONDS = 0.0
sys.exit(__main__.main(sys.argv[1:]))
"""


def _command(data, out, *way):
    return [sys.executable, "-c", SCRIPT, *COMMAND, str(data), "--out", str(out), *way]


def _environment(**changes):
    # A token of its own: Ray would write one into the home of whoever tests.
    quiet = {"RAY_USAGE_STATS_ENABLED": "0", "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0"}
    return {**os.environ, "RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": TOKEN, **quiet, **changes}


TOKEN = secrets.token_hex(32)


def _table(printed):
    """What is printed of accuracies; how long it took is another matter."""
    return printed.partition("Table 3: seconds")[0].rstrip()


@pytest.fixture(scope="module")
def undisturbed(data, tmp_path_factory):
    """The table that the command prints, and its records, when nothing happens to it."""
    out = tmp_path_factory.mktemp("undisturbed")
    with redirect_stdout(StringIO()) as printed:
        assert main([*COMMAND, str(data), "--out", str(out)]) == 0
    return _table(printed.getvalue()), _figures(out)


def _figures(out):
    """All records, without times and places."""
    return {key: _same(record) for key, record in Records(out).read().items()}


def _wait_for_epochs(process, out, *, cells, epochs):
    """Wait until the checkpoints of so many cells have so many epochs."""
    while sum(epochs_done(out, cell) >= epochs for cell in CELLS) < cells:
        assert process.poll() is None, process.communicate()
        time.sleep(0.02)


@pytest.mark.slow
def test_a_command_with_ray_that_was_killed_gives_the_same_table_when_it_is_run_again(data, undisturbed, tmp_path):
    command = _command(data, tmp_path, "--ray", "local")
    killed = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, env=_environment())
    _wait_for_epochs(killed, tmp_path, cells=2, epochs=3)
    killed.kill()
    killed.wait()
    killed.stderr.close()
    assert len(Records(tmp_path).read()) < 3
    again = subprocess.run(command, capture_output=True, text=True, env=_environment())
    assert again.returncode == 0, again.stderr
    assert (_table(again.stdout), _figures(tmp_path)) == undisturbed


@contextmanager
def _cluster(address, folder, *, environment):
    """A cluster of one machine with two processors, until the context ends."""
    command = [Path(sys.executable).with_name("ray"), "start", "--head", "--block", "--num-cpus=2"]
    command += ["--object-store-memory=80000000", "--disable-usage-stats", "--include-dashboard=false"]
    command += [f"--port={address.rpartition(':')[2]}", "--node-ip-address=127.0.0.1", f"--temp-dir={folder}"]
    process = subprocess.Popen(
        command,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
        text=True,
    )
    try:
        said = []
        while not said or "Ray runtime started" not in said[-1]:
            said.append(process.stdout.readline())
            assert said[-1], said
        yield process
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()


@pytest.fixture
def short_folder():
    """A folder with a short name: Ray's sockets are there, and names of sockets may not be long."""
    folder = Path(tempfile.mkdtemp(prefix="ray-"))
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


def _free_port():
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc").is_dir(), reason="looks for the workers in /proc")
def test_a_worker_that_dies_costs_its_own_cell_alone(data, undisturbed, tmp_path, short_folder):
    """A cluster that has a cache of its own, and a package of our name that must not be the one that runs."""
    trap = tmp_path / "trap" / "bellnet"
    trap.mkdir(parents=True)
    (trap / "__init__.py").write_text("raise ImportError('the package did not come with the job')")
    changes = {"BELLNET_CACHE": str(tmp_path / "cache"), "PYTHONPATH": str(trap.parent), "PYTHONUNBUFFERED": "1"}
    theirs = _environment(**changes)
    theirs.pop("BELLNET_DATA", None)
    out, address = tmp_path / "out", f"127.0.0.1:{_free_port()}"
    with _cluster(address, short_folder, environment=theirs) as head:
        driver = subprocess.Popen(
            _command(data, out, "--ray", address),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=_environment(),
        )
        _wait_for_epochs(driver, out, cells=2, epochs=3)
        workers = [pid for pid in _below(head.pid) if "ray::_work" in Path(f"/proc/{pid}/cmdline").read_text()]
        assert len(workers) == 2
        os.kill(workers[0], signal.SIGKILL)
        printed, said = driver.communicate()
    assert driver.returncode == 0, said
    assert (_table(printed), _figures(out)) == undisturbed
    died = re.findall(r"MUTAG, split (\d), IGN, dense, fixed: its worker has died", said)
    assert len(died) == 1
    assert [path.name for path in (tmp_path / "cache").rglob("*.zip")] == ["MUTAG.zip"]


def _below(pid):
    """All processes that a process has started, and those that they have."""
    children = [
        int(child) for task in Path(f"/proc/{pid}/task").iterdir() for child in (task / "children").read_text().split()
    ]
    return [*children, *(below for child in children for below in _below(child))]


def test_a_search_connects_once_and_hands_all_its_trainings_to_the_cluster(tmp_path, monkeypatch):
    from experiments import search

    given = []

    @contextmanager
    def connected(address):
        given.append(f"connected to {address}")
        yield

    def run_cells(cells, directory, *, jobs, ray, show):
        given.append((jobs, ray))
        return [{"config": cell.to_json(), "accuracy": 0.5} for cell in cells]

    monkeypatch.setattr(search, "connected", connected)
    monkeypatch.setattr(search, "run_cells", run_cells)
    search.run_search(tmp_path, search.SearchPlan(trials=2, names=("MUTAG",)), ray="head:6379", show=False)
    assert given == ["connected to head:6379", (None, "head:6379"), (None, "head:6379")]
