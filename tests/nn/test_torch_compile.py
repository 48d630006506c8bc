"""The layer under torch.compile: one graph without a break, one compilation for any number of nodes."""

import pytest
import torch
import torch._dynamo
import torch._dynamo.testing
from torch import Tensor

import bellnet as bn


class Compiled:
    """A module compiled by a backend that counts how often it was called."""

    def __init__(self, module: torch.nn.Module) -> None:
        torch._dynamo.reset()
        self.counter = torch._dynamo.testing.CompileCounterWithBackend("aot_eager")
        self.module = torch.compile(module, fullgraph=True, dynamic=True, backend=self.counter)

    def __call__(self, *arguments: object, **options: object):
        return self.module(*arguments, **options)

    @property
    def times(self) -> int:
        return self.counter.frame_count


def test_one_compilation_serves_any_number_of_nodes_forward_and_backward() -> None:
    layer = bn.EquivariantLinear("n n -> n n", 3, 4)
    compiled = Compiled(layer)
    for n in (5, 6, 11):
        x = torch.randn(2, n, n, 3, requires_grad=True)
        torch.testing.assert_close(compiled(x), layer(x))
        found = torch.autograd.grad(compiled(x).pow(2).sum(), [x, *layer.parameters()])
        expected = torch.autograd.grad(layer(x).pow(2).sum(), [x, *layer.parameters()])
        torch.testing.assert_close(found, expected, rtol=1e-3, atol=1e-3)
    assert compiled.times == 1


def test_one_compilation_serves_any_padding() -> None:
    layer = bn.EquivariantLinear("n n -> n n", 3, 4)
    compiled = Compiled(layer)
    for n in (5, 6, 9):
        graphs = bn.Padded(torch.randn(2, n, n, 3), torch.tensor([n, n - 2]))
        torch.testing.assert_close(compiled(graphs).values, layer(graphs).values)
    assert compiled.times == 1


def test_one_compilation_of_a_product_serves_any_number_of_nodes_and_any_padding() -> None:
    product = bn.Product("n n, n n -> n n", normalize="root")
    compiled = Compiled(product)
    for n in (5, 6, 9):
        x, y = torch.randn(2, n, n, 3, requires_grad=True), torch.randn(2, n, n, 3)
        torch.testing.assert_close(compiled(x, y), product(x, y))
        found, expected = (torch.autograd.grad(one(x, y).pow(2).sum(), x) for one in (compiled, product))
        torch.testing.assert_close(found, expected)
    assert compiled.times == 1
    compiled, times = Compiled(product), set()
    for n in (5, 6):
        graphs = bn.Padded(torch.randn(2, n, n, 3), torch.tensor([n, n - 2]))
        torch.testing.assert_close(compiled(graphs, graphs).values, product(graphs, graphs).values)
        times.add(compiled.times)
    assert len(times) == 1  # the second size needed no further compilation


OTHERS: list[tuple[torch.nn.Module, Tensor, dict[str, object]]] = [
    (
        bn.EquivariantLinear("n n -> n n", 3, 4, basis="orbit", normalize="sum", symmetric=True),
        torch.ones(2, 5, 5, 3),
        {},
    ),
    (bn.EquivariantLinear("n n n -> n n", 3, 2), torch.randn(2, 4, 4, 4, 3), {}),
    (bn.EquivariantLinear("u i -> i u", 3, 4), torch.randn(2, 4, 5, 3), {}),
    (bn.EquivariantLinear("u -> u i", 3, 4), torch.randn(2, 4, 3), {"sizes": {"i": 6}}),
    (bn.InvariantPool("n n"), torch.randn(2, 4, 4, 3), {}),
]


@pytest.mark.parametrize(("module", "x", "options"), OTHERS, ids=lambda value: getattr(value, "extra_repr", str)())
def test_other_modules_compile_without_a_graph_break(module, x: Tensor, options: dict[str, object]) -> None:
    torch.testing.assert_close(Compiled(module)(x, **options), module(x, **options))


@pytest.mark.slow
def test_the_default_backend_compiles_a_stack_and_trains_it() -> None:
    torch._dynamo.reset()
    stack = torch.nn.Sequential(
        bn.EquivariantLinear("n n -> n n", 2, 4), torch.nn.ReLU(), bn.EquivariantLinear("n n ->", 4, 1)
    )
    compiled = torch.compile(stack, fullgraph=True, dynamic=True)
    for n in (4, 7):
        x = torch.randn(2, n, n, 2)
        torch.testing.assert_close(compiled(x), stack(x), rtol=1e-4, atol=1e-4)
    compiled(x).sum().backward()
    assert all(parameter.grad is not None for parameter in stack.parameters())
