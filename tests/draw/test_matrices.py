"""The picture of a basis shows the basis: every matrix is the one that the layer multiplies by."""

import numpy as np
import pytest
import torch

from bellnet import EquivariantLinear, plan
from bellnet.backends.reference import basis_tensors, bias_tensors
from bellnet.draw import draw_basis
from bellnet.errors import OptionError, SizesError, SpecError
from bellnet.testing import matrix_of

SPECS = ["n n -> n n", "n n -> n", "n -> n n", "n n n -> n", "u i -> u i", "u u i -> u", "-> n n", "n n ->", "->"]


def drawn(figure):
    return [np.asarray(axes.images[0].get_array()) for axes in figure.axes]


def titles(figure):
    return [axes.get_title(loc="left") for axes in figure.axes]


def texts(figure):
    return "\n".join(text.get_text() for text in figure.texts)


def test_figure_1_has_fifteen_maps_and_two_biases():
    figure = draw_basis("n n -> n n")
    assert [matrix.shape for matrix in drawn(figure)] == [(25, 25)] * 15 + [(5, 5)] * 2
    assert "15 maps" in texts(figure)
    assert "2 biases" in texts(figure)
    assert "orbit basis, n = 5" in texts(figure)


@pytest.mark.parametrize("spec", SPECS)
def test_panels_are_titled_by_diagrams_in_canonical_order_then_by_biases(spec):
    the_plan = plan(spec)
    biases = [diagram.name for diagram in plan(f"-> {' '.join(the_plan.spec.target)}").diagrams]
    assert titles(draw_basis(spec, 2)) == [diagram.name for diagram in the_plan.diagrams] + biases


@pytest.mark.parametrize("basis", ["orbit", "diagram"])
@pytest.mark.parametrize("spec", SPECS)
def test_the_drawn_matrices_are_those_of_the_oracle(spec, basis):
    the_plan = plan(spec)
    sizes = dict(zip(the_plan.spec.node_sets, (3, 2), strict=False))
    matrices = drawn(draw_basis(spec, sizes, basis=basis))
    maps, biases = basis_tensors(the_plan, sizes, basis=basis), bias_tensors(the_plan, sizes, basis=basis)
    for number, tensor in enumerate(maps):
        # Row by row in the order of the output, column by column in that of the input.
        assert np.array_equal(matrices[number].T.ravel(), tensor.flatten().numpy())
    for number, tensor in enumerate(biases, the_plan.n_maps):
        assert np.array_equal(matrices[number].ravel(), tensor.flatten().numpy())


@pytest.mark.parametrize("basis", ["orbit", "diagram"])
@pytest.mark.parametrize(("spec", "sizes"), [("n n -> n n", {"n": 4}), ("u i -> u", {"u": 3, "i": 2})])
def test_every_drawn_map_is_what_its_weight_does_in_a_layer(spec, sizes, basis):
    layer = EquivariantLinear(spec, 1, 1, basis=basis, normalize="sum", bias=False, dtype=torch.float64)
    matrices = drawn(draw_basis(spec, sizes, basis=basis))
    for number in range(layer.plan.n_maps):
        with torch.no_grad():
            layer.weight.zero_()
            layer.weight[number] = 1
        assert np.allclose(matrices[number], matrix_of(layer, spec, sizes).detach().numpy())


@pytest.mark.parametrize("basis", ["orbit", "diagram"])
def test_every_drawn_bias_is_what_it_adds_in_a_layer(basis):
    layer = EquivariantLinear("n n -> n n", 1, 1, basis=basis, normalize="sum", dtype=torch.float64)
    matrices = drawn(draw_basis("n n -> n n", 4, basis=basis))[layer.plan.n_maps :]
    for number, matrix in enumerate(matrices):
        with torch.no_grad():
            layer.bias.zero_()
            layer.bias[number] = 1
        assert np.allclose(matrix, layer(torch.zeros(4, 4, 1, dtype=torch.float64)).squeeze(-1).detach().numpy())


def test_the_orbits_of_a_picture_fill_every_cell_once():
    matrices = drawn(draw_basis("n n -> n n"))
    assert np.array_equal(sum(matrices[:15]), np.ones((25, 25)))
    assert np.array_equal(sum(matrices[15:]), np.ones((5, 5)))


@pytest.mark.parametrize("spec", SPECS)
def test_biases_stand_apart_to_the_right_and_have_another_colour(spec):
    figure = draw_basis(spec, 2)
    maps, biases = figure.axes[: plan(spec).n_maps], figure.axes[plan(spec).n_maps :]
    assert max(axes.get_position().x1 for axes in maps) < min(axes.get_position().x0 for axes in biases)
    colors = {axes.images[0].get_cmap()(1.0) for axes in maps}, {axes.images[0].get_cmap()(1.0) for axes in biases}
    assert len(colors[0]) == len(colors[1]) == 1
    assert colors[0] != colors[1]


def test_too_many_maps_are_refused():
    with pytest.raises(OptionError) as refusal:
        draw_basis("n n n -> n n n", 2)
    assert str(refusal.value) == (
        'draw_basis("n n n -> n n n"): there are 203 maps; a picture shows up to 60.\n'
        "Lower the order, or use draw_diagrams, which has room for more."
    )


@pytest.mark.parametrize(
    ("spec", "n", "message"),
    [
        ("n n -> n", 13, "the matrices would have 169 columns; a picture shows up to 150."),
        ("u -> u i", {"u": 20, "i": 8}, "the matrices would have 160 rows; a picture shows up to 150."),
    ],
)
def test_too_large_matrices_are_refused(spec, n, message):
    with pytest.raises(OptionError) as refusal:
        draw_basis(spec, n)
    assert str(refusal.value) == (
        f'draw_basis("{spec}"): {message}\nPass a smaller n: with as many nodes as slots, every map is there to see.'
    )


@pytest.mark.parametrize(
    ("spec", "n", "message"),
    [
        (
            "u i -> u",
            {"u": 3},
            "n has no entry for node set 'i'.\nPass one number for all, or a dict such as {'u': 10, 'i': 10}.",
        ),
        ("n -> n", {"n": 3, "m": 2}, "n has an entry for 'm', but the node sets are 'n'."),
        ("n -> n", 0, "n must be an integer from 1 up, not 0."),
        ("n -> n", 2.5, "n must be an integer from 1 up, not 2.5."),
        ("n -> n", True, "n must be an integer from 1 up, not True."),
    ],
)
def test_invalid_sizes_raise_an_error_that_names_them(spec, n, message):
    with pytest.raises(SizesError) as refusal:
        draw_basis(spec, n)
    assert str(refusal.value) == f'draw_basis("{spec}"): {message}'


def test_an_unknown_basis_and_an_unreadable_spec_are_refused():
    with pytest.raises(OptionError, match="basis must be one of 'orbit', 'diagram', not 'fourier'"):
        draw_basis("n -> n", basis="fourier")
    with pytest.raises(SpecError, match="arrow"):
        draw_basis("n n")
