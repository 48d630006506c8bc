"""Constants are shared by all threads of a process."""

import sys
from concurrent.futures import ThreadPoolExecutor

import torch

from bellnet.backends import level_matrices


def test_constants_are_correct_when_threads_fill_the_cache(monkeypatch):
    monkeypatch.setattr(level_matrices, "MOST_CONSTANTS", 2)
    monkeypatch.setattr(level_matrices, "_CONSTANTS", {})
    like = torch.zeros(1)

    def request(thread):
        for number in range(3000):
            key = (number * 7 + thread) % 11
            assert level_matrices.constant(key, like, lambda key=key: torch.tensor(key)).item() == key

    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)  # or else threads take turns so seldom that nothing would happen without a lock
    try:
        with ThreadPoolExecutor(8) as threads:
            list(threads.map(request, range(8)))
    finally:
        sys.setswitchinterval(before)
    assert len(level_matrices._CONSTANTS) <= 2
