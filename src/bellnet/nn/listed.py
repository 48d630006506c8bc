"""What a layer was handed in listed tuples, checked against its spec, and the tuples that its result is to list."""

from typing import NamedTuple

import torch
from torch import Tensor

from bellnet.backends import SparseLayout
from bellnet.errors import ShapeError, SizesError, SupportError
from bellnet.nn.given_sizes import GivenSizes, check_given
from bellnet.nn.inputs import Reception
from bellnet.tensors import NodeCounts, Padded, Sparse, Support


class ListedInput(NamedTuple):
    """Values on the tuples of the source support, and both supports."""

    values: Tensor
    supports: SparseLayout


class ListedReception:
    """Checks what comes to one layer; messages and checks of dense tensors are those of its `Reception`."""

    def __init__(self, dense: Reception) -> None:
        self.call, self.spec, self.channels = dense.call, dense.spec, dense.channels
        self._dense = dense

    def receive(
        self,
        x: Tensor | Padded | Sparse,
        support: Sparse | Support | None,
        sizes: GivenSizes,
        *,
        listed: bool,
    ) -> ListedInput:
        """Check an input and find the support of the result; `listed` says by what means divide."""
        given = support.support if isinstance(support, Sparse) else support
        if given is not None:
            self._check_given_support(given)
        if isinstance(x, Sparse):
            check_sparse(self.call, x, self.spec.source, self.channels)
            source, values = x.support, x.values
        else:
            source, values = self._from_dense(x, given)
        if given is not None and given.index.device != values.device:
            raise SupportError(
                f"{self.call}: the input is on {values.device}, but the support is on {given.index.device}.\n"
                f'Move one of them: support.to("{values.device}").'
            )
        counts = self._counts(source, given, sizes)
        target = self._default_support(source, counts) if given is None else given
        return ListedInput(values, SparseLayout((source,), (target,), self._lengths(source), listed))

    def _check_given_support(self, support: object) -> None:
        if not isinstance(support, Support):
            raise SupportError(
                f"{self.call}: support must be a bellnet.Sparse, whose tuples the result is to list, "
                f"not {type(support).__name__}."
            )
        if not self.spec.target:
            raise SupportError(
                f"{self.call}: the target has no slots, so there are no tuples to list.\nLeave out support."
            )
        if is_misfit(support, self.spec.target):
            raise SupportError(
                f'{self.call}: the target is over "{" ".join(self.spec.target)}", but the support that was given is '
                f'over "{support.shape}".'
            )

    def _from_dense(self, x: Tensor | Padded, given: Support | None) -> tuple[Support, Tensor]:
        """All tuples of a dense input, listed."""
        assert given is not None
        values = x.values if isinstance(x, Padded) else x
        self._dense.check(values)
        if values.ndim - len(self.spec.source) - 1 != given.counts.is_batch:
            axes = "one batch axis" if given.counts.is_batch else "no batch axis"
            raise ShapeError(
                f"{self.call}: the support is that of {'a batch' if given.counts.is_batch else 'one graph'}, so the "
                f"input must have {axes}; its shape is {tuple(values.shape)}."
            )
        if self.spec.source:
            everything = Sparse.from_dense(x, " ".join(self.spec.source), keep_zeros=True)
            return everything.support, everything.values
        graphs = given.cached("every graph support", lambda: Support.every_graph(given.counts))
        if values.shape[:-1].numel() != graphs.nnz:
            raise ShapeError(f"{self.call}: the support has {graphs.nnz} graphs, but the input has {values.shape[0]}.")
        return graphs, values.reshape(-1, values.shape[-1])

    def _counts(self, source: Support, given: Support | None, sizes: GivenSizes) -> dict[str, Tensor]:
        """The number of nodes of every node set, in every graph; refuses what does not agree."""
        like = source.counts
        counts = {name: like.by_set[like.key(name)] for name in self.spec.source}
        if given is not None:
            self._check_batch(like, given.counts)
            for name in dict.fromkeys(self.spec.target):
                self._add(counts, name, given.counts.by_set[given.counts.key(name)], "the support")
        for name, size in check_given(self.call, sizes or {}, self.spec.node_sets, self.spec.target_only).items():
            self._add(counts, name, self._for_every_graph(name, size, like, source.index.device), "sizes")
        return counts

    def _for_every_graph(self, name: str, size: int | Tensor, like: NodeCounts, device: torch.device) -> Tensor:
        given = torch.as_tensor(size, device=device).to(torch.int64, copy=True)
        if given.ndim > like.is_batch or (given.ndim and len(given) != like.n_graphs):
            what = f"a batch of {like.n_graphs}" if like.is_batch else "one graph"
            raise SizesError(
                f"{self.call}: the input is {what}, but sizes[{name!r}] has the shape {tuple(given.shape)}.\n"
                "Give one number, or for a batch one for each graph."
            )
        return given.expand(like.n_graphs)

    def _add(self, counts: dict[str, Tensor], name: str, other: Tensor, origin: str) -> None:
        here = counts.setdefault(name, other)
        if here is other or torch.equal(here, other):
            return
        graph = int((here != other).nonzero()[0])
        raise SupportError(
            f"{self.call}: of node set {name!r} graph {graph} has {int(here[graph])} nodes by the input, but "
            f"{int(other[graph])} by {origin}.\nBoth must be about the same nodes."
        )

    def _lengths(self, source: Support) -> tuple[int, ...] | None:
        """The number of nodes of every node set that can be summed over, if all graphs have the same; else None."""
        common = {name: source.counts.common[source.counts.key(name)] for name in self.spec.source}
        lengths = tuple(common.get(name, 0) for name in self.spec.node_sets)
        return None if None in lengths else lengths  # type: ignore[return-value]

    def _check_batch(self, one: NodeCounts, other: NodeCounts) -> None:
        if one.is_batch != other.is_batch or one.n_graphs != other.n_graphs:
            words = [f"a batch of {counts.n_graphs}" if counts.is_batch else "one graph" for counts in (one, other)]
            raise SupportError(f"{self.call}: the input is {words[0]}, but the support is that of {words[1]}.")

    def _default_support(self, source: Support, counts: dict[str, Tensor]) -> Support:
        """The source's where the target has the same slots; every node where it has one slot, every graph for none."""
        target = self.spec.target
        if target == self.spec.source:
            return source
        if not target:
            return source.cached("every graph support", lambda: Support.every_graph(source.counts))
        if len(target) > 1:
            raise SupportError(
                f'{self.call}: which tuples over "{" ".join(target)}" is the result to list? The input lists tuples '
                f'over "{" ".join(self.spec.source)}".\nPass them in the call: layer(x, support=...), with a '
                "bellnet.Sparse whose tuples are taken and whose values are not looked at."
            )
        name = target[0]
        if name in self.spec.source:
            return source.cached(("every node support", name), lambda: Support.every_node(source.counts, name))
        if name not in counts:
            raise SizesError(
                f"{self.call}: only the target has node set {name!r}, so the input cannot tell its length.\n"
                f"Pass it in the call: layer(x, sizes={{{name!r}: 10}})."
            )
        return Support.every_node(NodeCounts({name: counts[name]}, is_batch=source.counts.is_batch), name)


