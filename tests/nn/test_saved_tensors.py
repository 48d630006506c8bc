"""Tensors saved for backward, caches, in-place changes of results, and memory of a layer."""

import copy
import gc
import pickle
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch
from torch import nn
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.utils.checkpoint import checkpoint

import bellnet as bn
from bellnet.kernels import kernels
from bellnet.tensors import Support
from bellnet.tensors.padded import is_zero_padded


def two_layers() -> tuple[bn.EquivariantLinear, bn.EquivariantLinear]:
    return bn.EquivariantLinear("n n -> n n", 2, 2), bn.EquivariantLinear("n n -> n n", 2, 2)


def nodes_of(tensor: torch.Tensor) -> list[object]:
    """Every node of the graph behind a tensor."""
    found, waiting = [], [tensor.grad_fn]
    while waiting:
        node = waiting.pop()
        if node is not None and node not in found:
            found.append(node)
            waiting += [parent for parent, _ in node.next_functions]
    return found


@pytest.mark.skipif(kernels() is None, reason="bellnet was built without kernels")
def test_activations_are_saved_by_autograd_alone():
    first, second = two_layers()
    y = second(first(bn.Padded(torch.randn(3, 4, 4, 2), torch.tensor([4, 2, 3])))).values
    runs = [node for node in nodes_of(y) if type(node).__name__ == "_RunBackward"]
    assert len(runs) == 2
    assert runs[0].layout.nodes is runs[1].layout.nodes  # what is known of the sizes is shared by all layers
    for run in runs:
        nodes = vars(run.layout.nodes)
        cached = [*vars(run).values(), *nodes.values(), *vars(run.backend).values()]
        cached = [list(value.values()) if isinstance(value, dict) else value for value in cached]
        cached = [one for value in cached for one in (value if isinstance(value, list) else [value])]
        shapes = {tuple(one.shape) for one in cached if isinstance(one, torch.Tensor)}
        # The numbers of nodes, masks of padding, and the factors of means: for every contraction, and for the
        # channels of all of them (diagonal, row and column of a node; diagonal and all of a graph).
        assert shapes == {(1, 3), (3, 4, 4, 1), (3, 1, 3, 1), (3, 2, 1), (3, (3 + 2) * 2)}
        assert any(one is not None and one.shape == (3, 4, 4, 2) for one in run.saved_tensors)
    y.sum().backward()
    with pytest.raises(RuntimeError, match="have already been freed"):
        _ = runs[0].saved_tensors


def test_checkpointing_gives_the_same_gradients():
    first, second = two_layers()
    x = torch.randn(3, 4, 4, 2, requires_grad=True)
    checkpoint(lambda x: second(first(x)), x, use_reentrant=False).sum().backward()
    torch.testing.assert_close(x.grad, torch.autograd.grad(second(first(x)).sum(), x)[0])


def test_all_saved_tensors_pass_through_their_hooks():
    layer = bn.EquivariantLinear("n n -> n n", 2, 3, dtype=torch.float64)
    x = torch.randn(2, 4, 4, 2, dtype=torch.float64, requires_grad=True)
    expected = torch.autograd.grad(layer(x).pow(2).sum(), [x, layer.weight])
    with torch.autograd.graph.saved_tensors_hooks(lambda tensor: tensor.clone(), lambda tensor: tensor):
        y = layer(x)
    loss = y.pow(2).sum()
    torch.testing.assert_close(torch.autograd.grad(loss, [x, layer.weight]), expected)


@pytest.mark.parametrize(
    "spec", ["n ->", "->", "n -> n", "n n -> n n", "n n -> n", "u i -> i u", "u i u -> i u", "-> n"]
)
def test_results_of_a_layer_may_be_changed_in_place(spec):
    layer = bn.EquivariantLinear(spec, 2, 3)
    sizes = dict.fromkeys(layer.spec.target_only, 4)
    x = torch.rand(5, *[4] * len(layer.spec.source), 2)
    changed = nn.ReLU(inplace=True)(layer(x, sizes=sizes))
    changed.sum().backward()
    assert torch.equal(changed, layer(x, sizes=sizes).relu())


def test_changed_padded_values_are_masked_again():
    torch.manual_seed(0)
    layer = bn.EquivariantLinear("n n -> n n", 2, 2)
    padded = layer(bn.Padded(torch.randn(2, 4, 4, 2), torch.tensor([4, 2])))
    moved = padded.values.detach() + 1
    expected = layer(bn.Padded(moved, torch.tensor([4, 2]))).values
    replaced = padded.with_values(padded.values.detach() + 1)
    assert torch.equal(layer(replaced).values, expected)
    with torch.no_grad():
        padded.values.add_(1)
    assert torch.equal(layer(padded).values, expected)
    packed = bn.Padded.pack([torch.zeros(3, 3, 2), torch.zeros(1, 1, 2)])
    packed.values.add_(1)
    assert torch.equal(layer(packed).values, layer(bn.Padded(torch.ones(2, 3, 3, 2), torch.tensor([3, 1]))).values)


