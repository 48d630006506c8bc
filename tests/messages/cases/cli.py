"""Mistakes on the command line."""

import os
import re
import sys
from contextlib import chdir, redirect_stderr, redirect_stdout
from io import StringIO
from unittest.mock import patch

import networkx

from bellnet.cli.main import main
from bellnet.errors import BellnetError
from tests.data.tu.small import write_folder


class CommandError(BellnetError):
    """The text on standard error of a command that ends with exit code 2, without the usage."""


def _run(folder, *arguments):
    """Runs a command that must end with exit code 2, print nothing to standard output and write no file."""
    before = _files(folder)
    try:
        _fail(*arguments, folder=folder)
    finally:
        assert _files(folder) == before


def _files(folder):
    return {path for path in folder.rglob("*") if "cache" not in path.parts}


def _fail(*arguments, folder):
    out, error = StringIO(), StringIO()
    with chdir(folder), redirect_stdout(out), redirect_stderr(error):
        try:
            code = main([*arguments])
        except SystemExit as stop:
            code = stop.code
    assert (code, out.getvalue()) == (2, "")
    text = re.search(r"^bellnet.*", error.getvalue(), re.MULTILINE | re.DOTALL)[0].rstrip("\n")
    raise CommandError(
        re.sub(r"\(choose from .*?\)", "(choose from ...)", text)
    )  # listed as the version of Python does


def _command(*arguments):
    return lambda folder: _run(folder, *arguments)


def _with_graphs(*arguments):
    """A command in a folder with GraphML files in `graphs` and the TU layout in `SMALL`."""

    def case(folder):
        (folder / "graphs").mkdir()
        for n in (2, 3):
            networkx.write_graphml(networkx.path_graph(n), folder / "graphs" / f"{n}.graphml")
        (folder / "graphs" / "labels.csv").write_text("file,label\n2.graphml,a\n3.graphml,b\n")
        (folder / "SMALL").mkdir()
        write_folder(folder / "SMALL")
        (folder / "splits").mkdir()
        (folder / "splits" / "SMALL.json").write_text('{"folds": [{"train": [0, 1], "test": [2]}]}')
        _run(folder, *arguments)

    return case


def _with_file(name, content):
    """A fit to a file that is no data set."""

    def case(folder):
        (folder / name).write_bytes(content)
        _run(folder, "fit", name, "--out", "m")

    return case


def _with_pipe(*arguments):
    def case(folder):
        os.mkfifo(folder / "pipe.png")
        (folder / "file").write_text("not a directory")
        _run(folder, *arguments)

    return case


def _of_a_known_set(name):
    def case(folder):
        write_folder(folder / "TINY", "TINY")
        with patch.dict(os.environ, BELLNET_DATA=str(folder)):
            _run(folder, "fit", name, "--out", "m")

    return case


def _without_matplotlib(folder):
    with patch.dict(sys.modules, matplotlib=None):
        _run(folder, "basis", "n -> n", "--out", "a.png")


def _without_sklearn(folder):
    with patch.dict(sys.modules, sklearn=None):
        for name in [name for name in sys.modules if name.startswith("bellnet.estimator")]:
            del sys.modules[name]  # imported again, and put back afterwards
        _run(folder, "fit", "graphs", "--out", "m")


def _without_reading(folder):
    def refuse(path):
        raise PermissionError(13, "Permission denied", str(path))

    (folder / "graphs").mkdir()
    with patch.object(os, "listdir", refuse), patch.object(os, "scandir", refuse):
        _fail("fit", "graphs", "--out", "m", folder=folder)


FIT = ("fit", "x", "--out", "y")
BASIS = ("basis", "n -> n", "--out")

