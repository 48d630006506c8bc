"""A weight that would not fit into memory is refused before any is taken; on the meta device all are made."""

import pytest
import torch

from bellnet import EquivariantLinear
from bellnet.errors import OptionError
from bellnet.nn import room


@pytest.fixture
def megabyte(monkeypatch):
    """A machine with a million bytes."""
    monkeypatch.setattr(room, "machine_memory", lambda: 1_000_000)


def test_a_weight_beyond_the_memory_of_the_machine_is_refused_with_its_bytes(megabyte):
    # 15 x 100 x 100 numbers: four bytes each to keep, and eight while they are drawn.
    with pytest.raises(OptionError) as caught:
        EquivariantLinear("n n -> n n", 100, 100)
    assert str(caught.value) == (
        'EquivariantLinear("n n -> n n", 100, 100): its weight of 15 x 100 x 100 numbers would take 1,800,000 bytes '
        "to make.\n"
        "This machine has 1,000,000. Take fewer channels, or a spec with fewer maps. "
        'On the meta device (device="meta") a layer takes no memory.'
    )


def test_what_fits_is_made(megabyte):
    assert EquivariantLinear("n n -> n n", 50, 50).weight.numel() == 37_500


def test_wider_numbers_take_more(megabyte):
    EquivariantLinear("n n -> n n", 73, 73)
    with pytest.raises(OptionError, match="would take 1,278,960 bytes"):
        EquivariantLinear("n n -> n n", 73, 73, dtype=torch.float64)


def test_on_the_meta_device_every_layer_fits(megabyte):
    assert EquivariantLinear("n n -> n n", 10**6, 10**6, device="meta").weight.is_meta
    with torch.device("meta"):
        assert EquivariantLinear("n n -> n n", 10**6, 10**6).weight.is_meta


@pytest.mark.parametrize("channels", [(10**9, 10**9), (10**15, 1), (1, 10**30)])
def test_no_machine_has_room_for_so_many_channels(channels):
    with pytest.raises(OptionError, match=r"bytes to make\.\n(This machine has|Torch counts up to)"):
        EquivariantLinear("n n -> n n", *channels)


def test_nothing_is_allocated_for_a_weight_that_is_refused(megabyte, monkeypatch):
    sizes = []
    empty = torch.empty
    monkeypatch.setattr(torch, "empty", lambda *size, **options: sizes.append(size) or empty(*size, **options))
    with pytest.raises(OptionError):
        EquivariantLinear("n n -> n n", 1000, 1000)
    assert all(size == (0,) for size in sizes)


def test_where_the_system_does_not_say_its_memory_torch_alone_sets_the_bound(monkeypatch):
    def unknown(name):
        raise ValueError(name)

    monkeypatch.setattr("os.sysconf", unknown)
    assert room.machine_memory() == 2**63 - 1


def test_this_machine_has_memory():
    assert room.machine_memory() > 2**20
