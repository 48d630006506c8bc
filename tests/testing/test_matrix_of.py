import pytest
import torch

from bellnet import EquivariantLinear, Spec, testing


@pytest.mark.parametrize(
    ("spec", "sizes", "source", "target"),
    [
        ("n n -> n", 3, (3, 3), (3,)),
        ("u i -> u", {"u": 2, "i": 3}, (2, 3), (2,)),
        ("n ->", 4, (4,), ()),
        (Spec(("u",), ("u", "v")), {"u": 2, "v": 3}, (2,), (2, 3)),
        ("-> n", 3, (), (3,)),
    ],
)
def test_the_matrix_times_the_entries_is_the_linear_part_of_the_module(spec, sizes, source, target):
    layer = EquivariantLinear(spec, 2, 3, dtype=torch.float64)
    torch.nn.init.normal_(layer.bias)
    x = torch.randn(*source, 2, dtype=torch.float64)
    options = {"sizes": {"n": 3}} if spec == "-> n" else {"sizes": {"v": 3}} if not isinstance(spec, str) else {}
    matrix = testing.matrix_of(layer, spec, sizes, in_channels=2)
    expected = layer(x, **options) - layer(torch.zeros_like(x), **options)
    torch.testing.assert_close((matrix @ x.flatten()).reshape(*target, 3), expected)


def test_no_nodes_give_an_empty_matrix():
    assert testing.matrix_of(EquivariantLinear("n -> n", 1, 1, dtype=torch.float64), "n -> n", 0).shape == (0, 0)
    assert testing.matrix_of(EquivariantLinear("n ->", 1, 1, dtype=torch.float64), "n ->", 0).shape == (1, 0)
