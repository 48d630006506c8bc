"""The linear layer: all permutation-equivariant linear maps between tensors over nodes; and its initial weights."""

from collections import Counter
from collections.abc import Iterable, Sequence
from functools import lru_cache
from itertools import combinations, product
from math import perm, prod
from typing import Any

import torch
from torch import Tensor, nn

from bellnet.backends import Executor, Layout, SparseLayout, change_of_basis
from bellnet.combinatorics import Partition, canonical, orbit_size, stirling2
from bellnet.errors import OptionError, TensorError, as_written
from bellnet.nn.inputs import (
    Collection,
    Inputs,
    InputValidator,
    NotScripted,
    OverNodes,
    Sizes,
    check_channels_of_all,
    check_choice,
    check_collection,
    check_memory,
    refuse_more,
)
from bellnet.nn.sparse_validation import SparseInputValidator, Supports
from bellnet.nn.symmetrization import Symmetrization, check_declared
from bellnet.plan import MOST_MAPS, Diagram, Entries, Plan, diagram_to_orbit, orbit_to_diagram, plan
from bellnet.spec import Spec, parse_spec
from bellnet.tensors import Sparse


class EquivariantLinear(NotScripted, nn.Module):
    """All equivariant linear maps of a spec, with channels and biases, for any number of nodes.

    The spec gives the node set of every slot of input and output; a repeated name means the same node *set*, not the
    same node. Batch axes come first, any number of them, and channels last.

    Commas separate several tensors: "n n, n, -> n n, n" maps edges, nodes and a vector for each graph, as a tuple, to
    edges and nodes. Each may have its own channels and layout. Every pair of an input and an output has a weight.

    Args:
        spec: For instance "n n -> n n" (edges to edges), "n n ->" (a graph to a vector), "u i -> u". Braces are around
            slots that may be exchanged: "{n n} -> {n n}" maps symmetric matrices to symmetric matrices.
        in_channels: The number of channels of the input; of several inputs, a tuple, or one number for all.
        out_channels: The same for the output.
        bias: Whether to add the constant maps, one for each equality pattern of the target.
        basis: The basis of the weights: "diagram", at least these equalities, or "orbit", exactly these equalities (the
            orthogonal indicators of the paper).
        normalize: "mean" divides every sum by the number of its terms, "sum" does not. "stored" divides by the number
            of terms that a `Sparse` stores, and is "mean" for tensors and `Padded`. The orbit basis goes with "sum"
            only: for means it would need factors that depend on the number of nodes.
        symmetric: Declares inputs that do not change when slots of one node set are exchanged, which need fewer maps.
        hollow: Declares inputs that are zero wherever two slots of one node set coincide, which need fewer maps.
        max_maps: A spec with more maps is refused.
        device: The device of the parameters; on "meta" they need no memory.
        dtype: The dtype of the parameters.

    Attributes:
        plan: The levels that compute the layer.
        weight: (n_maps, in_channels, out_channels), in the order of `plan.diagrams`. With several tensors
            `weight_0_to_1` is that from the first input to the second output, and so on for all pairs.
        bias: (n_biases, out_channels), in the order of `plan.biases`, or None. With several tensors `bias_0` is that of
            the first output, and so on.

    >>> layer = EquivariantLinear("n n -> n n", 16, 32)
    >>> layer(torch.randn(8, 30, 30, 16)).shape
    torch.Size([8, 30, 30, 32])
    >>> several = EquivariantLinear("n n, n -> n n, n", (16, 4), 32)
    >>> edges, nodes = several((torch.randn(8, 30, 30, 16), torch.randn(8, 30, 4)))
    >>> edges.shape, nodes.shape, several.weight_1_to_0.shape
    (torch.Size([8, 30, 30, 32]), torch.Size([8, 30, 32]), torch.Size([5, 4, 32]))
    """

    plan: Plan
    weight: nn.Parameter
    bias: nn.Parameter | None
    in_channels: Any  # an int, or a tuple of them where the spec has several sources
    out_channels: Any

    def __init__(
        self,
        spec: str | Spec,
        in_channels: int | Sequence[int],
        out_channels: int | Sequence[int],
        *,
        bias: bool = True,
        basis: str = "diagram",
        normalize: str = "mean",
        symmetric: bool = False,
        hollow: bool = False,
        max_maps: int = MOST_MAPS,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        self.spec = parse_spec(spec)
        self._call = f'EquivariantLinear("{self.spec}", {as_written(in_channels)}, {as_written(out_channels)})'
        inside = check_channels_of_all(self._call, "in_channels", in_channels, len(self.spec.sources))
        outside = check_channels_of_all(self._call, "out_channels", out_channels, len(self.spec.targets))
        self.in_channels, self.out_channels = (one if len(one) > 1 else one[0] for one in (inside, outside))
        self.basis = check_choice(self._call, "basis", basis, ("diagram", "orbit"))
        self.normalize = check_choice(self._call, "normalize", normalize, ("mean", "stored", "sum"))
        if basis == "orbit" and normalize != "sum":
            raise OptionError(
                f'{self._call}: basis="orbit" goes with normalize="sum" only, not {normalize!r}.\n'
                "Orbits are sums of diagrams only where sums are not divided by the number of their terms. "
                'Pass normalize="sum", or basis="diagram".'
            )
        if dtype is not None and (type(dtype) is not torch.dtype or not dtype.is_floating_point):
            raise OptionError(
                f"{self._call}: dtype must be a floating point type such as torch.float32, not {as_written(dtype)}."
            )
        self.plan = plan(self.spec, symmetric=symmetric, hollow=hollow, max_maps=max_maps)
        self._executor = Executor(self.plan, inside, outside, mean=self.normalize != "sum")
        self._n_sources = len(self.spec.sources)
        self._dense_validator = InputValidator(self._call, self.spec, inside)
        self._sparse_validator = SparseInputValidator(self._dense_validator)
        self._pairs = [self.plan.pair(pair.source, pair.target) for pair in self.plan.pairs]
        self._bias_plans = [
            plan(self.spec.constants(target), max_maps=max_maps) for target in range(len(self.spec.targets))
        ]
        self._symmetrization = Symmetrization(self._call, self.spec) if self.spec.unordered else None
        self._weight_names, self._bias_names = ["weight"], ["bias"]
        if not self.spec.is_single:
            self._weight_names = [f"weight_{pair.source}_to_{pair.target}" for pair in self.plan.pairs]
            self._bias_names = [f"bias_{target}" for target in range(len(self.spec.targets))]
        self._entries: list[Entries] = []
        if self.basis == "orbit":
            self._entries = [orbit_to_diagram(one) for one in (*self._pairs, *self._bias_plans)]
        shapes = [(pair.n_maps, inside[pair.source], outside[pair.target]) for pair in self.plan.pairs]
        for shape in shapes:
            check_memory(self._call, shape, device=device, dtype=dtype)
        for name, shape in zip(self._weight_names, shapes, strict=True):
            self.register_parameter(name, nn.Parameter(torch.empty(shape, device=device, dtype=dtype)))
        for name, patterns, channels in zip(self._bias_names, self.plan.bias_patterns, outside, strict=True):
            empty = torch.empty((len(patterns), channels), device=device, dtype=dtype) if bias else None
            self.register_parameter(name, None if empty is None else nn.Parameter(empty))
        self.reset_parameters()

    def reset_parameters(self, generator: torch.Generator | None = None) -> None:
        """Draw weights that keep the second moment of activations under ReLU, and set biases to zero.

        Args:
            generator: The source of random numbers, on the CPU; torch's own if None.
        """
        mean, shares = self.normalize != "sum", shares_of_sources(self.plan)
        with torch.no_grad():
            for weight, pair, share in zip(self._weights(), self._pairs, shares, strict=True):
                if weight.is_meta:
                    continue
                drawn = initial_weight(pair, weight.shape[1], weight.shape[2], mean=mean, generator=generator)
                if self.basis == "orbit":
                    drawn = change_of_basis(("orbit", pair), diagram_to_orbit(pair), drawn)
                weight.copy_(drawn if share == 1 else drawn * share**0.5)
            for bias in self._biases() or ():
                bias.zero_()

    def _weights(self) -> list[Tensor]:
        """The weight of every pair of a source and a target."""
        return [getattr(self, name) for name in self._weight_names]

    def _biases(self) -> list[Tensor] | None:
        """The bias of every target."""
        biases = [getattr(self, name) for name in self._bias_names]
        return None if biases[0] is None else biases

    def forward(
        self,
        x: OverNodes | Collection,
        *more: object,
        sizes: Sizes = None,
        support: Supports = None,
        check: bool = False,
    ) -> Any:
        """Apply the layer.

        Args:
            x: (*batch, one axis for each source slot, in_channels), as a tensor or `Padded`; or a `Sparse`. For several
                sources a tuple of these, over the same nodes. Beside a `Sparse` that is a batch of graphs, nodes may
                also be (nodes of all graphs in a row, in_channels).
            more: Raises an error: several tensors are one tuple, and options have names.
            sizes: The lengths of the node sets that only targets have, for instance {"i": 7}; a tensor has one for
                every graph.
            support: A `Sparse`, or its support, whose stored entries the result has. Without it, the result of a
                `Sparse` has the same stored entries where the target has the slots of the source, and all nodes where
                it has one slot. For several targets a tuple with one for each, or None; a single one is for all targets
                over its slots.
            check: Whether to check that the input is symmetric or hollow, where that was declared.

        Returns:
            (*batch, one axis for each target slot, out_channels): a `Sparse` if x is one, or a support was passed, and
            the target has slots; a `Padded` if the graphs differ in the size of a node set of the target; else a
            tensor. Several targets are a tuple. Each has the form of an input over the same slots, of a `Sparse` before
            others, unless it has a support of its own.
        """
        if more:
            refuse_more(self._call, (x, *more), len(self.spec.sources))
        collection = (x,) if self._n_sources == 1 else check_collection(self._call, x, self.spec.sources)
        inputs: Inputs[Any]
        if support is not None or any(isinstance(one, Sparse) for one in collection):
            stored = self.normalize == "stored"
            inputs = self._sparse_validator.validate(collection, sizes, support, stored=stored)  # type: ignore[arg-type]
        else:
            inputs = self._dense_validator.validate(collection, sizes)  # type: ignore[arg-type]
        values, layout, weights, biases = inputs.values, inputs.layout, self._weights(), self._biases()
        dtype = autocast_dtype(values[0])
        for number, tensor in enumerate(values):
            if tensor.dtype != weights[0].dtype or tensor.device != weights[0].device:
                self._check_values(tensor, weights[0], self._dense_validator.names[number], dtype)
            if check:
                support_of = layout.sources[number] if isinstance(layout, SparseLayout) else None
                check_declared(
                    self._dense_validator.sources[number].call, self.plan.pair(number, 0), tensor, support_of
                )
        if dtype is None:
            results = self._run(layout, values, weights, biases)
        else:
            with torch.autocast(values[0].device.type, enabled=False):
                values, weights = [one.to(dtype) for one in values], [one.to(dtype) for one in weights]
                biases = None if biases is None else [one.to(dtype) for one in biases]
                results = self._run(layout, values, weights, biases)
        wrapped = inputs.wrap(results)
        return wrapped[0] if len(wrapped) == 1 else tuple(wrapped)

    def _run(
        self, layout: Layout, values: Sequence[Tensor], weights: Sequence[Tensor], biases: Sequence[Tensor] | None
    ) -> Sequence[Tensor]:
        if self.basis == "orbit":
            n_pairs = len(self._pairs)
            weights = _in_diagram_basis(self._pairs, self._entries[:n_pairs], weights)
            if biases is not None:
                biases = _in_diagram_basis(self._bias_plans, self._entries[n_pairs:], biases)
        if self._symmetrization is not None:
            shares = self._symmetrization.shares
            weights = [one * shares[pair.target] for one, pair in zip(weights, self.plan.pairs, strict=True)]
            biases = None if biases is None else [one * share for one, share in zip(biases, shares, strict=True)]
        results = self._executor(layout, values, weights, biases)
        return results if self._symmetrization is None else self._symmetrization(results, layout)

    def _check_values(self, tensor: Tensor, weight: Tensor, name: str, dtype: torch.dtype | None) -> None:
        """Refuse an input on another device or of another dtype than the parameters, unless autocast converts it."""
        what, pronoun = ("the input", "the input") if name == "x" else (name, "it")
        if tensor.device != weight.device:
            raise TensorError(
                f"{self._call} has its parameters on {weight.device}, but {what} is on {tensor.device}.\n"
                f'Move one of them: layer.to("{tensor.device}") or {name}.to("{weight.device}").'
            )
        if dtype is not None and tensor.is_floating_point():
            return
        remedy = f"Convert {pronoun}: {name}.to({weight.dtype})"
        if tensor.is_floating_point():
            remedy += f", or the layer: layer.to({tensor.dtype})"
        raise TensorError(
            f"{self._call} has parameters of type {weight.dtype}, but {what} is {tensor.dtype}.\n{remedy}."
        )

    def extra_repr(self) -> str:
        """The options, as they would be written in a call, and the number of maps."""
        options = [f'"{self.spec}"', str(self.in_channels), str(self.out_channels)]
        if self._biases() is None:
            options.append("bias=False")
        if self.basis != "diagram":
            options.append(f'basis="{self.basis}"')
        if self.normalize != "mean":
            options.append(f'normalize="{self.normalize}"')
        options += [f"{name}=True" for name in ("symmetric", "hollow") if getattr(self.plan, name)]
        return ", ".join([*options, f"n_maps={self.plan.n_maps}"])


def _in_diagram_basis(plans: Sequence[Plan], entries: Sequence[Entries], weights: Sequence[Tensor]) -> list[Tensor]:
    triples = zip(plans, entries, weights, strict=True)
    return [change_of_basis(("diagram", one), matrix, weight) for one, matrix, weight in triples]


def autocast_dtype(tensor: Tensor) -> torch.dtype | None:
    """The dtype that autocast computes in, None where it is off."""
    if not torch._C._is_any_autocast_enabled():
        return None
    device_type = tensor.device.type
    if not torch.amp.is_autocast_available(device_type) or not torch.is_autocast_enabled(device_type):
        return None
    return torch.get_autocast_dtype(device_type)


RELU_GAIN = 2.0
SMALL_SHARE = 0.1

Axes = tuple[int, ...]
"""The number of axes over every node set."""


def initial_weight(
    plan: Plan, in_channels: int, out_channels: int, *, mean: bool, generator: torch.Generator | None = None
) -> Tensor:
    """Draw a weight (n_maps, in_channels, out_channels) for diagrams, in float32 on the CPU.

    Args:
        plan: The maps.
        in_channels: The number of channels of the input.
        out_channels: The number of channels of the output.
        mean: Whether the layer takes means. With sums no weights keep the second moment for every number of nodes, and
            the source is not split into components.
        generator: The source of random numbers, on the CPU; torch's own if None.
    """
    cpu = torch.device("cpu")
    shares = torch.tensor(variance_shares(plan), dtype=torch.float32, device=cpu)
    scale = (shares * RELU_GAIN / in_channels).sqrt().unsqueeze(-1)
    shape = plan.n_maps, in_channels * out_channels
    weight = torch.randn(shape, generator=generator, dtype=torch.float32, device=cpu) * scale
    if mean:
        weight = _multiply(_components_to_contractions(plan), weight)
    weight = _multiply(_orbits_to_broadcasts(plan), weight)
    return weight.reshape(plan.n_maps, in_channels, out_channels)


def shares_of_sources(plan: Plan) -> list[float]:
    """For every pair of a source and a target the share of the source in the variance of the target.

    A source with more axes than the target loses components, so it gets a small share where others fit.

    >>> from bellnet import plan
    >>> [round(share, 2) for share in shares_of_sources(plan("n n, n -> n n, n"))]
    [0.5, 0.09, 0.5, 0.91]
    """
    sources, targets = ([_count_sets(plan, sets) for sets in shapes] for shapes in plan.spec.numbered)

    def portion(source: Axes, target: Axes) -> float:
        return 1.0 if _fits(source, target) or not any(_fits(one, target) for one in sources) else SMALL_SHARE

    pairs = product(sources, targets)
    return [portion(source, target) / sum(portion(one, target) for one in sources) for source, target in pairs]


@lru_cache(maxsize=256)
def variance_shares(plan: Plan) -> tuple[float, ...]:
    """For every map the variance of its coefficient with which the output has the second moment of the input.

    The diagonals of the source share the variance of every orbit of the output, and each divides its share among the
    ways to place its components. A map that represents several, which are equal by a declared symmetry, has the shares
    of all of them. Over unordered slots of the target it represents the average of m different maps, which has an m-th
    of their second moment.
    """
    groups, diagonals = plan.symmetry.groups, _count_diagonals(plan)
    order = len(plan.spec.source)
    of_source = (*groups[:order], *range(order, len(groups)))
    shares: dict[tuple[Axes, Axes], float] = {}
    found = []
    for diagram in plan.diagrams:
        diagonal, orbit, rank = (
            _count_sets(plan, sets)
            for sets in (
                diagram.contraction.set_of_block.values(),
                diagram.broadcast.set_of_block.values(),
                diagram.contraction.axis_sets,
            )
        )
        if (diagonal, orbit) not in shares:
            shares[diagonal, orbit] = _share_of_diagonal(plan, diagonals, diagonal, orbit)
        placings = prod(map(perm, orbit, rank))
        n_alike, n_all = (orbit_size(diagram.partition, exchanged) for exchanged in (of_source, groups))
        found.append(n_all * (n_all // n_alike) * (shares[diagonal, orbit] / placings))
    return tuple(found)


def _share_of_diagonal(plan: Plan, diagonals: dict[Axes, int], diagonal: Axes, orbit: Axes) -> float:
    """The share of one diagonal of the source in one orbit of the output; the shares of all diagonals sum to one.

    A diagonal with more axes than the orbit loses components, so it gets a small share where other diagonals fit; or
    else the losses would accumulate through a deep stack.
    """
    source, target = (_count_sets(plan, sets) for sets in plan.spec.set_numbers)
    deep = _fits(source, target)

    def portion(axes: Axes) -> float:
        return 1.0 if not deep or _fits(axes, orbit) else SMALL_SHARE

    return portion(diagonal) / sum(number * portion(axes) for axes, number in diagonals.items())


def _fits(diagonal: Axes, orbit: Axes) -> bool:
    """Whether the orbit has as many axes as the diagonal in every node set."""
    return all(needed <= there for needed, there in zip(diagonal, orbit, strict=True))


def _count_diagonals(plan: Plan) -> dict[Axes, int]:
    """The number of diagonals of the source with each number of axes."""
    slots = _count_sets(plan, plan.spec.set_numbers[0])
    choices = [(n_slots,) if plan.hollow else range(min(n_slots, 1), n_slots + 1) for n_slots in slots]
    return {axes: prod(map(stirling2, slots, axes)) for axes in product(*choices)}


def _count_sets(plan: Plan, sets: Iterable[int]) -> Axes:
    numbers = Counter(sets)
    return tuple(numbers[node_set] for node_set in range(len(plan.spec.node_sets)))


@lru_cache(maxsize=64)
def _components_to_contractions(plan: Plan) -> Entries:
    """A component is a contraction minus those that average over more axes, by inclusion and exclusion."""
    entries: Counter[tuple[int, int]] = Counter()
    number = {diagram.partition: number for number, diagram in enumerate(plan.diagrams)}
    declared = plan.symmetry
    for column, diagram in enumerate(plan.diagrams):
        for n_cut in range(len(diagram.crossing) + 1):
            for cut in combinations(diagram.crossing, n_cut):
                same = declared.representative(_cut(diagram, cut))
                assert same is not None
                entries[number[same], column] += (-1) ** n_cut
    return _non_zero(entries)


@lru_cache(maxsize=64)
def _orbits_to_broadcasts(plan: Plan) -> Entries:
    """A map onto one orbit is a Moebius inversion over the equalities between blocks of the target."""
    order, declared = len(plan.spec.source), plan.symmetry
    entries: Counter[tuple[int, int]] = Counter()
    number = {diagram.partition: number for number, diagram in enumerate(plan.diagrams)}
    for fine, column in number.items():
        for coarser in declared.coarsenings(fine, fixed=set(fine[:order]) - set(fine[order:])):
            same = declared.representative(coarser.partition)
            assert same is not None
            entries[number[same], column] += coarser.n_alike * coarser.moebius
    return _non_zero(entries)


def _cut(diagram: Diagram, blocks: tuple[int, ...]) -> Partition:
    """The diagram with these crossing blocks cut into their source part and their target part."""
    order = len(diagram.source_sets)
    source, target = diagram.partition[:order], diagram.partition[order:]
    return canonical([*source, *[-1 - block if block in blocks else block for block in target]])


def _non_zero(entries: Counter[tuple[int, int]]) -> Entries:
    return tuple((row, column, value) for (row, column), value in sorted(entries.items()) if value)


def _multiply(entries: Entries, weight: Tensor) -> Tensor:
    rows, columns, values = zip(*entries, strict=True)
    size = (weight.shape[0], weight.shape[0])
    index = torch.tensor([rows, columns], device=weight.device)
    filled = torch.tensor(values, dtype=weight.dtype, device=weight.device)
    matrix = torch.sparse_coo_tensor(index, filled, size, device=weight.device, check_invariants=False)
    product: Tensor = torch.sparse.mm(matrix, weight)
    return product
