"""Layers between several tensors, compared with the sum of one layer for each pair; and slots in braces.

The layers of the pairs add results as large as the edges in fresh memory, whose cost depends on what the process did
before. Therefore edges and nodes are raced in a new process, with and without retained memory.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from functools import partial

import torch
from torch import Tensor, nn

from bellnet import EquivariantLinear, Spec, plan
from benchmarks.calls import python_output
from benchmarks.races import Effort, Raced, Section, from_record, raced

EDGES = "n n, n -> n n, n"
WEIGHTS = "a b, b, b c, c -> a b, b, b c, c"
SIZES = {EDGES: {"n": 40}, WEIGHTS: {"a": 10, "b": 32, "c": 5}}
QUICK_SIZES = {EDGES: {"n": 6}, WEIGHTS: {"a": 3, "b": 4, "c": 2}}
CHANNELS = {EDGES: (16, 32), WEIGHTS: (16, 16)}
BATCH = {EDGES: 32, WEIGHTS: 64}
TOGETHER, PAIRS, FIRST = "together", "pairs", "first"
UNORDERED, ORDERED, BRACES = "{n n} -> {n n}", "ordered", "braces"
RETAINED = "memory retained"
LEGEND = """\
together one layer between all tensors, forward+backward on two threads: edges and nodes of 32 graphs of 40 nodes,
         16 to 32 channels each; weights and biases of 64 networks with 10, 32 and 5 neurons, 16 channels
pairs    a layer for each pair of a source and a target, outputs added; first: the layer of the first pair alone;
         memory retained: after bellnet.keep_freed_memory()
braces   {n n} -> {n n} on symmetric matrices, 32 graphs of 40 nodes, 16 to 32 channels; ordered: n n -> n n"""


class Pairs(nn.Module):
    """The same function as a layer, computed by one layer for each pair of tensors."""

    def __init__(self, layer: EquivariantLinear) -> None:
        super().__init__()
        self.spec: Spec = layer.spec
        self.layers = nn.ModuleList()
        for pair in layer.plan.pairs:
            part = EquivariantLinear(
                layer.spec.pair(pair.source, pair.target),
                layer.in_channels[pair.source],
                layer.out_channels[pair.target],
                bias=pair.source == 0,
            )
            with torch.no_grad():
                part.weight.copy_(getattr(layer, f"weight_{pair.source}_to_{pair.target}"))
                if part.bias is not None:
                    part.bias.copy_(getattr(layer, f"bias_{pair.target}"))
            self.layers.append(part)

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


class SingleTensor(nn.Module):
    """A layer applied to the first of several tensors."""

    def __init__(self, layer: nn.Module) -> None:
        super().__init__()
        self.layer = layer

    def forward(self, x: Sequence[Tensor]) -> tuple[Tensor, ...]:
        """One tensor."""
        return (self.layer(x[0]),)


def contestants(spec: str, *, quick: bool) -> tuple[Mapping[str, nn.Module], list[Tensor]]:
    """The contestants of a spec, and their input tensors."""
    torch.manual_seed(0)
    sizes, (inside, outside) = (QUICK_SIZES if quick else SIZES)[spec], CHANNELS[spec]
    layer = EquivariantLinear(spec, inside, outside)
    pairs = Pairs(layer)
    tensors = [
        torch.randn(BATCH[spec], *[sizes[name] for name in shape], inside, requires_grad=True)
        for shape in plan(spec).spec.sources
    ]
    return {TOGETHER: layer, PAIRS: pairs, FIRST: SingleTensor(pairs.layers[0])}, tensors


def symmetric_contestants(*, quick: bool) -> tuple[Mapping[str, nn.Module], list[Tensor]]:
    """Layers with and without braces, and symmetric matrices as input."""
    torch.manual_seed(0)
    n, (inside, outside) = (QUICK_SIZES if quick else SIZES)[EDGES]["n"], CHANNELS[EDGES]
    x = torch.randn(BATCH[EDGES], n, n, inside)
    modules = {
        ORDERED: SingleTensor(EquivariantLinear("n n -> n n", inside, outside)),
        BRACES: SingleTensor(EquivariantLinear(UNORDERED, inside, outside)),
    }
    return modules, [(x + x.transpose(1, 2)).requires_grad_()]


def race_of(spec: str, *, rounds: int, quick: bool, suffix: str = "") -> Raced:
    """The race of a spec, in this process."""
    if spec == UNORDERED:
        modules, tensors = symmetric_contestants(quick=quick)
    else:
        modules, tensors = contestants(spec, quick=quick)
    calls: dict[str, Callable[[], object]] = {}
    for name, module in modules.items():
        upstream = [torch.randn_like(one) for one in module(tensors)]
        calls[name] = partial(_run, module, tensors, upstream)
    return raced(f"{spec}, forward+backward{suffix}", calls, threads=1 if quick else 2, rounds=rounds)


def measure_collections(effort: Effort) -> Section:
    """One race for each spec, those with large results in new processes."""
    races, ratios = [], []
    for retain in (False, True):
        edges, unordered = _races_in_new_process((EDGES, UNORDERED), effort, retain=retain)
        races += [edges, unordered]
        ratios += [edges.ratio(PAIRS, TOGETHER), edges.ratio(TOGETHER, FIRST), unordered.ratio(ORDERED, BRACES)]
    races.append(race_of(WEIGHTS, rounds=effort.rounds, quick=effort.quick))
    ratios.append(races[-1].ratio(PAIRS, TOGETHER))
    return Section(tuple(races), tuple(ratios))


def _races_in_new_process(specs: Sequence[str], effort: Effort, *, retain: bool) -> list[Raced]:
    """Races in a new process, optionally with freed memory retained; quick ones without that run in this process."""
    if effort.quick and not retain:
        return [race_of(one, rounds=effort.rounds, quick=True) for one in specs]
    suffix = f", {RETAINED}" if retain else ""
    code = f"""if True:
        import json
        import bellnet
        from benchmarks.collections import race_of
        from benchmarks.races import race_record
        if {retain}:
            bellnet.keep_freed_memory()
        races = [race_of(one, rounds={effort.rounds}, quick={effort.quick}, suffix={suffix!r}) for one in {specs!r}]
        print(json.dumps(race_record(races)))
    """
    return [from_record(one) for one in json.loads(python_output(code))]


def _run(module: nn.Module, tensors: Sequence[Tensor], upstream: Sequence[Tensor]) -> None:
    """Forward and backward, without accumulated gradients."""
    results = module(tensors)
    inputs = [*(tensors[:1] if isinstance(module, SingleTensor) else tensors), *module.parameters()]
    torch.autograd.grad(results, inputs, upstream)
