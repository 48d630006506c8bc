"""Tracing of layers records all operations and leaves no traced tensors in caches."""

import subprocess
import sys

import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx.experimental.proxy_tensor import make_fx

import bellnet as bn
from bellnet.errors import TensorError

SPECS = ["n n -> n n", "n n ->", "n n n -> n", "u i -> i u", "-> n n"]


def call(spec, **options):
    layer = bn.EquivariantLinear(spec, 2, 3, dtype=torch.float64, **options)
    sizes = dict.fromkeys(layer.spec.target_only, 4)
    x = torch.randn(5, *[4] * len(layer.spec.source), 2, dtype=torch.float64)
    return layer, (lambda x: layer(x, sizes=sizes)), x


@pytest.fixture(autouse=True)
def _nothing_kept():
    """Every test begins as a process does: no constant was made before."""
    from bellnet.backends import level_matrices

    level_matrices._CONSTANTS.clear()
    yield
    level_matrices._CONSTANTS.clear()


@pytest.mark.parametrize("options", [{}, {"basis": "orbit", "normalize": "sum"}, {"symmetric": True}])
@pytest.mark.parametrize("mode", ["real", "fake", "symbolic"])
def test_a_layer_that_was_traced_by_make_fx_computes_as_before(mode, options):
    layer, function, x = call("n n -> n n", **options)
    graph = make_fx(function, tracing_mode=mode, _allow_non_fake_inputs=True)(x)
    found = function(x)
    assert type(found) is torch.Tensor
    torch.testing.assert_close(graph(x), found)
    assert type(torch.autograd.grad(found.sum(), layer.weight)[0]) is torch.Tensor


@pytest.mark.parametrize("spec", SPECS)
def test_a_call_under_a_fake_mode_leaves_nothing_behind(spec):
    _, function, x = call(spec)
    with FakeTensorMode(allow_non_fake_inputs=True) as mode:
        faked = function(mode.from_tensor(x))
        assert faked.shape == function(mode.from_tensor(x)).shape
    found = function(x)
    assert type(found) is torch.Tensor
    assert found.shape == faked.shape


def test_a_call_on_a_sparse_tensor_under_a_fake_mode_leaves_nothing_behind():
    layer = bn.EquivariantLinear("n n -> n n", 2, 3)
    sparse = bn.Sparse(torch.tensor([[0, 1, 2], [1, 0, 0]]), torch.randn(3, 2), sizes=3)
    with FakeTensorMode(allow_non_fake_inputs=True) as mode:
        layer(sparse.with_values(mode.from_tensor(sparse.values)))
    found = layer(sparse)
    assert type(found.values) is torch.Tensor
    fresh = bn.Sparse(torch.tensor([[0, 1, 2], [1, 0, 0]]), sparse.values, sizes=3)
    assert torch.equal(found.values, layer(fresh).values)


@pytest.mark.parametrize("spec", SPECS)
def test_functionalized_layers_leave_nothing_behind(spec):
    _, function, x = call(spec)
    functional = torch.func.functionalize(function)(x)
    torch.testing.assert_close(functional, function(x))


@pytest.mark.filterwarnings("ignore:Attempted to insert a get_attr Node:UserWarning")  # torch's own
@pytest.mark.parametrize("spec", SPECS)
def test_a_linearized_layer_is_its_derivative(spec):
    _, function, x = call(spec)
    along = torch.randn_like(x)
    value, derivative = torch.func.linearize(function, x)
    torch.testing.assert_close(value, function(x))
    torch.testing.assert_close(derivative(along), torch.func.jvp(function, (x,), (along,))[1])


@pytest.mark.filterwarnings("ignore:.torch.jit.trace:DeprecationWarning")
@pytest.mark.parametrize("make", [lambda: bn.EquivariantLinear("n n -> n n", 2, 3), lambda: bn.InvariantPool("n n")])
def test_torch_jit_trace_is_refused_because_it_would_fix_the_number_of_nodes(make):
    with pytest.raises(TensorError) as caught:
        torch.jit.trace(make(), torch.randn(4, 4, 2))
    assert "cannot be traced by torch.jit.trace" in str(caught.value)
    assert "torch.export.export" in str(caught.value)


SCRIPTED = {
    "EquivariantLinear": lambda: bn.EquivariantLinear("n n -> n n", 2, 3),
    "InvariantPool": lambda: bn.InvariantPool("n n"),
    "EntryNorm": lambda: bn.EntryNorm(2, "n n"),
    "Pointwise": lambda: bn.Pointwise(torch.nn.ReLU()),
    "ChannelDropout": lambda: bn.ChannelDropout(0.5, "n n"),
}


