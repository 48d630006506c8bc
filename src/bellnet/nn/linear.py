"""The layer: every linear map between tensors over nodes that does not care how the nodes are numbered."""

from collections.abc import Sequence
from typing import Any, overload

import torch
from torch import Tensor, nn

from bellnet.backends import DenseLayout, Executor, Layout, SparseLayout, change_of_basis
from bellnet.errors import OptionError, TensorError, as_written
from bellnet.nn.arguments import NotScripted, check_channels_of_all, check_choice, check_memory, refuse_more
from bellnet.nn.given_sizes import GivenSizes
from bellnet.nn.init import initial_weight, shares_of_sources
from bellnet.nn.inputs import Input, Reception
from bellnet.nn.listed import ListedReception
from bellnet.nn.mixed import GivenSupports, MixedReception
from bellnet.nn.several import Collection, OverNodes, Received, SeveralReception
from bellnet.nn.symmetrization import Symmetrization, check_declared
from bellnet.plan import MOST_MAPS, Entries, Plan, diagram_to_orbit, orbit_to_diagram, plan
from bellnet.spec import Spec, parse_spec
from bellnet.tensors import Padded, Sparse, Support
from bellnet.tensors.padded import has_size_for_each, zero_padded


class EquivariantLinear(NotScripted, nn.Module):
    """All equivariant linear maps of a spec, with channels and biases.

    The spec gives the node set of every slot of input and output; a repeated name means the same node *set*, not the
    same node. Batch axes stand in front, any number of them, and channels come last. The weights fit any number of
    nodes.

    Several tensors have commas between them: "n n, n, -> n n, n" takes edges, nodes and a vector for each graph, as a
    tuple, to edges and nodes. Each may have channels, and a layout, of its own. There is a weight for every pair of an
    input and an output.

    Args:
        spec: For instance "n n -> n n" (edges to edges), "n n ->" (a graph to a vector), "u i -> u". Braces stand
            around slots that may be exchanged: "{n n} -> {n n}" takes symmetric matrices to symmetric matrices.
        in_channels: The number of channels of the input; of several, a tuple with one for each, or one for all.
        out_channels: The same for the output.
        bias: Whether to add the constant maps, one for each equality pattern of the target.
        basis: What the weights are coefficients of: "diagram", at least these equalities, or "orbit", exactly these
            equalities (the orthogonal indicators of the paper).
        normalize: "mean" divides every sum by the number of its terms, "sum" does not. "stored" divides by the number
            of terms that a `Sparse` lists, and is "mean" for tensors and `Padded`. The orbit basis goes with "sum"
            only: between normalised sums it would need factors that depend on the number of nodes.
        symmetric: Declares inputs that do not change when slots of one node set are exchanged; fewer maps are left.
        hollow: Declares inputs that are zero wherever two slots of one node set coincide; fewer maps are left.
        max_maps: A spec with more maps is refused before any work.
        device: Where the parameters live; on "meta" a layer takes no memory, whatever its channels.
        dtype: The type of the parameters.

    Attributes:
        plan: How the layer is computed.
        weight: (n_maps, in_channels, out_channels), in the order of `plan.diagrams`. Between several tensors there is
            `weight_0_to_1` in its place, from the first input to the second output, and so on for all pairs.
        bias: (n_biases, out_channels), in the order of `plan.biases`, or None. With several tensors `bias_0` for the
            first output, and so on.

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
        self._refuse_combinations(dtype)
        self.plan = plan(self.spec, symmetric=symmetric, hollow=hollow, max_maps=max_maps)
        self._executor = Executor(self.plan, inside, outside, mean=self.normalize != "sum")
        self._is_single = self.spec.is_single
        if self._is_single:
            self._reception = Reception(self._call, self.spec, self.in_channels)
            self._listed_reception = ListedReception(self._reception)
            self._keeps_sizes = set(self.spec.target) == set(self.spec.source)
            sets = dict.fromkeys(self.spec.target)
            self._target_sets = tuple((name, self.spec.node_sets.index(name)) for name in sets)
        else:
            self._several_reception = SeveralReception(self._call, self.spec, inside)
            self._mixed_reception = MixedReception(self._several_reception)
        # Each pair of a source and a target has a weight, each target a bias.
        self._pairs = [self.plan.pair(pair.source, pair.target) for pair in self.plan.pairs]
        self._bias_plans = [
            plan(self.spec.constants(target), max_maps=max_maps) for target in range(len(self.spec.targets))
        ]
        self._symmetrization = Symmetrization(self._call, self.spec) if self.spec.unordered else None
        self._weight_names, self._bias_names = names_of_parameters(self.plan)
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

    def _refuse_combinations(self, dtype: torch.dtype | None) -> None:
        if self.basis == "orbit" and self.normalize != "sum":
            raise OptionError(
                f'{self._call}: basis="orbit" goes with normalize="sum" only, not {self.normalize!r}.\n'
                "Orbits and diagrams differ by sums that a division by the number of terms would not respect. "
                'Pass normalize="sum", or basis="diagram".'
            )
        if dtype is not None and (type(dtype) is not torch.dtype or not dtype.is_floating_point):
            raise OptionError(
                f"{self._call}: dtype must be a floating point type such as torch.float32, not {as_written(dtype)}."
            )

    def reset_parameters(self, generator: torch.Generator | None = None) -> None:
        """Draw new weights that keep the second moment of activations under ReLU, and set the bias to zero.

        Args:
            generator: Where the random numbers come from, on the CPU; torch's own if None.
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
        """For every pair of a source and a target."""
        return [getattr(self, name) for name in self._weight_names]

    def _biases(self) -> list[Tensor] | None:
        """For every target."""
        biases = [getattr(self, name) for name in self._bias_names]
        return None if biases[0] is None else biases

    @overload
    def forward(self, x: Tensor, *, sizes: GivenSizes = None, support: None = None, check: bool = False) -> Tensor: ...
    @overload
    def forward(
        self, x: Padded, *, sizes: GivenSizes = None, support: None = None, check: bool = False
    ) -> Tensor | Padded: ...
    @overload
    def forward(
        self, x: Sparse, *, sizes: GivenSizes = None, support: Sparse | Support | None = None, check: bool = False
    ) -> Tensor | Sparse: ...
    @overload
    def forward(
        self, x: Tensor | Padded, *, sizes: GivenSizes = None, support: Sparse | Support, check: bool = False
    ) -> Tensor | Sparse: ...
    @overload
    def forward(
        self, x: Collection, *, sizes: GivenSizes = None, support: GivenSupports = None, check: bool = False
    ) -> Any: ...
    def forward(
        self,
        x: OverNodes | Collection,
        *more: object,
        sizes: GivenSizes = None,
        support: GivenSupports = None,
        check: bool = False,
    ) -> OverNodes | Collection:
        """Apply the layer.

        Args:
            x: (*batch, one axis for each source slot, in_channels), as a tensor or `Padded`; or a `Sparse`. Of several,
                a tuple of these, over the same nodes. Beside a `Sparse` that is a batch of graphs, nodes may also be
                (nodes of all graphs one after the other, in_channels).
            more: Nothing; several tensors are one tuple, and options have names.
            sizes: The lengths of the node sets that only the target has, for instance {"i": 7}; a tensor gives every
                graph its own.
            support: A `Sparse`, or the support of one, whose tuples the result is to list. Without it, the result of
                a `Sparse` lists the same tuples where the target has the slots of the source, and every node where
                it has one slot. For several targets a tuple with one for each, or None; one alone is for all targets
                over its slots.
            check: Whether to refuse an input that is not symmetric or hollow although that was declared.

        Returns:
            (*batch, one axis for each target slot, out_channels): `Sparse` if x is, or a support was given, and the
            target has slots; `Padded` if the graphs differ in the size of some node set of the target; else a tensor.
            Several targets are a tuple. There, each is what an input over the same slots is, a `Sparse` before others,
            unless it has a support of its own.
        """
        if more:
            refuse_more(self._call, (x, *more), len(self.spec.sources))
        if not self._is_single:
            return self._forward_several(x, sizes, support, check=check)
        if isinstance(x, Sparse) or support is not None:
            return self._forward_listed(x, sizes, support, check=check)  # type: ignore[arg-type]
        given, weight = self._reception.receive(x, sizes), self.weight  # type: ignore[arg-type]
        self._check_values(given.tensor, weight)
        if check:
            check_declared(self._call, self.plan, given.tensor, None)
        result = self._run(DenseLayout(given.nodes), given.tensor, weight)
        if len(given.batch) != 1:
            result = result.reshape(*given.batch, *result.shape[1:])
        if isinstance(x, Padded) and self._keeps_sizes and has_size_for_each(x, given.batch):
            return zero_padded(result, x, self.spec.target)
        sizes_of_target = self._sizes_of_target(given)
        return result if sizes_of_target is None else zero_padded(result, sizes_of_target, self.spec.target)

    def _forward_several(
        self, x: object, sizes: GivenSizes, support: GivenSupports, *, check: bool
    ) -> OverNodes | Collection:
        given = self._several_reception.collection(x)
        if support is not None or any(isinstance(one, Sparse) for one in given):
            received = self._mixed_reception.receive(given, support, sizes, listed=self.normalize == "stored")
        else:
            received = self._several_reception.receive(given, sizes)  # type: ignore[arg-type]
        weights, biases = self._weights(), self._biases()
        for number, tensor in enumerate(received.values):
            self._check_values(tensor, weights[0], self._several_reception.names[number])
            if check:
                self._check_declared(number, tensor, received.layout)
        casts = _autocast_type(received.values[0])
        if casts is None:
            results = self._run_several(received, received.values, weights, biases)
        else:
            with torch.autocast(received.values[0].device.type, enabled=False):
                several = ([one.to(casts) for one in many] for many in (received.values, weights, biases or ()))
                values, weights, cast = several
                results = self._run_several(received, values, weights, None if biases is None else cast)
        wrapped = tuple(received.wrap(results))
        return wrapped if len(wrapped) > 1 else wrapped[0]

    def _run_several(
        self,
        received: Received,
        values: Sequence[Tensor],
        weights: Sequence[Tensor],
        biases: Sequence[Tensor] | None,
    ) -> Sequence[Tensor]:
        if self.basis == "orbit":
            n_pairs = len(self._pairs)
            weights = self._in_diagrams(self._pairs, self._entries[:n_pairs], weights)
            if biases is not None:
                biases = self._in_diagrams(self._bias_plans, self._entries[n_pairs:], biases)
        if self._symmetrization is not None:
            shares = self._symmetrization.shares
            weights = [one * shares[pair.target] for one, pair in zip(weights, self.plan.pairs, strict=True)]
            biases = None if biases is None else [one * share for one, share in zip(biases, shares, strict=True)]
        results = self._executor(received.layout, values, weights, biases)
        return results if self._symmetrization is None else self._symmetrization(results, received.layout)

    def _in_diagrams(self, plans: Sequence[Plan], entries: Sequence[Entries], given: Sequence[Tensor]) -> list[Tensor]:
        several = zip(plans, entries, given, strict=True)
        return [change_of_basis(("diagram", one), matrix, weight) for one, matrix, weight in several]

    def _check_declared(self, number: int, tensor: Tensor, layout: Layout) -> None:
        call, of_source = self._several_reception.parts[number].call, self.plan.pair(number, 0)
        check_declared(call, of_source, tensor, layout.sources[number] if isinstance(layout, SparseLayout) else None)

    def _forward_listed(
        self, x: Tensor | Padded | Sparse, sizes: GivenSizes, support: Sparse | Support | None, *, check: bool
    ) -> Tensor | Sparse:
        values, supports = self._listed_reception.receive(x, support, sizes, listed=self.normalize == "stored")
        self._check_values(values, weight := self.weight)
        if check:
            check_declared(self._call, self.plan, values, supports.sources[0])
        result = self._run(supports, values, weight)
        if self.spec.target:
            return Sparse.on(supports.targets[0], result)
        return result if supports.sources[0].counts.is_batch else result.squeeze(0)

    def _run(self, layout: Layout, tensor: Tensor, weight: Tensor) -> Tensor:
        bias, dtype = self.bias, _autocast_type(tensor)
        if dtype is not None:
            with torch.autocast(tensor.device.type, enabled=False):
                return self._run_as(
                    layout, tensor.to(dtype), weight.to(dtype), None if bias is None else bias.to(dtype)
                )
        return self._run_as(layout, tensor, weight, bias)

    def _run_as(self, layout: Layout, tensor: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        if self.basis == "orbit":
            (weight,) = self._in_diagrams(self._pairs, self._entries[:1], (weight,))
            if bias is not None:
                (bias,) = self._in_diagrams(self._bias_plans, self._entries[1:], (bias,))
        if self._symmetrization is not None:
            (share,) = self._symmetrization.shares
            weight, bias = weight * share, None if bias is None else bias * share
        (result,) = self._executor(layout, (tensor,), (weight,), None if bias is None else (bias,))
        return result if self._symmetrization is None else self._symmetrization((result,), layout)[0]

    def _check_values(self, tensor: Tensor, weight: Tensor, name: str = "x") -> None:
        if tensor.device == weight.device and tensor.dtype == weight.dtype:
            return
        what = "the input" if name == "x" else name
        if tensor.device != weight.device:
            raise TensorError(
                f"{self._call} has its parameters on {weight.device}, but {what} is on {tensor.device}.\n"
                f'Move one of them: layer.to("{tensor.device}") or {name}.to("{weight.device}").'
            )
        if _autocast_type(tensor) is not None and tensor.is_floating_point():
            return
        remedy = f"Convert {'the input' if name == 'x' else 'it'}: {name}.to({weight.dtype})"
        if tensor.is_floating_point():
            remedy += f", or the layer: layer.to({tensor.dtype})"
        raise TensorError(
            f"{self._call} has parameters of type {weight.dtype}, but {what} is {tensor.dtype}.\n{remedy}."
        )

    def _sizes_of_target(self, given: Input) -> Tensor | dict[str, Tensor] | None:
        """The sizes for a `Padded`; None if there is nothing in the output that could be padded."""
        counts = given.nodes.counts
        if counts is None or not any(name in given.padded for name in self.spec.target):
            return None
        sizes = {name: counts[number].reshape(given.batch) for name, number in self._target_sets}
        return next(iter(sizes.values())) if len(sizes) == 1 else sizes

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


def names_of_parameters(plan: Plan) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Of the weights, one for each pair of a source and a target, and of the biases, one for each target.

    >>> names_of_parameters(plan("n n, n -> n"))
    (('weight_0_to_0', 'weight_1_to_0'), ('bias_0',))
    """
    if plan.spec.is_single:
        return ("weight",), ("bias",)
    weights = tuple(f"weight_{pair.source}_to_{pair.target}" for pair in plan.pairs)
    return weights, tuple(f"bias_{target}" for target in range(len(plan.spec.targets)))


def _autocast_type(tensor: Tensor) -> torch.dtype | None:
    """What autocast would compute in, where it is on."""
    device_type = tensor.device.type
    if not torch.amp.is_autocast_available(device_type) or not torch.is_autocast_enabled(device_type):
        return None
    return torch.get_autocast_dtype(device_type)