def check_sparse(call: str, x: Sparse, slots: tuple[str, ...], channels: int | None) -> None:
    """Refuse a Sparse over other slots or with other channels than these."""
    if is_misfit(x.support, slots):
        shape = " ".join(slots)
        raise SupportError(
            f'{call} takes a Sparse over "{shape}", but this one is over "{x.support.shape}".'
            if slots
            else f"{call} takes one vector for each graph, a plain tensor, but this is a Sparse."
        )
    if channels is not None and x.values.shape[1] != channels:
        raise ShapeError(
            f"{call}: {channels} channels were declared, but the values of this Sparse have {x.values.shape[1]}."
        )


def sums_by_graph(values: Tensor, support: Support) -> Tensor:
    """(n_graphs, channels): the sum over the tuples of every graph."""
    if support.counts.n_graphs == 1:
        return values.sum(0, keepdim=True)
    return values.new_zeros(support.counts.n_graphs, values.shape[1]).index_add(0, support.graphs, values)


def tuples_by_graph(support: Support) -> Tensor:
    """(n_graphs, 1): how many tuples of every graph are listed."""
    return torch.bincount(support.graphs, minlength=support.counts.n_graphs).unsqueeze(-1)


def is_misfit(support: Support, slots: tuple[str, ...]) -> bool:
    """Whether a support is over other slots than these."""
    return support.slots != slots if support.is_named else support.order != len(slots)