def in_place(padded):
    padded.values.add_(1)


def in_place_through_detach(padded):
    padded.values.detach().add_(1)


def in_place_at_an_index(padded):
    padded[1:].values[0].add_(1)


def one_graph_in_place(padded):
    padded.unpack("n n")[0].detach().add_(1)
    padded.unpack("n n")
    padded.values[1].add_(1)


def sizes_in_place(padded):
    padded.sizes[0] = 2


def sizes_of_a_set_in_place(padded):
    padded.sizes_of("n")[0] = 2


CHANGES = [
    sizes_of_a_set_in_place,
    in_place,
    in_place_through_detach,
    in_place_at_an_index,
    one_graph_in_place,
    sizes_in_place,
]
COPIES = [lambda padded: padded, copy.copy, copy.deepcopy, lambda padded: pickle.loads(pickle.dumps(padded))]


@pytest.mark.parametrize("copied_first", [False, True])
@pytest.mark.parametrize("duplicate", COPIES, ids=["itself", "copy", "deepcopy", "pickle"])
@pytest.mark.parametrize("change", CHANGES)
def test_padding_is_masked_after_any_change_of_values(change, duplicate, copied_first):
    torch.manual_seed(0)
    layer = bn.EquivariantLinear("n n -> n n", 2, 2).requires_grad_(False)
    padded = layer(bn.Padded(torch.randn(3, 4, 4, 2), torch.tensor([4, 2, 0])))
    before = padded
    if copied_first:
        padded = duplicate(padded)
        change(padded)
    else:
        change(padded)
        padded = duplicate(padded)
    values, sizes = padded.values, padded.sizes
    expected = layer(bn.Padded(values.clone(), sizes.clone())).values
    assert torch.equal(layer(padded).values, expected)
    values, sizes = before.values, before.sizes
    assert torch.equal(layer(before).values, layer(bn.Padded(values.clone(), sizes.clone())).values)


def test_padding_is_not_masked_again_until_values_are_changed_in_place():
    graphs = bn.EquivariantLinear("n n -> n n", 2, 2)(bn.Padded(torch.randn(2, 4, 4, 2), torch.tensor([4, 2])))
    for unchanged in (graphs, graphs[:1], graphs.detach(), graphs.clone(), bn.cat([graphs, graphs])):
        assert is_zero_padded(unchanged, ("n", "n"))
        assert not is_zero_padded(unchanged, ("u", "i"))
    assert graphs.values.shape == (2, 4, 4, 2)
    assert graphs.sizes.tolist() == [4, 2]
    assert is_zero_padded(graphs, ("n", "n"))
    graphs.values.detach().mul_(2)
    assert not is_zero_padded(graphs, ("n", "n"))


ACTIVATIONS = [nn.ReLU, nn.LeakyReLU, nn.ELU, nn.GELU, nn.SiLU, nn.Tanh]


@pytest.mark.parametrize("make", ACTIVATIONS)
def test_activations_that_preserve_zeros_keep_padding_zero(make):
    graphs = bn.EquivariantLinear("n n -> n n", 2, 2)(bn.Padded(torch.randn(2, 4, 4, 2), torch.tensor([4, 2])))
    active = bn.Pointwise(make())(graphs)
    assert is_zero_padded(active, ("n", "n"))
    assert is_zero_padded(graphs, ("n", "n"))
    assert not active.values[1, 2:].any()


def watched():
    module = nn.ReLU()
    module.register_forward_hook(lambda module, args, result: None)
    return module


def with_another_forward():
    module = nn.ReLU()
    module.forward = lambda x: x + 1
    return module


OTHERS = {
    "sigmoid": nn.Sigmoid,
    "softplus": nn.Softplus,
    "identity": nn.Identity,
    "in place": lambda: nn.ReLU(inplace=True),
    "watched": watched,
    "another forward": with_another_forward,
    # Zero times what is infinite is not zero.
    "infinite slope": lambda: nn.LeakyReLU(float("inf")),
    "slope that is no number": lambda: nn.LeakyReLU(float("nan")),
    "infinite scale": lambda: nn.ELU(float("inf")),
}


@pytest.mark.parametrize("name", OTHERS)
def test_padding_is_masked_after_other_modules(name):
    graphs = bn.EquivariantLinear("n n -> n n", 2, 2)(bn.Padded(torch.randn(2, 4, 4, 2), torch.tensor([4, 2])))
    active = bn.Pointwise(OTHERS[name]())(graphs)
    assert not is_zero_padded(active, ("n", "n"))
    assert is_zero_padded(graphs, ("n", "n")) == (name != "in place")


def test_padded_values_of_an_inference_pass_can_be_used_again():
    layer = bn.EquivariantLinear("n n -> n n", 2, 2)
    with torch.inference_mode():
        cached = layer(bn.Padded(torch.randn(2, 4, 4, 2), torch.tensor([4, 2])))
        assert not layer(cached).values[1, 2:].any()


