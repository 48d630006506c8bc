"""A call runs code of few files of the library."""

import importlib
import pkgutil
import sys
from collections.abc import Callable
from pathlib import Path

import networkx as nx
import pytest
import torch

import bellnet as bn
from bellnet.estimator import GraphClassifier

LIBRARY = str(Path(bn.__file__).parent)


@pytest.fixture(scope="module", autouse=True)
def _everything_is_imported():
    """What runs when a module is imported does not count."""
    for module in pkgutil.walk_packages(bn.__path__, "bellnet."):
        if module.name != "bellnet.__main__":
            importlib.import_module(module.name)


def files_run(call: Callable[[], object]) -> set[str]:
    """The files of the library whose functions run during a call."""
    found = set()

    def record(frame, event, argument):
        found.add(frame.f_code.co_filename)

    before = sys.getprofile()
    sys.setprofile(record)
    try:
        call()
    finally:
        sys.setprofile(before)
    return {name.removeprefix(LIBRARY) for name in found if name.startswith(LIBRARY)}


def dense() -> Callable[[], object]:
    layer, x = bn.EquivariantLinear("n n -> n n", 5, 7), torch.randn(2, 6, 6, 5)
    return lambda: layer(x)


def sparse() -> Callable[[], object]:
    layer = bn.EquivariantLinear("n n -> n n", 5, 7)
    x = bn.Sparse(torch.tensor([[0, 1, 1, 3], [1, 0, 2, 2]]), torch.randn(4, 5), sizes=4)
    return lambda: layer(x)


@pytest.mark.parametrize(("make", "first", "later"), [(dense, 12, 7), (sparse, 18, 10)])
def test_a_layer_runs_code_of_few_files(make, first, later):
    call = make()
    files = files_run(call)
    assert "/nn/linear.py" in files
    assert len(files) <= first, sorted(files)
    files = files_run(call)
    assert len(files) <= later, sorted(files)


@pytest.mark.parametrize("density", [0.2, 0.7])
def test_a_fit_on_networkx_graphs_runs_code_of_few_files(density):
    graphs = [nx.gnp_random_graph(5 + number, density, seed=number) for number in range(20)]
    files = files_run(lambda: GraphClassifier(max_epochs=2, verbose=False).fit(graphs, [0, 1] * 10))
    assert len(files) <= 40, sorted(files)
