"""Large graphs a piece at a time."""

import pytest
import torch
from torch.testing import assert_close

from bellnet import EquivariantLinear
from bellnet.execute import pieces, scratch
from tests.execute.recording import Recording


def test_every_node_is_in_one_piece_and_repeated_axes_stay_whole(monkeypatch):
    monkeypatch.setattr(pieces, "PIECE_BYTES", 4 * 20 * 3)
    whole, row, column = torch.randn(1, 20, 20, 3), torch.randn(1, 20, 1, 3), torch.randn(1, 1, 20, 3)
    found = pieces.pieces(whole, row, column)
    assert len(found) == 10  # two nodes are forty rows, which eight divide; one is twenty
    assert torch.equal(torch.cat([one for one, _, _ in found], 1), whole)
    assert torch.equal(torch.cat([one for _, one, _ in found], 1), row)
    assert all(one is column for _, _, one in found)


def test_several_graphs_and_small_ones_are_left_as_they_are(monkeypatch):
    small, several = torch.randn(1, 5, 5, 2), torch.randn(2, 5, 5, 2)
    assert pieces.pieces(small, several) == ((small, several),)
    monkeypatch.setattr(pieces, "PIECE_BYTES", 1)
    assert pieces.pieces(several, small) == ((several, small),)


@pytest.mark.usefixtures("without_kernels")
@pytest.mark.parametrize("n", [92, 93, 94])
@pytest.mark.parametrize("channels", [(8, 8), (4, 16), (16, 4), (40, 16)], ids=str)
def test_pieces_of_narrow_and_wide_rows_give_what_the_whole_gives(channels, n, monkeypatch):
    """Of 92 nodes there are so many pairs that narrow products take several rows for one.

    Of 94 nodes a piece must have an even number for that, so only there can it be cut in the wrong place.
    """
    layer = EquivariantLinear("n n -> n n", *channels, dtype=torch.float64)
    x = torch.randn(n, n, channels[0], dtype=torch.float64, requires_grad=True)
    pulled = torch.randn(n, n, channels[1], dtype=torch.float64)
    runs = []
    for n_bytes in (2**40, 2**15):
        monkeypatch.setattr(pieces, "PIECE_BYTES", n_bytes)
        y = layer(x)
        runs.append((y, *torch.autograd.grad(y, (x, *layer.parameters()), pulled, retain_graph=True)))
        runs[-1] += torch.autograd.grad(y, layer.weight, pulled)
    for whole, cut in zip(*runs, strict=True):
        assert_close(cut, whole)


def test_nothing_but_the_result_is_as_large_as_a_large_graph(monkeypatch):
    monkeypatch.setattr(pieces, "PIECE_BYTES", 2**13)
    layer, x = EquivariantLinear("n n -> n n", 4, 4), torch.randn(1, 64, 64, 4, requires_grad=True)
    layer(x)  # constants are made in the first call
    scratch._ROOM.blocks.clear()
    with Recording() as forwards:
        y = layer(x)
    pulled = torch.randn_like(y)
    with Recording() as backwards:
        y.backward(pulled)
    for seen in (forwards, backwards):
        *others, largest = sorted(seen.allocated)
        assert largest == x.numel() > others[-1]
    assert 0 < max(len(block) for block in scratch._ROOM.blocks.values()) < x.nbytes  # turned rows stand there
