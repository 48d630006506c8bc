"""Data sets that tests write are not kept in the user's own cache."""

import pytest


@pytest.fixture(scope="session", autouse=True)
def _own_cache(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("BELLNET_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield
