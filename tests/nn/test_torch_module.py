"""The layer as a torch module: copies, dtypes, devices, and torch's function transforms."""

import copy
import pickle

import pytest
import torch
from torch import Tensor
from torch.autograd import forward_ad
from torch.func import functional_call, grad, hessian, jacfwd, jacrev, jvp, vmap

import bellnet as bn


@pytest.fixture
def layer() -> bn.EquivariantLinear:
    torch.manual_seed(0)
    return with_random_bias(bn.EquivariantLinear("n n -> n n", 3, 4, dtype=torch.float64))


def with_random_bias(layer: bn.EquivariantLinear) -> bn.EquivariantLinear:
    assert layer.bias is not None
    torch.nn.init.normal_(layer.bias)
    return layer


def graphs(*shape: int, dtype: torch.dtype = torch.float64) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(1), dtype=dtype)


def test_repr_shows_the_options_and_the_number_of_maps() -> None:
    layer = bn.EquivariantLinear("n n->n n", 2, 3, bias=False, normalize="sum", basis="orbit", symmetric=True)
    expected = '("n n -> n n", 2, 3, bias=False, basis="orbit", normalize="sum", symmetric=True, n_maps=11)'
    assert repr(layer) == "EquivariantLinear" + expected
    assert repr(bn.EquivariantLinear("n ->", 1, 1)) == 'EquivariantLinear("n ->", 1, 1, n_maps=1)'


def test_the_state_dict_holds_the_weight_and_the_bias_and_nothing_else(layer: bn.EquivariantLinear) -> None:
    assert {name: tuple(value.shape) for name, value in layer.state_dict().items()} == {
        "weight": (15, 3, 4),
        "bias": (2, 4),
    }


def test_a_state_dict_loads_into_a_layer_of_another_dtype(layer: bn.EquivariantLinear) -> None:
    other = bn.EquivariantLinear("n n -> n n", 3, 4, dtype=torch.float32)
    other.load_state_dict(layer.state_dict())
    x = graphs(2, 5, 5, 3)
    torch.testing.assert_close(other(x.float()).double(), layer(x), rtol=1e-4, atol=1e-4)


def test_a_weight_means_the_same_in_training_and_evaluation(layer: bn.EquivariantLinear) -> None:
    x = graphs(5, 5, 3)
    assert torch.equal(layer.train()(x), layer.eval()(x))


@pytest.mark.parametrize("duplicate", [copy.deepcopy, copy.copy, lambda layer: pickle.loads(pickle.dumps(layer))])
def test_copies_and_pickles_compute_the_same_and_share_the_plan(duplicate, layer: bn.EquivariantLinear) -> None:
    other = duplicate(layer)
    x = graphs(5, 5, 3)
    assert torch.equal(other(x), layer(x))
    assert other.plan is layer.plan


def test_a_layer_on_the_meta_device_has_shapes_and_can_be_filled_later(layer: bn.EquivariantLinear) -> None:
    x = graphs(2, 5, 5, 3)
    with torch.device("meta"):
        empty = bn.EquivariantLinear("n n -> n n", 3, 4, dtype=torch.float64)
    assert empty(x.to("meta")).shape == (2, 5, 5, 4)
    assigned = copy.deepcopy(empty)
    assigned.load_state_dict(layer.state_dict(), assign=True)
    assert torch.equal(assigned(x), layer(x))
    filled = empty.to_empty(device="cpu")
    filled.load_state_dict(layer.state_dict())
    assert torch.equal(filled(x), layer(x))


def test_half_precision_agrees_with_double_to_its_own_precision(layer: bn.EquivariantLinear) -> None:
    x = graphs(2, 30, 30, 3)
    result = copy.deepcopy(layer).to(torch.float16)(x.to(torch.float16))
    assert result.dtype == torch.float16
    torch.testing.assert_close(result.double(), layer(x), rtol=1e-2, atol=1e-2)


def test_means_of_large_half_precision_numbers_do_not_overflow() -> None:
    layer = bn.EquivariantLinear("n n ->", 1, 1, dtype=torch.float16)
    torch.nn.init.ones_(layer.weight)
    x = torch.full((100, 100, 1), 20_000.0, dtype=torch.float16)
    assert layer(x).item() == 40_000.0


def test_a_pass_in_inference_mode_does_not_spoil_later_training() -> None:
    layer = bn.EquivariantLinear("n n n -> n", 2, 2)
    with torch.inference_mode():
        layer(torch.ones(3, 3, 3, 2))
    layer(torch.ones(3, 3, 3, 2)).sum().backward()
    assert layer.weight.grad is not None