@pytest.mark.filterwarnings("ignore:.torch.jit.script:DeprecationWarning")
@pytest.mark.parametrize("inside", [False, True], ids=["alone", "inside another"])
@pytest.mark.parametrize("name", SCRIPTED)
def test_torch_jit_script_is_refused_with_what_works_instead(name, inside):
    module = SCRIPTED[name]()
    with pytest.raises(TensorError) as caught:
        torch.jit.script(torch.nn.Sequential(torch.nn.ReLU(), module) if inside else module)
    assert str(caught.value) == (
        f"{name} cannot be compiled by torch.jit.script, which reads source code and knows tensors alone.\n"
        "Use torch.export.export(module, (x,), dynamic_shapes=...), or torch.compile(module)."
    )


@pytest.mark.filterwarnings("ignore:.torch.jit.script:DeprecationWarning")
@pytest.mark.parametrize("net", [bn.InvariantNet("n n", [2, 3], 2), bn.EquivariantNet("n n -> n", [2, 3, 1])])
def test_a_network_that_cannot_be_scripted_is_left_as_it_was(net):
    x = torch.randn(4, 4, 2)
    before = net(x)
    with pytest.raises(TensorError, match=r"EquivariantLinear cannot be compiled by torch\.jit\.script"):
        torch.jit.script(net)
    assert torch.equal(net(x), before)


@pytest.mark.parametrize("name", SCRIPTED)
def test_export_as_the_error_advises_keeps_the_number_of_nodes_open(name):
    module = SCRIPTED[name]().eval()
    n = torch.export.Dim("n", min=2, max=100)
    exported = torch.export.export(module, (torch.randn(3, 5, 5, 2),), dynamic_shapes=({1: n, 2: n},)).module()
    x = torch.randn(3, 7, 7, 2)
    torch.testing.assert_close(exported(x), module(x))


def test_the_first_call_of_a_process_may_be_a_trace():
    code = (
        "import torch, bellnet as bn\n"
        "from torch.fx.experimental.proxy_tensor import make_fx\n"
        "layer, x = bn.EquivariantLinear('n n -> n n', 2, 3), torch.randn(4, 4, 2)\n"
        "make_fx(layer, tracing_mode='fake', _allow_non_fake_inputs=True)(x)\n"
        "print(type(layer(x)) is torch.Tensor)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stdout == "True\n", done.stderr


def padded(values):
    return bn.Padded(values, torch.tensor([4, 2, 0, 1, 3]))


LISTED = bn.Sparse(torch.tensor([[0, 1, 2, 3], [1, 0, 0, 3]]), torch.zeros(4, 2, dtype=torch.float64), sizes=4)
MODULES = {
    "layer": lambda: bn.EquivariantLinear("n n -> n n", 2, 3, dtype=torch.float64),
    "pool": lambda: bn.InvariantPool("n n"),
    "norm": lambda: bn.EntryNorm(2, "n n", over="graph").double(),
    "net": lambda: bn.InvariantNet("n n", [2, 3, 3], 2).double(),
}
LAYOUTS = {
    "padded": (padded, torch.randn(5, 4, 4, 2, dtype=torch.float64)),
    "sparse": (LISTED.with_values, torch.randn(4, 2, dtype=torch.float64)),
}
TRANSFORMS = {
    "functionalize": lambda function, x: torch.func.functionalize(function)(x),
    "make_fx": lambda function, x: make_fx(function, _allow_non_fake_inputs=True)(x)(x),
    "linearize": lambda function, x: torch.func.linearize(function, x)[0],
    "jvp": lambda function, x: torch.func.jvp(function, (x,), (torch.ones_like(x),))[0],
}


@pytest.mark.filterwarnings("ignore:Attempted to insert a get_attr Node:UserWarning")  # torch's own
@pytest.mark.parametrize("transform", TRANSFORMS)
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("name", MODULES)
def test_transforms_of_padded_and_sparse_tensors_leave_nothing_behind(name, layout, transform):
    torch.manual_seed(0)
    module, (wrap, x) = MODULES[name](), LAYOUTS[layout]

    def function(values):
        result = module(wrap(values))
        return result if torch.is_tensor(result) else result.values

    found = TRANSFORMS[transform](function, x)
    expected = function(x.clone().requires_grad_())
    torch.testing.assert_close(found, expected)
    expected.sum().backward()
