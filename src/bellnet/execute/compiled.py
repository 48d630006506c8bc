"""A plan on dense tensors, run by compiled kernels: on a CPU, in single or double precision."""

import ctypes
from collections.abc import Sequence

import torch
from torch import Tensor
from torch.nn import Parameter

from bellnet.execute.layout import Channels
from bellnet.execute.level_matrices import LevelMatrices
from bellnet.execute.means import Means
from bellnet.execute.nodes import Nodes
from bellnet.execute.program import Program, fits, program
from bellnet.kernels import TYPES, kernels
from bellnet.plan import Plan
from bellnet.tensors.keeping import making_constants

FEW_MULTIPLICATIONS = 2**17
"""So many are worth a thread."""


def are_watched(tensors: Sequence[Tensor]) -> bool:
    """Whether somebody looks at what is done to tensors, operation by operation; of kernels nothing would be seen."""
    return bool(torch._C._len_torch_dispatch_stack()) or not all(type(one) in (Tensor, Parameter) for one in tensors)


def can_compile(plan: Plan, values: Sequence[Tensor]) -> bool:
    """Whether kernels run a plan on such tensors."""
    like = values[0]
    if like.dtype not in TYPES or like.device.type != "cpu" or are_watched(values):
        return False
    return kernels() is not None and fits(plan)


class CompiledWalk:
    """A plan with so many channels, for dense tensors over so many nodes."""

    def __init__(self, plan: Plan, channels: Channels, nodes: Nodes, values: Sequence[Tensor]) -> None:
        self.plan, self.nodes, self._n_graphs = plan, nodes, len(values[0])
        self._program: Program = program(plan, channels, nodes.lengths)
        kind = TYPES[values[0].dtype]
        library = kernels()
        self._forward = getattr(library, f"bellnet_forward_{kind}")
        self._backward = getattr(library, f"bellnet_backward_{kind}")
        self._shapes = tuple(
            (self._n_graphs, *[nodes.lengths[node_set] for node_set in root.axes], width)
            for root, width in zip(plan.target.roots, channels[1], strict=True)
        )
        self._most_threads = 1 + self._n_graphs * self._program.n_multiplications // FEW_MULTIPLICATIONS
        self._counts = None if nodes.counts is None else nodes.counts.to(torch.int64).contiguous()
        self._words = ctypes.addressof(self._program.words)

    def means(self, values: Sequence[Tensor]) -> Means:
        """How the sums of these values become means: in the weights where all graphs are of one size."""
        if self.nodes.counts is None:
            return Means(self.nodes.lengths)
        kept, key = self.nodes.kept, (self._program, values[0].dtype)
        if key not in kept:
            with making_constants():
                kept[key] = self._factors(values[0])
        return Means(None, (kept[key],))

    def _factors(self, like: Tensor) -> Tensor:
        """(graphs, numbers): what every number of a row of the bundles that are means is multiplied by."""
        by_bundle = self.nodes.factors(self.plan, like).factors or ()
        parts = [like.new_zeros(self._n_graphs, 0)]
        for number, widths in self._program.factored:
            found = by_bundle[number]
            assert found is not None
            columns = found.reshape(self._n_graphs, len(widths))
            parts.append(columns.repeat_interleave(torch.tensor(widths), 1).to(like.dtype))
        return torch.cat(parts, 1)

    def views(self, matrices: LevelMatrices, gathered: Tensor) -> Tensor:
        """The matrices as they are used: as they lie in memory."""
        return gathered

    def forward(
        self, values: Sequence[Tensor], matrices: Tensor, *, bias: Tensor | None, means: Means
    ) -> tuple[list[Tensor], list[Tensor]]:
        """The results, and what was read."""
        values = _as_they_are(values)
        like = values[0]
        results = [like.new_empty(shape) for shape in self._shapes]
        read = like.new_empty(self._n_graphs * self._program.n_read)
        if bias is not None:
            bias = bias.contiguous()
        failed = self._forward(
            *self._where(means),
            _pointers(values),
            _pointer(matrices),
            _pointer(bias),
            _pointer(read),
            _pointers(results),
        )
        _check(failed)
        return results, [read]

    def backward(
        self,
        gradients: Sequence[Tensor],
        values: Sequence[Tensor],
        read: list[Tensor],
        *,
        matrices: Tensor | None,
        of_matrices: Tensor,
        of_bias: Tensor | None,
        means: Means,
    ) -> list[Tensor] | None:
        """The gradients of the values, if matrices are given; those of matrices and bias are added in place."""
        values, gradients = _as_they_are(values), _as_they_are(gradients)
        results = None if matrices is None else [torch.empty_like(one) for one in values]
        failed = self._backward(
            *self._where(means),
            _pointers(values),
            _pointer(matrices),
            _pointer(read[0]),
            _pointers(gradients),
            _pointer(of_matrices),
            _pointer(of_bias),
            None if results is None else _pointers(results),
        )
        _check(failed)
        return results

    def _where(self, means: Means) -> tuple[ctypes.c_void_p | ctypes.c_int64 | None, ...]:
        """The first arguments of a kernel: the plan, the graphs, and how many threads there are."""
        return (
            ctypes.c_void_p(self._words),
            ctypes.c_int64(self._n_graphs),
            ctypes.c_int64(min(torch.get_num_threads(), self._most_threads)),
            _pointer(self._counts),
            _pointer(None if means.factors is None else means.factors[0]),
        )


def _as_they_are(tensors: Sequence[Tensor]) -> list[Tensor]:
    """Tensors that have in memory what they mean, one number after the other."""
    return [one.resolve_neg().contiguous() for one in tensors]


def _pointer(tensor: Tensor | None) -> ctypes.c_void_p | None:
    return None if tensor is None else ctypes.c_void_p(tensor.data_ptr())


def _pointers(tensors: Sequence[Tensor]) -> ctypes.Array[ctypes.c_void_p]:
    return (ctypes.c_void_p * len(tensors))(*[one.data_ptr() for one in tensors])


def _check(failed: int) -> None:
    if failed:
        raise MemoryError("bellnet's kernels found no memory for what a layer needs for a moment.")