def test_a_target_set_of_one_size_for_all_graphs_is_not_padded():
    layer = bn.EquivariantLinear("u -> i", 2, 3)
    graphs = bn.Padded(torch.randn(2, 4, 2), torch.tensor([4, 1]))
    assert isinstance(layer(graphs, sizes={"i": 5}), torch.Tensor)
    assert isinstance(layer(graphs, sizes={"i": torch.tensor([5, 2])}), bn.Padded)


def test_vmap_runs_over_values_and_sizes():
    layer = bn.EquivariantLinear("n n -> n n", 2, 3)
    values, sizes = torch.randn(4, 3, 3, 2), torch.tensor([3, 1, 2, 0])
    found = torch.func.vmap(lambda value, size: layer(bn.Padded(value, size)).values)(values, sizes)
    torch.testing.assert_close(found, layer(bn.Padded(values, sizes)).values)


def test_fake_tensors_run_after_real_ones():
    bn.EquivariantLinear("n n n -> n", 2, 3)(torch.randn(4, 4, 4, 2))
    with FakeTensorMode():
        assert bn.EquivariantLinear("n n n -> n", 2, 3)(torch.empty(4, 4, 4, 2)).shape == (4, 3)


def test_a_device_argument_overrides_the_default_device():
    with torch.device("meta"):
        layer = bn.EquivariantLinear("n n -> n n", 2, 3, device="cpu")
    assert layer.weight.device.type == "cpu"
    assert layer.weight.any()


def test_pooled_means_of_half_precision_do_not_overflow():
    pooled = bn.InvariantPool("n n", reduce="mean")(torch.ones(300, 300, 1, dtype=torch.float16))
    assert pooled.tolist() == [1, 1]


def test_pooling_refuses_too_many_orbits():
    with pytest.raises(bn.errors.SpecError, match="maps; plans are built for up to"):
        bn.InvariantPool(" ".join("n" * 12))


def steps(layout):
    """A training step, on graphs that are used once."""
    layer, pool = bn.EquivariantLinear("n n -> n n", 2, 2), bn.InvariantPool("n n")

    def step(number):
        dense = torch.randn(2, 4, 4, 2)
        if layout == "padded":
            x = bn.Padded(dense, torch.tensor([4, number % 4]))
        elif layout == "sparse":
            x = bn.Sparse.from_dense(dense * (torch.rand(2, 4, 4, 1) < 0.5), "n n")
        else:
            x = dense
        torch.autograd.grad(pool(layer(x)).sum(), layer.weight)

    return step


@pytest.mark.parametrize("layout", ["dense", "padded", "sparse"])
def test_memory_does_not_grow_with_the_number_of_steps(layout):
    def found():
        gc.collect()
        return [one for one in gc.get_objects() if issubclass(type(one), torch.Tensor | Support)]

    others = found()  # of tests before this one; as long as they are held, none of them can go while steps are counted
    step, alive = steps(layout), []
    for number in range(40):
        step(number)
        if number in (9, 39):
            alive.append(len(found()) - len(others))
    assert alive[0] == alive[1]


def test_a_layer_runs_on_other_shapes_than_the_first():
    layer = bn.EquivariantLinear("n -> n m", 2, 2)
    fresh = copy.deepcopy(layer)
    x = torch.randn(3, 5, 2)
    for m, given in ((4, x), (6, x), (6, x.double()), (6, x[:2]), (6, x[:, :3]), (4, x)):
        layer, one = layer.to(given.dtype), copy.deepcopy(fresh).to(given.dtype)
        torch.testing.assert_close(layer(given, sizes={"m": m}), one(given, sizes={"m": m}))


@pytest.mark.parametrize("channels", [(2, 3), (3, 2)], ids=["widening", "narrowing"])
@pytest.mark.usefixtures("every_backend")
def test_later_calls_do_not_change_earlier_results(channels):
    layer = bn.EquivariantLinear("n n -> n n", *channels)
    x, sizes = torch.randn(2, 6, 6, channels[0]), torch.tensor([6, 4])

    def run(x):
        x = x.clone().requires_grad_()
        result = layer(bn.Padded(x, sizes)).values
        result.backward(torch.ones_like(result))
        return result.detach(), x.grad

    first = run(x)
    copies = [one.clone() for one in first]
    run(2 * x)
    for one, other in zip(first, copies, strict=True):
        assert torch.equal(one, other)


def test_threads_do_not_share_scratch_memory():
    layer = bn.EquivariantLinear("n n -> n n", 3, 2)
    inputs = [torch.randn(4, 40, 40, 3) for _ in range(8)]
    with torch.no_grad():
        expected = [layer(x) for x in inputs]

    def run(x):
        with torch.no_grad():
            return [layer(x) for _ in range(5)]

    with ThreadPoolExecutor(4) as threads:
        for several, one in zip(threads.map(run, inputs), expected, strict=True):
            assert all(torch.equal(result, one) for result in several)
