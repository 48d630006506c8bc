"""Settings of all tests: one thread, fixed seeds, no deadlines."""

import os
from contextlib import nullcontext

import pytest
import torch
from hypothesis import HealthCheck, settings

from bellnet.kernels import DISABLE_VARIABLE, SOURCES, disabled, kernels

settings.register_profile(
    "repeatable",
    derandomize=True,
    deadline=None,
    max_examples=40,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
settings.register_profile("search", parent=settings.get_profile("repeatable"), derandomize=False, max_examples=1000)
settings.load_profile("repeatable")  # new counterexamples: pytest --hypothesis-profile=search

torch.set_num_threads(1)
if not list(SOURCES.glob("built/*.so")):
    os.environ[DISABLE_VARIABLE] = "1"  # without a compiler; also for processes that tests start


def pytest_addoption(parser):
    parser.addoption("--update-messages", action="store_true", help="rewrite the snapshots of tests/messages")


def pytest_collection_modifyitems(items):
    """Slow tests run first, so that the workers end at about the same time."""
    items.sort(key=lambda item: item.get_closest_marker("slow") is None)


@pytest.fixture(autouse=True)
def _seed() -> None:
    torch.manual_seed(0)


@pytest.fixture(scope="module", params=["compiled", "torch"])
def every_backend(request):
    """Compiled kernels or torch operations as the backend of layers."""
    if request.param == "compiled" and kernels() is None:
        pytest.skip("bellnet was built without kernels")
    with nullcontext() if request.param == "compiled" else disabled():
        yield


@pytest.fixture
def without_kernels():
    """Torch operations as the backend of layers."""
    with disabled():
        yield
