"""Layers between several tensors, against one layer for each pair of them added up."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial

import torch
from torch import Tensor, nn

from bellnet import EquivariantLinear, Spec, plan
from benchmarks.races import Effort, Section, raced

EDGES = "n n, n -> n n, n"
WEIGHTS = "a b, b, b c, c -> a b, b, b c, c"
SIZES = {EDGES: {"n": 40}, WEIGHTS: {"a": 10, "b": 32, "c": 5}}
QUICK_SIZES = {EDGES: {"n": 6}, WEIGHTS: {"a": 3, "b": 4, "c": 2}}
CHANNELS = {EDGES: (16, 32), WEIGHTS: (16, 16)}
BATCH = {EDGES: 32, WEIGHTS: 64}
TOGETHER, PAIRS, FIRST = "together", "pairs", "first"
LEGEND = """\
together one layer between all tensors, forward+backward on two threads: edges and nodes of 32 graphs of 40 nodes,
         16 to 32 channels each; weights and biases of 64 networks with 10, 32 and 5 neurons, 16 channels
pairs    a layer for each pair of a source and a target, what they give added up; first: that of the first pair alone"""


class Pairs(nn.Module):
    """The same maps as those of a layer, with a layer for each pair of tensors."""

    def __init__(self, layer: EquivariantLinear) -> None:
        super().__init__()
        self.spec: Spec = layer.spec
        self.layers = nn.ModuleList()
        for pair in layer.plan.pairs:
            alone = EquivariantLinear(
                layer.spec.pair(pair.source, pair.target),
                layer.in_channels[pair.source],
                layer.out_channels[pair.target],
                bias=pair.source == 0,
            )
            with torch.no_grad():
                alone.weight.copy_(getattr(layer, f"weight_{pair.source}_to_{pair.target}"))
                if alone.bias is not None:
                    alone.bias.copy_(getattr(layer, f"bias_{pair.target}"))
            self.layers.append(alone)

    def forward(self, x: Sequence[Tensor]) -> tuple[Tensor, ...]:
        """One tensor for each target."""
        sizes = {
            name: length
            for one, shape in zip(x, self.spec.sources, strict=True)
            for name, length in zip(shape, one.shape[1:-1], strict=True)
        }
        results: list[Tensor] = []
        n_targets = len(self.spec.targets)
        for number, layer in enumerate(self.layers):
            new = {name: sizes[name] for name in layer.spec.target_only}  # type: ignore[union-attr]
            result = layer(x[number // n_targets], sizes=new)
            if number < n_targets:
                results.append(result)
            else:
                results[number % n_targets] = results[number % n_targets] + result
        return tuple(results)


class First(nn.Module):
    """The layer of the first pair alone."""

    def __init__(self, pairs: Pairs) -> None:
        super().__init__()
        self.layer = pairs.layers[0]

    def forward(self, x: Sequence[Tensor]) -> tuple[Tensor, ...]:
        """One tensor."""
        return (self.layer(x[0]),)


def contestants(spec: str, *, quick: bool) -> tuple[Mapping[str, nn.Module], list[Tensor]]:
    """Everyone who competes on a spec, and the tensors that they are given."""
    torch.manual_seed(0)
    sizes, (inside, outside) = (QUICK_SIZES if quick else SIZES)[spec], CHANNELS[spec]
    layer = EquivariantLinear(spec, inside, outside)
    pairs = Pairs(layer)
    tensors = [
        torch.randn(BATCH[spec], *[sizes[name] for name in shape], inside, requires_grad=True)
        for shape in plan(spec).spec.sources
    ]
    return {TOGETHER: layer, PAIRS: pairs, FIRST: First(pairs)}, tensors


def measure_collections(effort: Effort) -> Section:
    """One race for each spec."""
    races, ratios = [], []
    for spec in SIZES:
        modules, tensors = contestants(spec, quick=effort.quick)
        calls: dict[str, Callable[[], object]] = {}
        for name, module in modules.items():
            upstream = [torch.randn_like(one) for one in module(tensors)]
            calls[name] = partial(_run, module, tensors, upstream)
        races.append(raced(f"{spec}, forward+backward", calls, threads=2, rounds=effort.rounds))
        ratios.append(races[-1].ratio(PAIRS, TOGETHER))
        if spec == EDGES:
            ratios.append(races[-1].ratio(TOGETHER, FIRST))
    return Section(tuple(races), tuple(ratios))


def _run(module: nn.Module, tensors: Sequence[Tensor], upstream: Sequence[Tensor]) -> None:
    """Forward and backward, leaving nothing behind."""
    results = module(tensors)
    inputs = [*(tensors[:1] if isinstance(module, First) else tensors), *module.parameters()]
    torch.autograd.grad(results, inputs, upstream)