def test_vmap_over_inputs_equals_a_batch_axis(layer: bn.EquivariantLinear) -> None:
    x = graphs(6, 2, 5, 5, 3)
    torch.testing.assert_close(vmap(layer)(x), layer(x))


def test_vmap_over_parameters_is_an_ensemble(layer: bn.EquivariantLinear) -> None:
    x = graphs(2, 5, 5, 3)
    several = {name: torch.stack([value, 2 * value]) for name, value in layer.named_parameters()}
    result = vmap(lambda parameters: functional_call(layer, parameters, (x,)))(several)
    torch.testing.assert_close(result, torch.stack([layer(x), 2 * layer(x)]))


def test_gradients_of_single_graphs_come_from_vmap_and_grad(layer: bn.EquivariantLinear) -> None:
    x = graphs(3, 4, 4, 3)

    def loss(parameters: dict[str, Tensor], graph: Tensor) -> Tensor:
        return functional_call(layer, parameters, (graph,)).pow(2).sum()

    found = vmap(grad(loss), in_dims=(None, 0))(dict(layer.named_parameters()), x)
    for number in range(3):
        layer.zero_grad()
        layer(x[number]).pow(2).sum().backward()
        assert layer.weight.grad is not None
        torch.testing.assert_close(found["weight"][number], layer.weight.grad)


def test_forward_and_reverse_mode_give_one_jacobian(layer: bn.EquivariantLinear) -> None:
    x = graphs(3, 3, 3)
    torch.testing.assert_close(jacfwd(layer)(x), jacrev(layer)(x))
    value, tangent = jvp(layer, (x,), (2 * x,))
    torch.testing.assert_close(tangent, 2 * (value - layer(torch.zeros_like(x))))


def test_dual_numbers_run_through_the_layer(layer: bn.EquivariantLinear) -> None:
    x, direction = graphs(3, 3, 3), torch.ones(3, 3, 3, dtype=torch.float64)
    with forward_ad.dual_level():
        tangent = forward_ad.unpack_dual(layer(forward_ad.make_dual(x, direction))).tangent
    torch.testing.assert_close(tangent, layer(direction) - layer(torch.zeros_like(x)))


def test_the_hessian_of_a_cubic_is_symmetric(layer: bn.EquivariantLinear) -> None:
    found = hessian(lambda x: layer(x).pow(3).sum())(graphs(2, 2, 3)).reshape(12, 12)
    torch.testing.assert_close(found, found.mT)
    assert found.abs().max() > 0


@pytest.mark.parametrize(("in_channels", "out_channels"), [(1, 2), (2, 1)])  # either side may be the narrower one
def test_double_backward_is_exact(in_channels: int, out_channels: int) -> None:
    torch.manual_seed(0)
    layer = bn.EquivariantLinear("n n -> n n", in_channels, out_channels, dtype=torch.float64)
    x = graphs(3, 3, in_channels).requires_grad_()

    def function(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        return functional_call(layer, {"weight": weight, "bias": bias}, (x,))

    assert torch.autograd.gradcheck(function, (x, layer.weight, layer.bias))
    assert torch.autograd.gradgradcheck(function, (x, layer.weight, layer.bias))


def test_batched_gradients_equal_single_ones(layer: bn.EquivariantLinear) -> None:
    x = graphs(3, 3, 3).requires_grad_()
    y = layer(x)
    directions = graphs(2, *y.shape)
    batched = torch.autograd.grad(y, x, directions, is_grads_batched=True, retain_graph=True)[0]
    singles = [torch.autograd.grad(y, x, direction, retain_graph=True)[0] for direction in directions]
    torch.testing.assert_close(batched, torch.stack(singles))


def test_frozen_parameters_get_no_gradient_and_the_input_still_does(layer: bn.EquivariantLinear) -> None:
    layer.requires_grad_(False)
    x = graphs(3, 3, 3).requires_grad_()
    layer(x).sum().backward()
    assert x.grad is not None
    assert layer.weight.grad is None


def test_export_keeps_the_number_of_nodes_open(layer: bn.EquivariantLinear) -> None:
    n = torch.export.Dim("n", min=2, max=100)
    exported = torch.export.export(layer, (graphs(2, 5, 5, 3),), dynamic_shapes=({1: n, 2: n},))
    x = graphs(2, 9, 9, 3)
    torch.testing.assert_close(exported.module()(x), layer(x))
