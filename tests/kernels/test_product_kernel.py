"""The kernel of contractions is einsum, whatever the letters, lengths, channels, types and threads."""

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from torch.testing import assert_close

from bellnet.backends import products
from bellnet.backends.products import kernel_product
from bellnet.kernels import kernels
from bellnet.kernels.calling import can_call

pytestmark = pytest.mark.skipif(kernels() is None, reason="there are no kernels")
CHANNELS = [1, 2, 3, 4, 7, 8, 12, 16, 20, 33]
MATRICES = [("ab", "bc", "ac"), ("ac", "bc", "ab"), ("ab", "ac", "bc"), ("ba", "cb", "ca")]


@st.composite
def problems(draw):
    """Letters of three tensors, their lengths, and how many graphs and channels there are."""
    groups = draw(st.lists(st.sampled_from(["shared", "left", "right", "summed"]), min_size=0, max_size=5))
    letters = "abcde"[: len(groups)]
    without = "right", "left", "summed"  # which letters x, y and the product do not have
    parts = tuple(
        "".join(draw(st.permutations([one for one, group in zip(letters, groups, strict=True) if group != other])))
        for other in without
    )
    lengths = dict(zip(letters, draw(st.lists(st.integers(0, 6), min_size=5, max_size=5)), strict=False))
    return parts, lengths, draw(st.integers(0, 3)), draw(st.sampled_from([0, *CHANNELS]))


def drawn(letters, lengths, *, graphs=1, channels, dtype=torch.float64):
    return [torch.randn(graphs, *[lengths[letter] for letter in one], channels, dtype=dtype) for one in letters[:2]]


def by_einsum(letters, x, y):
    x_letters, y_letters, product = letters
    return torch.einsum(f"Y{x_letters}Z,Y{y_letters}Z->Y{product}Z", x.double(), y.double())


def assert_is_einsum(letters, x, y, factor=0.5):
    found = kernel_product(letters, x, y, factor)
    assert found.dtype == x.dtype
    assert found.is_contiguous()
    # As many roundings as there are terms, of single precision.
    tolerance = {"atol": 1e-4, "rtol": 1e-4} if x.dtype == torch.float32 else {"atol": 1e-11, "rtol": 1e-11}
    assert_close(found.double(), factor * by_einsum(letters, x, y), **tolerance)


@pytest.mark.usefixtures("threads")
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(problems(), st.sampled_from([torch.float32, torch.float64]))
def test_products_equal_einsum(problem, dtype):
    letters, lengths, graphs, channels = problem
    assert_is_einsum(letters, *drawn(letters, lengths, graphs=graphs, channels=channels, dtype=dtype))


@pytest.mark.usefixtures("threads")
@pytest.mark.parametrize("letters", MATRICES)
@pytest.mark.parametrize("channels", CHANNELS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_incomplete_tiles_panels_and_blocks_are_multiplied(letters, channels, dtype):
    for lengths in ({"a": 5, "b": 131, "c": 103}, {"a": 67, "b": 3, "c": 9}, {"a": 1, "b": 70, "c": 6}):
        assert_is_einsum(letters, *drawn(letters, lengths, graphs=2, channels=channels, dtype=dtype))


@pytest.mark.usefixtures("threads")
def test_columns_of_few_channels_fill_more_than_one_panel():
    letters, lengths = ("ab", "bc", "ac"), {"a": 3, "b": 2, "c": 4000}
    for channels in (1, 3, 5):
        assert_is_einsum(letters, *drawn(letters, lengths, channels=channels))


@pytest.mark.usefixtures("threads")
@pytest.mark.parametrize("channels", CHANNELS)
@pytest.mark.parametrize("wrong", [torch.nan, torch.inf])
def test_nan_stays_in_its_channel_row_and_column(channels, wrong):
    letters, lengths = ("ab", "bc", "ac"), {"a": 7, "b": 5, "c": 9}
    x, y = drawn(letters, lengths, channels=channels)
    clean = kernel_product(letters, x, y, 1.0)
    x[0, 3, 2, channels // 2] = wrong
    found = kernel_product(letters, x, y, 1.0)
    reached = torch.zeros_like(found, dtype=torch.bool)
    reached[0, 3, :, channels // 2] = True
    assert not found[reached].isfinite().any()
    assert torch.equal(found[~reached], clean[~reached])
    x[0, 3, 2, channels // 2] = 0
    y[0, 2, 4, channels // 2] = wrong
    found = kernel_product(letters, x, y, 1.0)
    assert not found[0, [0, 1, 2, 4, 5, 6], 4, channels // 2].isfinite().any()
    assert found[0, :, [0, 1, 2, 3, 5, 6, 7, 8]].isfinite().all()


@pytest.mark.usefixtures("threads")
@pytest.mark.parametrize("channels", CHANNELS)
def test_nothing_is_read_or_written_outside_the_tensors(channels):
    letters, n = ("ab", "bc", "ac"), 5
    # A margin of NaN around the factors, and of ones around the product.
    whole = [torch.full((n * n * channels + 64,), torch.nan) for _ in range(2)]
    x, y = (one[32:-32].view(1, n, n, channels).normal_() for one in whole)
    for one in (x, y):
        assert one.is_contiguous()
    assert kernel_product(letters, x, y, 1.0).isfinite().all()

    around = torch.ones(n * n * channels + 64)
    result = around[32:-32].view(1, n, n, channels)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(torch.Tensor, "new_empty", lambda self, shape: result)
        assert kernel_product(letters, x, y, 1.0) is result
    assert_close(result.double(), by_einsum(letters, x, y), atol=1e-5, rtol=1e-5)
    assert torch.equal(around[:32], torch.ones(32))
    assert torch.equal(around[-32:], torch.ones(32))


def test_results_do_not_depend_on_the_number_of_threads():
    letters, lengths = ("ab", "bc", "ac"), {"a": 41, "b": 70, "c": 30}
    x, y = drawn(letters, lengths, graphs=3, channels=20, dtype=torch.float32)
    found = []
    for n_threads in (1, 2, 5):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(torch, "get_num_threads", lambda n_threads=n_threads: n_threads)
            found.append(kernel_product(letters, x, y, 1.0))
    assert all(torch.equal(one, found[0]) for one in found)


def test_last_letters_of_all_tensors_are_treated_as_channels():
    prepared = products._prepare(("adc", "dbc", "abc"), (2, 3, 4), (3, 5, 4))
    assert prepared.n_folded == 4
    assert prepared.tables[:4].tolist() == [1, 2, 5, 3]  # none is shared any more
    assert products._prepare(("ab", "ab", "ab"), (2, 3), (2, 3)).n_folded == 6
    assert products._prepare(("ab", "ba", "ab"), (2, 3), (3, 2)).n_folded == 1


def test_tables_are_cached_by_letters_and_lengths():
    first = products._prepare(("ab", "bc", "ac"), (2, 3), (3, 5))
    assert products._prepare(("ab", "bc", "ac"), (2, 3), (3, 5)) is first
    with torch.inference_mode():
        inside = products._prepare(("ab", "bc", "ac"), (2, 4), (4, 5)).tables
    assert not inside.is_inference()


def test_kernels_do_not_run_in_half_precision_or_on_other_devices():
    assert can_call([torch.zeros(1)])
    assert can_call([torch.zeros(1, dtype=torch.float64)])
    assert not can_call([torch.zeros(1, dtype=torch.float16)])
    assert not can_call([torch.zeros(1, dtype=torch.bfloat16)])
    assert not can_call([torch.zeros(1, device="meta")])
