import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from bellnet import testing
from bellnet.testing import strategies
from bellnet.testing.equivariance import draw_permutations


def test_entries_of_node_i_move_to_node_p_of_i():
    x, p = torch.randn(4, 4, 4, 2), [2, 0, 3, 1]
    y = testing.permute_nodes(x, "n n n", p)
    for i, j, k in [(0, 1, 2), (3, 3, 0), (2, 2, 2)]:
        assert torch.equal(y[p[i], p[j], p[k]], x[i, j, k])


def test_batch_axes_and_channels_are_not_permuted():
    x = torch.randn(3, 2, 4, 5)
    y = testing.permute_nodes(x, "n", [3, 2, 1, 0])
    assert torch.equal(y, x.flip(2))


def test_each_node_set_has_its_own_permutation():
    x = torch.randn(2, 3, 3, 1)
    y = testing.permute_nodes(x, ("u", "i", "i"), {"u": [1, 0], "i": torch.tensor([1, 2, 0])})
    assert y[1, 1, 0, 0] == x[0, 0, 2, 0]


def test_a_node_set_without_a_permutation_is_not_permuted():
    x = torch.randn(2, 3, 1)
    assert torch.equal(testing.permute_nodes(x, "u i", {"i": [2, 1, 0]}), x.flip(1))
    assert torch.equal(testing.permute_nodes(x, "u i", {}), x)


@given(st.data(), strategies.sizes("u i"))
def test_two_permutations_are_their_product(data, sizes):
    x = data.draw(strategies.tensors("u i u", sizes, channels=2, batch=(2,)))
    p, q = data.draw(strategies.permutations(sizes)), data.draw(strategies.permutations(sizes))
    product = {name: [q[name][node] for node in p[name]] for name in sizes}
    twice = testing.permute_nodes(testing.permute_nodes(x, "u i u", p), "u i u", q)
    assert torch.equal(twice, testing.permute_nodes(x, "u i u", product))


def test_permute_nodes_is_differentiable():
    x = torch.randn(3, 1, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda x: testing.permute_nodes(x, "n", [1, 2, 0]), x)


@pytest.mark.parametrize("size", [2, 3, 5, 6])
def test_the_first_two_drawn_permutations_generate_all(size):
    for seed in range(20):
        cycle = draw_permutations({"n": size}, 0, torch.Generator().manual_seed(seed))["n"].tolist()
        visited, node = [], 0
        while node not in visited:
            visited.append(node)
            node = cycle[node]
        assert len(visited) == size
        exchange = draw_permutations({"n": size}, 1, torch.Generator().manual_seed(seed))["n"].tolist()
        moved = [node for node in range(size) if exchange[node] != node]
        # An exchange of neighbours on a cycle and the cycle itself generate all permutations.
        assert len(moved) == 2
        assert cycle[moved[0]] == moved[1] or cycle[moved[1]] == moved[0]


@pytest.mark.parametrize("trial", [0, 1, 2, 3])
def test_a_drawn_permutation_of_two_or_more_nodes_is_not_the_identity(trial):
    for seed in range(30):
        drawn = draw_permutations({"u": 2, "i": 3, "v": 1}, trial, torch.Generator().manual_seed(seed))
        assert drawn["u"].tolist() == [1, 0]
        assert sorted(drawn["i"].tolist()) == [0, 1, 2] != drawn["i"].tolist()
        assert drawn["v"].tolist() == [0]
