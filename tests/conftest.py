"""Settings of the whole test run: one thread, and neither clocks nor chance."""

import os
from contextlib import nullcontext

import pytest
import torch
from hypothesis import HealthCheck, settings

from bellnet.kernels import PLACE, WITHOUT, disabled, kernels

settings.register_profile(
    "repeatable",
    derandomize=True,
    deadline=None,
    max_examples=40,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
settings.register_profile("search", parent=settings.get_profile("repeatable"), derandomize=False, max_examples=1000)
settings.load_profile("repeatable")  # pytest --hypothesis-profile=search looks for new counterexamples

torch.set_num_threads(1)
if not list(PLACE.glob("built/*.so")):
    os.environ[WITHOUT] = "1"  # no compiler was found: then that is how it is, also in processes that tests start


def pytest_addoption(parser):
    parser.addoption("--update-messages", action="store_true", help="rewrite the snapshots of tests/messages")


def pytest_collection_modifyitems(items):
    """What takes long comes first, so that at the end no worker waits for another one."""
    items.sort(key=lambda item: item.get_closest_marker("slow") is None)


@pytest.fixture(autouse=True)
def _the_same_numbers_in_every_run() -> None:
    torch.manual_seed(0)


@pytest.fixture(scope="module", params=["compiled", "torch"])
def every_walk(request):
    """Layers are run by compiled kernels, or by torch's operations."""
    if request.param == "compiled" and kernels() is None:
        pytest.skip("bellnet was built without kernels")
    with nullcontext() if request.param == "compiled" else disabled():
        yield


@pytest.fixture
def without_kernels():
    """Layers are run by torch operations."""
    with disabled():
        yield
