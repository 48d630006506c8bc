"""The layer: every linear map between tensors over nodes that does not care how the nodes are numbered."""

from typing import overload

import torch
from torch import Tensor, nn

from bellnet.errors import OptionError, TensorError, as_written
from bellnet.execute import Dense, Engine, Layout, change_of_basis
from bellnet.nn.declared import check_declared, check_declared_listed
from bellnet.nn.given_sizes import GivenSizes
from bellnet.nn.init import initial_weight
from bellnet.nn.inputs import Input, Reception
from bellnet.nn.listed import ListedReception
from bellnet.nn.options import check_channels, check_choice
from bellnet.nn.room import check_room
from bellnet.nn.scripting import NotScripted
from bellnet.plan import MOST_MAPS, Entries, Plan, diagram_to_orbit, orbit_to_diagram, plan
from bellnet.spec import Spec, parse_spec
from bellnet.tensors import Padded, Sparse, Support


class EquivariantLinear(NotScripted, nn.Module):
    """All equivariant linear maps of a spec, with channels and biases.

    The spec gives the node set of every slot of input and output; a repeated name means the same node *set*, not the
    same node. Batch axes stand in front, any number of them, and channels come last. The weights fit any number of
    nodes.

    Args:
        spec: For instance "n n -> n n" (edges to edges), "n n ->" (a graph to a vector), "u i -> u".
        in_channels: The number of channels of the input.
        out_channels: The number of channels of the output.
        bias: Whether to add the constant maps, one for each equality pattern of the target.
        basis: What the weights are coefficients of: "diagram", at least these equalities, or "orbit", exactly these
            equalities (the orthogonal indicators of the paper).
        normalize: "mean" divides every sum by the number of its terms, "sum" does not. "listed" divides by the number
            of terms that a `Sparse` lists, and is "mean" for tensors and `Padded`. The orbit basis goes with "sum"
            only: between normalised sums it would need factors that depend on the number of nodes.
        symmetric: Declares inputs that do not change when slots of one node set are exchanged; fewer maps are left.
        hollow: Declares inputs that are zero wherever two slots of one node set coincide; fewer maps are left.
        max_maps: A spec with more maps is refused before any work.
        device: Where the parameters live; on "meta" a layer takes no memory, whatever its channels.
        dtype: The type of the parameters.

    Attributes:
        plan: How the layer is computed.
        weight: (n_maps, in_channels, out_channels), in the order of `plan.diagrams`.
        bias: (n_biases, out_channels), in the order of `plan.biases`, or None.

    >>> layer = EquivariantLinear("n n -> n n", 16, 32)
    >>> layer(torch.randn(8, 30, 30, 16)).shape
    torch.Size([8, 30, 30, 32])
    """

    plan: Plan
    weight: nn.Parameter
    bias: nn.Parameter | None

    def __init__(
        self,
        spec: str | Spec,
        in_channels: int,
        out_channels: int,
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
        self.in_channels = check_channels(self._call, "in_channels", in_channels)
        self.out_channels = check_channels(self._call, "out_channels", out_channels)
        self.basis = check_choice(self._call, "basis", basis, ("diagram", "orbit"))
        self.normalize = check_choice(self._call, "normalize", normalize, ("mean", "listed", "sum"))
        self._refuse_combinations(dtype)
        self.plan = plan(self.spec, symmetric=symmetric, hollow=hollow, max_maps=max_maps)
        mean = self.normalize != "sum"
        self._engine = Engine(self.plan, self.in_channels, self.out_channels, mean=mean)
        self._reception = Reception(self._call, self.spec, self.in_channels)
        self._listed_reception = ListedReception(self._reception)
        self._keeps_sizes = set(self.spec.target) == set(self.spec.source)
        self._target_sets = tuple((name, self.spec.node_sets.index(name)) for name in dict.fromkeys(self.spec.target))
        self._bias_plan = plan(Spec((), self.spec.target), max_maps=max_maps)
        self._entries: tuple[Entries, Entries] = ((), ())
        if self.basis == "orbit":
            self._entries = orbit_to_diagram(self.plan), orbit_to_diagram(self._bias_plan)
        shape = (self.plan.n_maps, self.in_channels, self.out_channels)
        check_room(self._call, shape, device=device, dtype=dtype)
        self.weight = nn.Parameter(torch.empty(shape, device=device, dtype=dtype))
        if bias:
            shape_of_bias = (self.plan.n_biases, self.out_channels)
            self.bias = nn.Parameter(torch.empty(shape_of_bias, device=device, dtype=dtype))
        else:
            self.register_parameter("bias", None)
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
        with torch.no_grad():
            if not self.weight.is_meta:
                mean, channels = self.normalize != "sum", (self.in_channels, self.out_channels)
                weight = initial_weight(self.plan, *channels, mean=mean, generator=generator)
                if self.basis == "orbit":
                    weight = change_of_basis(("orbit", self.plan), diagram_to_orbit(self.plan), weight)
                self.weight.copy_(weight)
            if self.bias is not None:
                self.bias.zero_()

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
    def forward(
        self,
        x: Tensor | Padded | Sparse,
        *,
        sizes: GivenSizes = None,
        support: Sparse | Support | None = None,
        check: bool = False,
    ) -> Tensor | Padded | Sparse:
        """Apply the layer.

        Args:
            x: (*batch, one axis for each source slot, in_channels), as a tensor or `Padded`; or a `Sparse`.
            sizes: The lengths of the node sets that only the target has, for instance {"i": 7}; a tensor gives every
                graph its own.
            support: A `Sparse`, or the support of one, whose tuples the result is to list. Without it, the result of
                a `Sparse` lists the same tuples where the target has the slots of the source, and every node where
                it has one slot.
            check: Whether to refuse an input that is not symmetric or hollow although that was declared.

        Returns:
            (*batch, one axis for each target slot, out_channels): `Sparse` if x is, or a support was given, and the
            target has slots; `Padded` if the graphs differ in the size of some node set of the target; else a tensor.
        """
        if isinstance(x, Sparse) or support is not None:
            return self._forward_listed(x, sizes, support, check=check)
        given, weight = self._reception.receive(x, sizes), self.weight
        self._check_values(given.tensor, weight)
        if check:
            check_declared(self._call, self.plan, given.tensor)
        result = self._run(Dense(given.nodes), given.tensor, weight)
        if len(given.batch) != 1:
            result = result.reshape(*given.batch, *result.shape[1:])
        if isinstance(x, Padded) and self._keeps_sizes and x.is_for(given.batch):
            return x.with_clean_values(result, self.spec.target)
        sizes_of_target = self._sizes_of_target(given)
        return result if sizes_of_target is None else Padded.clean(result, sizes_of_target, self.spec.target)

    def _forward_listed(
        self, x: Tensor | Padded | Sparse, sizes: GivenSizes, support: Sparse | Support | None, *, check: bool
    ) -> Tensor | Sparse:
        values, supports = self._listed_reception.receive(x, support, sizes, listed=self.normalize == "listed")
        self._check_values(values, weight := self.weight)
        if check:
            check_declared_listed(self._call, self.plan, values, supports.source)
        result = self._run(supports, values, weight)
        if self.spec.target:
            return Sparse.on(supports.target, result)
        return result if supports.source.counts.is_batch else result.squeeze(0)

    def _run(self, layout: Layout, tensor: Tensor, weight: Tensor) -> Tensor:
        bias, device_type = self.bias, tensor.device.type
        if torch.amp.is_autocast_available(device_type) and torch.is_autocast_enabled(device_type):
            dtype = torch.get_autocast_dtype(device_type)
            with torch.autocast(device_type, enabled=False):
                return self._run_as(
                    layout, tensor.to(dtype), weight.to(dtype), None if bias is None else bias.to(dtype)
                )
        return self._run_as(layout, tensor, weight, bias)

    def _run_as(self, layout: Layout, tensor: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        if self.basis == "orbit":
            weight = change_of_basis(("diagram", self.plan), self._entries[0], weight)
            bias = bias if bias is None else change_of_basis(("diagram", self._bias_plan), self._entries[1], bias)
        return self._engine(layout, tensor, weight, bias)

    def _check_values(self, tensor: Tensor, weight: Tensor) -> None:
        if tensor.device == weight.device and tensor.dtype == weight.dtype:
            return
        if tensor.device != weight.device:
            raise TensorError(
                f"{self._call} has its parameters on {weight.device}, but the input is on {tensor.device}.\n"
                f'Move one of them: layer.to("{tensor.device}") or x.to("{weight.device}").'
            )
        device_type = tensor.device.type
        casts = torch.amp.is_autocast_available(device_type) and torch.is_autocast_enabled(device_type)
        if casts and tensor.is_floating_point():
            return
        remedy = f"Convert the input: x.to({weight.dtype})"
        if tensor.is_floating_point():
            remedy += f", or the layer: layer.to({tensor.dtype})"
        raise TensorError(
            f"{self._call} has parameters of type {weight.dtype}, but the input is {tensor.dtype}.\n{remedy}."
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
        if self.bias is None:
            options.append("bias=False")
        if self.basis != "diagram":
            options.append(f'basis="{self.basis}"')
        if self.normalize != "mean":
            options.append(f'normalize="{self.normalize}"')
        options += [f"{name}=True" for name in ("symmetric", "hollow") if getattr(self.plan, name)]
        return ", ".join([*options, f"n_maps={self.plan.n_maps}"])
