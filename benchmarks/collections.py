"""Layers between several tensors, against one layer for each pair of them added up; and slots in braces.

The layers of all pairs add up results as large as the edges, in fresh memory. What that costs is a matter of luck, and
of what the process did before: so edges and nodes race in a process of their own, as it is and with memory kept.
"""

import json
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import partial

import torch
from torch import Tensor, nn

from bellnet import EquivariantLinear, Spec, plan
from benchmarks.races import Effort, Raced, Section, from_record, raced

EDGES = "n n, n -> n n, n"
WEIGHTS = "a b, b, b c, c -> a b, b, b c, c"
SIZES = {EDGES: {"n": 40}, WEIGHTS: {"a": 10, "b": 32, "c": 5}}
QUICK_SIZES = {EDGES: {"n": 6}, WEIGHTS: {"a": 3, "b": 4, "c": 2}}
CHANNELS = {EDGES: (16, 32), WEIGHTS: (16, 16)}
BATCH = {EDGES: 32, WEIGHTS: 64}
TOGETHER, PAIRS, FIRST = "together", "pairs", "first"
UNORDERED, ORDERED, BRACES = "{n n} -> {n n}", "ordered", "braces"
KEPT = "memory kept"
LEGEND = """\
together one layer between all tensors, forward+backward on two threads: edges and nodes of 32 graphs of 40 nodes,
         16 to 32 channels each; weights and biases of 64 networks with 10, 32 and 5 neurons, 16 channels
pairs    a layer for each pair of a source and a target, what they give added up; first: that of the first pair alone;
         memory kept: after bellnet.keep_freed_memory()
braces   {n n} -> {n n} on symmetric matrices, 32 graphs of 40 nodes, 16 to 32 channels; ordered: n n -> n n"""


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


class Alone(nn.Module):
    """A layer of one tensor to one, the first of those that are given."""

    def __init__(self, layer: nn.Module) -> None:
        super().__init__()
        self.layer = layer

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
    return {TOGETHER: layer, PAIRS: pairs, FIRST: Alone(pairs.layers[0])}, tensors


def symmetric_contestants(*, quick: bool) -> tuple[Mapping[str, nn.Module], list[Tensor]]:
    """Layers with braces and without, and symmetric matrices."""
    torch.manual_seed(0)
    n, (inside, outside) = (QUICK_SIZES if quick else SIZES)[EDGES]["n"], CHANNELS[EDGES]
    x = torch.randn(BATCH[EDGES], n, n, inside)
    modules = {
        ORDERED: Alone(EquivariantLinear("n n -> n n", inside, outside)),
        BRACES: Alone(EquivariantLinear(UNORDERED, inside, outside)),
    }
    return modules, [(x + x.transpose(1, 2)).requires_grad_()]


def race_of(spec: str, *, rounds: int, quick: bool, kept: str = "") -> Raced:
    """The race of everyone who competes on a spec, in this process."""
    if spec == UNORDERED:
        modules, tensors = symmetric_contestants(quick=quick)
    else:
        modules, tensors = contestants(spec, quick=quick)
    calls: dict[str, Callable[[], object]] = {}
    for name, module in modules.items():
        upstream = [torch.randn_like(one) for one in module(tensors)]
        calls[name] = partial(_run, module, tensors, upstream)
    return raced(f"{spec}, forward+backward{kept}", calls, threads=1 if quick else 2, rounds=rounds)


def measure_collections(effort: Effort) -> Section:
    """One race for each spec, those with large results in processes of their own."""
    races, ratios = [], []
    for keep in (False, True):
        edges, unordered = _races_apart((EDGES, UNORDERED), effort, keep=keep)
        races += [edges, unordered]
        ratios += [edges.ratio(PAIRS, TOGETHER), edges.ratio(TOGETHER, FIRST), unordered.ratio(ORDERED, BRACES)]
    races.append(race_of(WEIGHTS, rounds=effort.rounds, quick=effort.quick))
    ratios.append(races[-1].ratio(PAIRS, TOGETHER))
    return Section(tuple(races), tuple(ratios))


def _races_apart(specs: Sequence[str], effort: Effort, *, keep: bool) -> list[Raced]:
    """Races in a process of their own, which may keep the memory that it frees; quick ones that do not are run here."""
    if effort.quick and not keep:
        return [race_of(one, rounds=effort.rounds, quick=True) for one in specs]
    kept = f", {KEPT}" if keep else ""
    code = f"""if True:
        import json
        import bellnet
        from benchmarks.collections import race_of
        from benchmarks.races import race_record
        if {keep}:
            bellnet.keep_freed_memory()
        races = [race_of(one, rounds={effort.rounds}, quick={effort.quick}, kept={kept!r}) for one in {specs!r}]
        print(json.dumps(race_record(races)))
    """
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return [from_record(one) for one in json.loads(done.stdout)]


def _run(module: nn.Module, tensors: Sequence[Tensor], upstream: Sequence[Tensor]) -> None:
    """Forward and backward, leaving nothing behind."""
    results = module(tensors)
    inputs = [*(tensors[:1] if isinstance(module, Alone) else tensors), *module.parameters()]
    torch.autograd.grad(results, inputs, upstream)