CASES = {
    # specs
    "a spec without an arrow": _command("plan", "n n"),
    "a spec without quotation marks": _command("plan", "n", "n", "->", "n"),
    "a spec without quotation marks that made a file": _command("plan", "n", "n", "-"),
    "a spec without quotation marks and spaces": _command("plan", "nn-"),
    "a spec with too many maps": _command("plan", "n " * 12 + "-> n"),
    "a spec with more maps than allowed": _command("plan", "n n -> n", "--max-maps", "4"),
    "a spec without an arrow to explore": _command("explore", "n n"),
    "a spec with a script to explore": _command("explore", 'n -> "><script>'),
    # arguments
    "no spec": _command("plan"),
    "no output": _command("basis", "n -> n"),
    "an unknown command": _command("nonsense"),
    "a misspelled command": _command("paln", "n -> n"),
    "an unknown basis": _command(*BASIS, "a.png", "--basis", "fourier"),
    "a misspelled basis": _command(*BASIS, "a.png", "--basis", "orbti"),
    "a misspelled option": _command("plan", "n -> n", "--symetric"),
    "an option with an underscore": _command("plan", "n -> n", "--max_maps=4"),
    "a misspelled required option": _command("fit", "x", "--output", "y"),
    "a misspelled option with a value": _command(*FIT, "--sede", "1"),
    "a misspelled option alone": _command("--verison"),
    "a misspelled option before the command": _command("--verison", "plan", "n -> n"),
    "an unknown option": _command("plan", "n -> n", "--zzzzz"),
    "an argument too many": _command("plan", "n -> n", "more"),
    "channels without a cost": _command("plan", "n -> n", "--batch", "2"),
    "a word for a size": _command("plan", "n -> n", "--cost", "few"),
    "an empty size": _command("plan", "n -> n", "--cost", "u="),
    "a size without a node set": _command("plan", "n -> n", "--cost", "u=1,5"),
    "a node set without a size": _command("plan", "u i -> u", "--cost", "u=2"),
    "a size of 30 digits": _command("plan", "n -> n", "--cost", "9" * 30),
    "a size of 5000 digits": _command("plan", "n -> n", "--cost", "u=" + "9" * 5000),
    "channels of 3000 digits": _command("plan", "n -> n", "--cost", "2", "--channels", "1", "9" * 3000),
    "a limit of maps of 64 bits": _command("plan", "n -> n", "--max-maps", str(2**63)),
    "a seed of 23 digits": _command(*FIT, "--seed", "9" * 23),
    "a bound of memory beyond 64 bits": _command(*FIT, "--max-gigabytes", "1e300"),
    "a learning rate beyond 64 bits": _command(*FIT, "--learning-rate", "1e300"),
    "an infinite learning rate": _command(*FIT, "--learning-rate", "inf"),
    "no epochs": _command(*FIT, "--max-epochs", "0"),
    # pictures and pages
    "a picture of another format": _command(*BASIS, "a.gif"),
    "a picture in a missing directory": _command(*BASIS, "nowhere/a.png"),
    "diagrams in a missing directory": _command(*BASIS, "a.png", "--diagrams", "nowhere/a.png"),
    "a picture below a file": _with_pipe(*BASIS, "file/a.png"),
    "a picture in place of a pipe": _with_pipe(*BASIS, "pipe.png"),
    "two pictures in one file": _command(*BASIS, "a.png", "--diagrams", "./a.png"),
    "pictures without matplotlib": _without_matplotlib,
    "a page in a missing directory": _command("explore", "--out", "nowhere/maps.html"),
    # fit, evaluate and predict
    "a fit without output": _with_graphs("fit", "graphs"),
    "a fit to a missing path": _command("fit", "nowhere", "--out", "m"),
    "a fit into a missing directory": _with_graphs("fit", "graphs", "--out", "no/such/model"),
    "a fit in place of a directory": _with_graphs("fit", "graphs", "--out", "graphs"),
    "a split without splits": _with_graphs("fit", "graphs", "--out", "m", "--split", "0"),
    "a split that does not exist": _with_graphs("fit", "SMALL", "--out", "m", "--split", "2"),
    "a table of labels of the TU layout": _with_graphs("fit", "SMALL", "--out", "m", "--labels", "x.csv"),
    "a table of labels that does not exist": _with_graphs("fit", "graphs", "--out", "m", "--labels", "x.csv"),
    "a bound of zips for GraphML files": _with_graphs("fit", "graphs", "--out", "m", "--max-ratio", "9"),
    "a bound of zips of zero": _with_graphs("fit", "SMALL", "--out", "m", "--max-unpacked", "0"),
    "a regression on names": _with_graphs("fit", "graphs", "--out", "m", "--regression"),
    "a regression with balanced classes": _with_graphs("fit", "graphs", "--out", "m", "--regression", "--balanced"),
    "a fit on an unknown device": _with_graphs("fit", "graphs", "--out", "m", "--device", "abacus"),
    "a fit without scikit-learn": _without_sklearn,
    "a folder that cannot be read": _without_reading,
    "an evaluation of a missing model": _with_graphs("evaluate", "nothing", "graphs"),
    "a prediction of a missing model": _with_graphs("predict", "nothing", "graphs"),
    "a prediction in place of a directory": _with_graphs("predict", "nothing", "graphs", "--out", "graphs"),
    # data sets
    "a data set in lower case": _of_a_known_set("mutag"),
    "a misspelled data set": _of_a_known_set("TINNY"),
    "a missing data set with a path": _of_a_known_set("far/from/here"),
    "a missing data set": _of_a_known_set("nowhere"),
    "a CSV file for a zip": _with_file("graphs.csv", b"graph,source,target\n0,1,2\n"),
    "a TSV file for a zip": _with_file("graphs.tsv", b"graph\tsource\n0\t1\n"),
    "a GraphML file for a zip": _with_file("one.graphml", b'<?xml version="1.0"?><graphml></graphml>'),
    "a GraphML file without a suffix for a zip": _with_file("unnamed", b'<?xml version="1.0"?><graphml></graphml>'),
    "a file of the TU layout for a zip": _with_file("TINY_A.txt", b"1, 2\n2, 1\n"),
    "a JSON file for a zip": _with_file("graphs.json", b'{"nodes": []}'),
    "an archive for a zip": _with_file("MUTAG.tar.gz", b"\x1f\x8b\x08\x00"),
    "a text file for a zip": _with_file("notes.txt", b"some words\n"),
    "an empty file for a zip": _with_file("empty", b""),
    "a binary file for a zip": _with_file("model", b"\x00\xff\x80"),
    "a zip that is cut off": _with_file("TINY.zip", b"PK\x03\x04 and no more"),
}
