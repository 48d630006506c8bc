"""Fixtures of the tests of kernels: any number of threads, every variant of the library, and loading it again."""

import pytest
import torch

from bellnet.backends import fused_norm, pooling
from bellnet.kernels import SOURCES, VARIANTS, calling, kernels


@pytest.fixture(params=[1, 2, 3])
def threads(request, monkeypatch):
    """This number of threads, for any amount of work."""
    monkeypatch.setattr(calling, "MULTIPLICATIONS_PER_THREAD", 1)
    monkeypatch.setattr(fused_norm, "VALUES_PER_THREAD", 1)
    monkeypatch.setattr(pooling, "VALUES_PER_THREAD", 1)
    before = torch.get_num_threads()
    torch.set_num_threads(request.param)
    yield request.param
    torch.set_num_threads(before)


@pytest.fixture
def reloading():
    """Kernels are loaded again inside the test, and after it."""
    kernels.cache_clear()
    yield
    kernels.cache_clear()


@pytest.fixture(params=VARIANTS)
def variant(request, reloading, monkeypatch):
    """A variant of the library that this processor supports."""
    is_supported = VARIANTS.index(request.param) >= VARIANTS.index(calling.processor())
    if not is_supported or not (SOURCES / "built" / f"kernels-{request.param}.so").exists():
        pytest.skip(f"{request.param} was not built, or is not supported by this processor")
    monkeypatch.setattr(calling, "processor", lambda: request.param)
    assert request.param in kernels()._name
    return request.param
