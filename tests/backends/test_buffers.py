"""Buffers are reused, and never while a tensor still refers to them."""

import copy
import io
import os
import signal
import subprocess
import sys
import time
import warnings
import weakref
from concurrent.futures import ThreadPoolExecutor
from threading import Event, Thread

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.testing import assert_close

import bellnet as bn
from bellnet.backends import buffers, level_matrices
from bellnet.backends.buffers import BufferPool, SharedBuffer
from bellnet.backends.projections import Projections
from bellnet.kernels import kernels

needs_kernels = pytest.mark.skipif(kernels() is None, reason="torch operations allocate as usual")


@pytest.fixture(autouse=True)
def _everything_is_large(monkeypatch):
    monkeypatch.setattr(buffers, "LARGE", 1)


def make_graph():
    index = torch.randint(40, (2, 300), generator=torch.Generator().manual_seed(0)).unique(dim=1)
    return bn.Sparse(index, torch.randn(index.shape[1], 4), 40)


@pytest.fixture
def graph():
    return make_graph()


def _pool_of(graph):
    """The buffers of tensors on the support of a graph."""
    return Projections.on(bn.plan("n n -> n").source, [graph.support]).memory()[0]._pool


def test_memory_is_reused_after_the_last_view_is_freed():
    blocks = BufferPool()
    first = blocks.empty(6, 4, torch.float32)
    where, row = first.data_ptr(), first[2]
    del first
    assert blocks.empty(6, 4, torch.float32).data_ptr() != where
    del row
    assert blocks.empty(4, 6, torch.float32).data_ptr() == where


def test_block_is_reused_for_any_dtype_of_similar_size():
    blocks = BufferPool()
    where = blocks.empty(6, 4, torch.float32).data_ptr()
    for n_rows, width, dtype in ((6, 2, torch.float64), (3, 4, torch.float32), (5, 4, torch.float32)):
        tensor = blocks.empty(n_rows, width, dtype)
        assert tensor.data_ptr() == where
        assert tensor.dtype == dtype
        assert tensor.shape == (n_rows, width)
        del tensor
    assert blocks.empty(2, 4, torch.float32).data_ptr() != where


def test_tensors_of_many_widths_in_turn_use_bounded_memory():
    """None of them fits into a block of the one before, so every one takes a fresh block."""
    blocks = BufferPool()
    for width in range(10, 60):
        blocks.empty(4, width, torch.float32)
        assert blocks._n_bytes <= 1.5 * 4 * width * 4


@given(st.lists(st.tuples(st.integers(1, 40), st.integers(0, 3)), max_size=60))
def test_memory_is_bounded_by_the_peak_of_tensors_in_use(requests):
    """Four owners of one tensor each replace it by one of another size."""
    blocks, owners, most = BufferPool(), {}, 0
    for n_rows, owner in requests:
        owners.pop(owner, None)
        owners[owner] = blocks.empty(n_rows, 4, torch.float32)
        most = max(most, sum(tensor.numel() * 4 for tensor in owners.values()))
        assert blocks._n_bytes <= 1.5 * 2 * most  # a block may be twice as large as its tensor
    held = [tensor.data_ptr() for tensor in owners.values()]
    assert len({*held}) == len(held)


@needs_kernels
@pytest.mark.parametrize(("is_large", "beyond"), [(True, 0), (False, 1)])
def test_only_large_tensors_use_a_buffer(graph, is_large, beyond, monkeypatch):
    layer = bn.EquivariantLinear("n n -> n n", 4, 4)
    monkeypatch.setattr(buffers, "LARGE", graph.values.nbytes + beyond)
    layer(graph)
    assert (_pool_of(graph) is not None) == is_large


def test_default_device_has_no_effect(graph):
    layer = bn.EquivariantLinear("n n -> n n", 4, 4)
    expected = layer(graph).values
    with torch.device("meta"):
        assert torch.equal(layer(graph).values, expected)


def test_all_supports_share_one_pool_that_is_freed_with_them():
    first, second = SharedBuffer(), SharedBuffer()
    where = first.empty(6, 4, torch.empty(0)).data_ptr()
    assert second.empty(6, 4, torch.empty(0)).data_ptr() == where
    there = weakref.ref(first._pool)
    assert second._pool is first._pool
    del first
    assert there() is not None
    del second
    assert there() is None


@pytest.mark.parametrize("spec", ["n n -> n n", "n n -> n", "n n ->", "n n -> n n n"])
@pytest.mark.parametrize("width", [1, 4, 6])
def test_results_can_be_changed_in_place(graph, spec, width):
    """Neither a result nor a gradient is a view, which autograd would guard."""
    layer = bn.EquivariantLinear(spec, 4, width)
    support = bn.Sparse(torch.zeros(3, 1, dtype=torch.int64), torch.zeros(1, 1), 40) if spec.count("n") == 5 else None
    x = graph.with_values(graph.values.requires_grad_())
    y = _values(layer(x, support=support))
    gradients = torch.autograd.grad(y.relu().sum(), [x.values, layer.weight])
    assert not gradients[0]._is_view()
    y = _values(layer(x, support=support))
    assert_close(torch.autograd.grad(y.relu_().sum(), [x.values, layer.weight]), gradients)


def _values(y):
    return y.values if isinstance(y, bn.Sparse) else y


def test_result_is_not_overwritten_by_the_next_call(graph):
    layer = bn.EquivariantLinear("n n -> n n", 4, 4)
    y = layer(graph).values
    before = y.clone()
    for _ in range(3):
        other = layer(graph.with_values(torch.randn_like(graph.values))).values
        assert other.data_ptr() != y.data_ptr()
    assert torch.equal(y, before)


