"""Settings of the whole test run: one thread, and neither clocks nor chance."""

import os

import pytest
import torch
from hypothesis import HealthCheck, settings

from bellnet.execute import dense, listed, orbits
from bellnet.kernels import PLACE, WITHOUT, kernels

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
    with pytest.MonkeyPatch.context() as patch:
        if request.param != "compiled":
            _turn_off(patch)
        yield


@pytest.fixture
def without_kernels(monkeypatch):
    """Layers are run by torch's operations."""
    _turn_off(monkeypatch)


def _turn_off(patch):
    for layout in (dense, listed):
        patch.setattr(layout, "can_compile", lambda plan, values: False)
    patch.setattr(orbits, "can_pool", lambda orbits, tensor: False)
