"""Freed memory that is kept is reused without page faults."""

import subprocess
import sys

import pytest

PAGES = """if True:
    import os, resource, torch
    import bellnet as bn
    from bellnet._utils.memory import freed_memory_kept

    def pages(calls, length=2**24):  # 64 MB, 16,384 pages
        before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
        for _ in range(calls):
            torch.ones(length)
        return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before
"""


FAULTS = """
    pages(1)
    given_back = pages(4)
    kept = bn.keep_freed_memory()
    pages(4)
    print(given_back, kept, min(pages(4) for _ in range(3)))  # a machine that is short of memory may take some back
"""


FOR_A_WHILE = """
    def held():  # bytes that are in memory now
        return int(open("/proc/self/statm").read().split()[1]) * os.sysconf("SC_PAGE_SIZE")

    before = held()
    with freed_memory_kept():
        with freed_memory_kept():
            pages(1)
        within, kept = min(pages(4) for _ in range(3)), held() - before
    left = held() - before
    print(within, kept, left, pages(4))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="other systems have other allocators")
def test_freed_memory_is_kept_inside_the_context_only():
    done = subprocess.run([sys.executable, "-c", PAGES + FOR_A_WHILE], capture_output=True, text=True, check=True)
    within, kept, left, after = map(int, done.stdout.split())
    if within > 100:
        pytest.skip("the C library here has no mallopt")
    assert kept > 2**25
    assert left < 2**24
    assert after > 10_000


AFTERWARDS = """
    with freed_memory_kept():
        pass
    print(min(pages(8, 2**20) for _ in range(5)))  # 4 MB, 1,024 pages
"""


@pytest.mark.skipif(sys.platform != "linux", reason="other systems have other allocators")
def test_small_blocks_are_reused_after_the_context():
    done = subprocess.run([sys.executable, "-c", PAGES + AFTERWARDS], capture_output=True, text=True, check=True)
    assert int(done.stdout) < 1_000


@pytest.mark.skipif(sys.platform != "linux", reason="other systems have other allocators")
def test_large_tensors_reuse_freed_pages():
    done = subprocess.run([sys.executable, "-c", PAGES + FAULTS], capture_output=True, text=True, check=True)
    given_back, kept, again = done.stdout.split()
    if kept == "False":
        pytest.skip("the C library here has no mallopt")
    assert int(given_back) > 4 * 10_000
    assert int(again) < 100


def test_other_systems_return_false(monkeypatch):
    from bellnet import keep_freed_memory

    monkeypatch.setattr(sys, "platform", "darwin")
    assert keep_freed_memory() is False
