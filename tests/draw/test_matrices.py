"""The matrices on the picture of a basis are those of the reference and of layers."""

import numpy as np
import pytest
import torch

from bellnet import EquivariantLinear, plan
from bellnet.backends.reference import basis_tensors, bias_tensors
from bellnet.draw import draw_basis
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
def test_the_drawn_matrices_are_those_of_the_reference(spec, basis):
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
def test_every_drawn_map_is_the_matrix_of_a_layer(spec, sizes, basis):
    layer = EquivariantLinear(spec, 1, 1, basis=basis, normalize="sum", bias=False, dtype=torch.float64)
    matrices = drawn(draw_basis(spec, sizes, basis=basis))
    for number in range(layer.plan.n_maps):
        with torch.no_grad():
            layer.weight.zero_()
            layer.weight[number] = 1
        assert np.allclose(matrices[number], matrix_of(layer, spec, sizes).detach().numpy())


@pytest.mark.parametrize("basis", ["orbit", "diagram"])
def test_every_drawn_bias_is_that_of_a_layer(basis):
    layer = EquivariantLinear("n n -> n n", 1, 1, basis=basis, normalize="sum", dtype=torch.float64)
    matrices = drawn(draw_basis("n n -> n n", 4, basis=basis))[layer.plan.n_maps :]
    for number, matrix in enumerate(matrices):
        with torch.no_grad():
            layer.bias.zero_()
            layer.bias[number] = 1
        assert np.allclose(matrix, layer(torch.zeros(4, 4, 1, dtype=torch.float64)).squeeze(-1).detach().numpy())


def test_the_drawn_orbits_fill_every_cell_once():
    matrices = drawn(draw_basis("n n -> n n"))
    assert np.array_equal(sum(matrices[:15]), np.ones((25, 25)))
    assert np.array_equal(sum(matrices[15:]), np.ones((5, 5)))


@pytest.mark.parametrize("spec", SPECS)
def test_biases_are_on_the_right_in_another_colour(spec):
    figure = draw_basis(spec, 2)
    maps, biases = figure.axes[: plan(spec).n_maps], figure.axes[plan(spec).n_maps :]
    assert max(axes.get_position().x1 for axes in maps) < min(axes.get_position().x0 for axes in biases)
    colors = {axes.images[0].get_cmap()(1.0) for axes in maps}, {axes.images[0].get_cmap()(1.0) for axes in biases}
    assert len(colors[0]) == len(colors[1]) == 1
    assert colors[0] != colors[1]