def test_tensors_saved_for_backward_are_not_overwritten(graph, monkeypatch):
    net = bn.EquivariantNet("n n -> n", [4, 8, 8, 1])

    def gradients():
        outcome = net(graph).values.square().sum()
        for _ in range(2):
            net(graph.with_values(torch.randn_like(graph.values)))
        return torch.autograd.grad(outcome, list(net.parameters()))

    pooled = gradients()
    monkeypatch.setattr(buffers, "LARGE", sys.maxsize)
    assert_close(pooled, gradients())


def test_gradient_is_not_overwritten_by_the_next_pass(graph):
    layer = bn.EquivariantLinear("n n -> n n", 4, 4)
    values = graph.values.clone().requires_grad_()
    layer(graph.with_values(values)).values.sum().backward()
    before = values.grad.clone()
    layer(graph.with_values(graph.values.clone().requires_grad_())).values.square().sum().backward()
    assert torch.equal(values.grad, before)


def test_threads_do_not_share_a_result(graph):
    layer = bn.EquivariantLinear("n n -> n n", 4, 4)
    inputs = [graph.with_values(torch.randn_like(graph.values)) for _ in range(8)]
    with torch.no_grad():
        expected = [layer(x).values.clone() for x in inputs]

    def run(x):
        with torch.no_grad():
            return [layer(x).values for _ in range(20)]

    with ThreadPoolExecutor(4) as threads:
        for results, wanted in zip(threads.map(run, inputs), expected, strict=True):
            assert all(torch.equal(result, wanted) for result in results)


def forked(work):
    """The exit code of a process that is forked off here and does some work, within half a minute."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # later versions of Python mind forks beside threads
        child = os.fork()
    if child:
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    code = 1
    try:
        signal.alarm(30)
        code = 0 if work() else 2
    finally:
        os._exit(code)


FORKS = pytest.mark.skipif(not hasattr(os, "fork"), reason="there are no forks here")


@FORKS
def test_processes_do_not_share_a_result(graph):
    layer = bn.EquivariantLinear("n n -> n n", 4, 4).requires_grad_(False)
    inputs = [graph.with_values(torch.randn_like(graph.values)) for _ in range(6)]
    expected = [layer(x).values.clone() for x in inputs]
    before = [layer(x).values for x in inputs[:2]]

    def work():
        after = [layer(x).values for x in inputs]
        return all(map(torch.equal, before, expected[:2])) and all(map(torch.equal, after, expected))

    assert forked(work) == 0
    assert work()


@FORKS
@pytest.mark.parametrize("lock", [buffers.LOCK, level_matrices.LOCK], ids=["memory", "constants"])
def test_fork_waits_for_threads_that_hold_a_lock(graph, lock):
    layer = bn.EquivariantLinear("n n -> n n", 4, 4).requires_grad_(False)
    taken = Event()

    def hold():
        with lock:
            taken.set()
            time.sleep(0.2)

    thread = Thread(target=hold)
    thread.start()
    taken.wait()
    assert forked(lambda: lock.acquire(timeout=5) and (lock.release() or len(layer(graph).values) > 0)) == 0
    thread.join()


@needs_kernels
def test_pool_is_freed_with_the_support_except_the_block_of_a_result():
    graph, layer = make_graph(), bn.EquivariantLinear("n n -> n n", 4, 4)
    y = layer(graph).values.detach()
    layer(graph), layer(graph)
    before = y.clone()
    shared = _pool_of(graph)
    blocks = [weakref.ref(block) for block in (*shared._idle, *shared._returned)]
    assert any(len(block()) == y.numel() * 4 for block in blocks)
    del shared, graph
    assert all(block() is None for block in blocks)
    assert torch.equal(y, before)


def test_results_can_be_copied_saved_and_shared(graph):
    y = bn.EquivariantLinear("n n -> n n", 4, 4)(graph).values.detach()
    before = y.clone()
    file = io.BytesIO()
    torch.save(y, file)
    file.seek(0)
    assert torch.equal(torch.load(file), before)
    assert torch.equal(copy.deepcopy(y), before)
    assert torch.equal(y.share_memory_(), before)


def test_buffers_made_in_inference_mode_serve_training(graph):
    layer = bn.EquivariantLinear("n n -> n n", 4, 4)
    with torch.inference_mode():
        expected = layer(graph).values.clone()
    y = layer(graph.with_values(graph.values.clone().requires_grad_())).values
    y.sum().backward()
    assert_close(y, expected)


FAULTS = """if True:
    import ctypes, resource, sys, torch
    import bellnet as bn
    from bellnet.backends import buffers, level_matrices

    ctypes.CDLL(None).prctl(41, 1, 0, 0, 0)  # no huge pages, so that pages can be counted
    n = 60_000
    start = torch.arange(n).repeat_interleave(10)
    x = bn.Sparse(torch.stack([start, (start + 7 * torch.arange(10).repeat(n) + 1) % n]), torch.randn(10 * n, 16), n)
    x = x.with_values(x.values.requires_grad_())
    layer = bn.EquivariantLinear("n n -> n n", 16, 16)

    def pages():
        before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
        for _ in range(3):
            x.values.grad = None
            layer(x).values.sum().backward()
        return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before

    pages()
    again = pages()
    buffers.LARGE = sys.maxsize
    pages()
    print(again, pages())
"""


@needs_kernels
@pytest.mark.skipif(sys.platform != "linux", reason="other systems have other allocators")
def test_second_pass_over_a_large_graph_takes_few_new_pages():
    """Result and gradient are 38 MB each, 9,375 pages."""
    done = subprocess.run([sys.executable, "-c", FAULTS], capture_output=True, text=True, check=True)
    again, without = map(int, done.stdout.split())
    if without < 3 * 9_000:
        pytest.skip("the C library here reuses large blocks by itself")
    assert again < without / 4
