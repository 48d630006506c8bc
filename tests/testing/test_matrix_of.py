import pytest
import torch

from bellnet import EquivariantLinear, Spec, errors, testing


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


def test_the_matrix_of_several_tensors_has_the_entries_of_one_after_the_other():
    layer = EquivariantLinear("u i, u, -> u i, i", (2, 1, 3), (1, 2), dtype=torch.float64)
    sizes, sources = {"u": 2, "i": 3}, [(2, 3, 2), (2, 1), (3,)]
    matrix = testing.matrix_of(layer, layer.spec, sizes, in_channels=(2, 1, 3))
    x = tuple(torch.randn(shape, dtype=torch.float64) for shape in sources)
    found = layer(x)
    torch.testing.assert_close(
        matrix @ torch.cat([one.flatten() for one in x]), torch.cat([one.flatten() for one in found])
    )
    assert matrix.shape == (6 + 6, 12 + 2 + 3)
    assert torch.equal(testing.matrix_of(lambda x: x[1], "n n, n -> n", 2)[:, 4:], torch.eye(2, dtype=torch.float64))


def test_a_wrong_number_of_channels_is_an_error():
    with pytest.raises(errors.OptionError) as refusal:
        testing.matrix_of(lambda x: x, "n n, n -> n", 2, in_channels=(1, 2, 3))
    assert str(refusal.value) == (
        'matrix_of(module, "n n, n -> n"): in_channels must be 2 numbers, one for each tensor, or one for all, not '
        "(1, 2, 3)."
    )


def test_no_nodes_give_an_empty_matrix():
    assert testing.matrix_of(EquivariantLinear("n -> n", 1, 1, dtype=torch.float64), "n -> n", 0).shape == (0, 0)
    assert testing.matrix_of(EquivariantLinear("n ->", 1, 1, dtype=torch.float64), "n ->", 0).shape == (1, 0)
