"""Errors of missing optional packages."""

import sys

import pytest

from bellnet.data import graphml, to_networkx, to_pyg, to_scipy, tu, undirected
from bellnet.errors import MissingExtraError

PATH = undirected(2, [(0, 1)])
CALLS = {
    "to_networkx": (lambda folder: to_networkx(PATH), "networkx", "graphs"),
    "to_scipy": (lambda folder: to_scipy(PATH), "scipy", "graphs"),
    "to_pyg": (lambda folder: to_pyg(PATH), "torch_geometric", "pyg"),
    "tu.load": (lambda folder: tu.load(data=folder), "numpy", "graphs"),
    "graphml.load": (lambda folder: graphml.load(folder), "networkx", "graphs"),
}


@pytest.mark.parametrize("call", CALLS)
def test_the_error_of_a_missing_package_names_the_extra(call, monkeypatch, tmp_path):
    function, package, extra = CALLS[call]
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(MissingExtraError) as caught:
        function(tmp_path)
    assert str(caught.value) == (
        f"{call} needs {package}, which is not installed.\nInstall it: pip install 'bellnet[{extra}]'"
    )
