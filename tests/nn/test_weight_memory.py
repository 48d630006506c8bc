"""A weight that does not fit into memory is refused before any is allocated; on the meta device every weight fits."""

import pytest
import torch

from bellnet import EquivariantLinear, InvariantNet
from bellnet._utils import memory
from bellnet.errors import OptionError
from bellnet.nn import inputs


@pytest.fixture
def megabyte(monkeypatch):
    """A machine with a million bytes."""
    monkeypatch.setattr(inputs, "machine_memory", lambda: 1_000_000)


def test_a_weight_beyond_the_memory_of_the_machine_is_refused_with_its_bytes(megabyte):
    # 15 x 100 x 100 numbers of four bytes, and eight more each during initialization.
    with pytest.raises(OptionError) as caught:
        EquivariantLinear("n n -> n n", 100, 100)
    assert str(caught.value) == (
        'EquivariantLinear("n n -> n n", 100, 100): its weight of 15 x 100 x 100 numbers needs 1,800,000 bytes; '
        "this machine has 1,000,000.\nTake fewer channels, or a spec with fewer maps. "
        'On the meta device (device="meta") layers need no memory.'
    )


def test_weight_that_fits_is_created(megabyte):
    assert EquivariantLinear("n n -> n n", 50, 50).weight.numel() == 37_500


def test_float64_needs_more_memory(megabyte):
    EquivariantLinear("n n -> n n", 73, 73)
    with pytest.raises(OptionError, match="needs 1,278,960 bytes"):
        EquivariantLinear("n n -> n n", 73, 73, dtype=torch.float64)


def test_every_layer_fits_on_the_meta_device(megabyte):
    assert EquivariantLinear("n n -> n n", 10**6, 10**6, device="meta").weight.is_meta
    with torch.device("meta"):
        assert EquivariantLinear("n n -> n n", 10**6, 10**6).weight.is_meta


@pytest.mark.parametrize("channels", [(10**9, 10**9), (2**31 - 1, 2**31 - 1)])
def test_huge_weights_are_refused_on_every_machine(channels):
    with pytest.raises(OptionError, match=r"bytes; (this machine has|torch counts up to)"):
        EquivariantLinear("n n -> n n", *channels)


def test_refused_weight_is_not_allocated(megabyte, monkeypatch):
    sizes = []
    empty = torch.empty
    monkeypatch.setattr(torch, "empty", lambda *size, **options: sizes.append(size) or empty(*size, **options))
    with pytest.raises(OptionError):
        EquivariantLinear("n n -> n n", 1000, 1000)
    assert all(size == (0,) for size in sizes)


@pytest.fixture
def machine(monkeypatch):
    """Patches that are undone, and the cached memory of the machine dropped, after the test."""
    with monkeypatch.context() as patch:
        yield patch
    memory.machine_memory.cache_clear()


def _uncached_memory():
    memory.machine_memory.cache_clear()
    return memory.machine_memory()


def test_torch_sets_the_limit_where_the_memory_is_unknown(machine):
    def unknown(name):
        raise ValueError(name)

    machine.setattr("os.sysconf", unknown)
    machine.setattr(memory, "CONTAINER", ())
    assert _uncached_memory() is None
    with pytest.raises(OptionError, match=r"bytes; torch counts up to 9,223,372,036,854,775,807\."):
        EquivariantLinear("n n -> n n", 10**9, 10**9)


def test_container_limits_the_memory(machine, tmp_path):
    assert _uncached_memory() > 10**8
    machine.setattr(memory, "CONTAINER", ())
    whole = _uncached_memory()
    limit = tmp_path / "limit"
    machine.setattr(memory, "CONTAINER", (str(tmp_path / "none"), str(limit)))
    for text, expected in (("max\n", whole), (f"{2**63 - 1}\n", whole), ("1000000\n", 10**6)):
        limit.write_text(text)
        assert _uncached_memory() == expected
    with pytest.raises(OptionError, match=r"needs 1,800,000 bytes; this machine has 1,000,000"):
        EquivariantLinear("n n -> n n", 100, 100)


@pytest.mark.parametrize(
    ("make", "argument"),
    [
        (lambda: EquivariantLinear("n n -> n n", 2**31, 1), "in_channels"),
        (lambda: EquivariantLinear("n n -> n n", 1, 10**30), "out_channels"),
        (lambda: InvariantNet("n n", [1, 1], 1, hidden=[10**20]), r"hidden\[0\]"),
    ],
)
def test_numbers_of_channels_are_below_two_to_the_31(make, argument):
    with torch.device("meta"), pytest.raises(OptionError, match=rf"{argument} must be below 2\*\*31; it is larger\."):
        make()
