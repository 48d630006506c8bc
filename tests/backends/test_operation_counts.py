"""Work and memory of a layer: matrix products and new tensors, counted by a dispatch mode.

Kernels are invisible to a dispatch mode, so the layer falls back to plain torch operations while one is active.
"""

from collections import Counter
from math import factorial

import pytest
import torch

from bellnet import EquivariantLinear, Padded
from bellnet.backends import torch_backend
from tests.backends.recording import Recording

N, BATCH = 13, 2
SPECS = ["n n -> n n", "n n n -> n n n", "n n n -> n", "n -> n n n", "n n ->", "n n n -> n n"]
CHANNELS = {"equal": (2, 2), "widening": (2, 5), "narrowing": (5, 2)}
either_way = pytest.mark.parametrize("channels", CHANNELS.values(), ids=CHANNELS)


def _layer(spec, channels, **options):
    layer = EquivariantLinear(spec, *channels, **options)
    x = torch.randn(BATCH, *[N] * len(layer.spec.source), channels[0], requires_grad=True)
    layer(x)  # constants are made in the first call
    return layer, x


def _record(layer, x):
    """What happens forwards, what happens backwards, and the size of the larger of input and output."""
    with Recording() as forwards:
        y = layer(x)
    if isinstance(y, Padded):
        y = y.values
    gradient = torch.randn_like(y)
    with Recording() as backwards:
        y.backward(gradient)
    values = x.values if isinstance(x, Padded) else x
    return forwards, backwards, max(values.numel(), y.numel())


def test_recording_has_products_and_new_tensors_but_not_views():
    left, right = torch.ones(3, 2), torch.ones(2, 5)
    with Recording() as seen:
        product = left @ right
        product.mT[1:].add_(1)
        torch.addmm(product, left, right).sum()
    assert seen.products == [((3, 2), (2, 5))] * 2
    assert seen.allocated == [15, 15, 1]
    assert seen.most_bytes == 4 * 31


@either_way
@pytest.mark.parametrize("spec", SPECS)
def test_every_rank_takes_one_product_for_each_permutation(spec, channels):
    layer, x = _layer(spec, channels)
    forwards, backwards, _ = _record(layer, x)
    k, l = len(layer.spec.source), len(layer.spec.target)
    rows = Counter(left[0] for left, _ in forwards.products)
    assert rows == {BATCH * N**r: factorial(r) for r in range(min(k, l) + 1)}
    assert len(backwards.products) == 2 * len(forwards.products)


@pytest.mark.usefixtures("without_kernels")
@pytest.mark.parametrize(("needed", "few", "is_saved"), [(True, 2**16, True), (False, 2**16, False), (True, 0, False)])
def test_matrices_are_saved_if_small_and_needed_for_the_gradient(needed, few, is_saved, monkeypatch):
    monkeypatch.setattr(torch_backend, "FEW_VALUES", few)
    layer, x = _layer("n n -> n n", (30, 40))
    saved = []

    def pack(tensor):
        saved.append(tensor)
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        layer(x.detach().requires_grad_(needed)).sum().backward()
    assert sum(one.numel() == layer.weight.numel() for one in saved) == 1 + is_saved


@pytest.mark.usefixtures("without_kernels")
def test_permuted_axes_are_copied_once_for_all_permutations():
    def turned():
        return torch.randn(BATCH, N, N, 12, N).movedim(-1, 1)

    narrowing, widening = EquivariantLinear("n n n -> n n n", 12, 4), EquivariantLinear("n n n -> n n n", 4, 12)
    x, gradient = turned(), turned()
    narrowing(x)  # constants are made in the first call
    with Recording() as forwards:
        narrowing(x)
    y = widening(torch.randn(BATCH, N, N, N, 4, requires_grad=True))
    with Recording() as backwards:
        y.backward(gradient)
    for seen in (forwards, backwards):
        assert seen.allocated.count(x.numel()) == 1


@either_way
@pytest.mark.parametrize("spec", SPECS)
def test_no_tensor_is_larger_than_the_larger_of_input_and_output(spec, channels):
    """The constant is one: not even two tensors of full order are ever put side by side."""
    forwards, backwards, largest = _record(*_layer(spec, channels))
    assert max(forwards.allocated) <= largest
    assert max(backwards.allocated) <= largest


@pytest.mark.parametrize(
    "options", [{"basis": "orbit", "normalize": "sum"}, {"symmetric": True}, {"hollow": True}], ids=str
)
def test_no_option_makes_a_larger_tensor(options):
    forwards, backwards, largest = _record(*_layer("n n n -> n n n", (2, 2), **options))
    assert max(forwards.allocated) <= largest
    assert max(backwards.allocated) <= largest


@pytest.mark.parametrize("spec", SPECS)
def test_tensors_of_full_order_are_the_output_and_a_copy_for_each_permutation(spec):
    layer, x = _layer(spec, (2, 2))
    forwards, backwards, largest = _record(layer, x)
    k, l = len(layer.spec.source), len(layer.spec.target)
    n_full = [sum(size >= largest for size in recorded.allocated) for recorded in (forwards, backwards)]
    if k == l:
        assert n_full[0] <= factorial(k)
        assert n_full[1] <= 2 * factorial(k)
    else:
        assert n_full == [int(l > k), int(k > l)]


@pytest.mark.parametrize("spec", ["n n -> n n", "n n n -> n"])
def test_padding_adds_no_larger_tensor(spec):
    layer, x = _layer(spec, (2, 2))
    padded = Padded(x, torch.tensor([N, N - 3]))
    forwards, backwards, largest = _record(layer, padded)
    assert max(forwards.allocated) <= largest
    assert max(backwards.allocated) <= largest


def test_peak_memory_is_at_most_the_cost_of_the_plan():
    beyond = {}
    for spec in SPECS:
        for name, channels in CHANNELS.items():
            layer, x = _layer(spec, channels)
            forwards, _, _ = _record(layer, x)
            cost = layer.plan.cost(N, *channels, batch=BATCH)
            weights = 3 * sum(parameter.nbytes for parameter in layer.parameters())
            held = forwards.most_bytes - cost.output_bytes - weights
            if held > cost.extra_bytes:
                beyond[spec, name] = f"{held} bytes instead of {cost.extra_bytes}"
    assert not beyond
