"""The contestants of a case, each with an input in its preferred layout, and the check that their outputs agree."""

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from bellnet import EquivariantLinear
from benchmarks.baselines import BareProduct, ByHand, EinsumPerDiagram, StackedFifteen, StackedLast
from benchmarks.cases import BARE, BY_HAND, OURS, PER_DIAGRAM, STACKED, STACKED_LAST, Case, Pass


@dataclass(frozen=True)
class Contestant:
    """A module, an input that requires a gradient, and the gradient of the output."""

    module: nn.Module
    x: Tensor
    upstream: Tensor

    def run(self, which: Pass) -> None:
        """Run one pass, without accumulating gradients."""
        if which == "forward":
            with torch.no_grad():
                self.module(self.x)
            return
        output = self.module(self.x)
        output.backward(self.upstream)
        self.x.grad = None
        self.module.zero_grad(set_to_none=True)


def contestants(case: Case) -> dict[str, Contestant]:
    """The contestants of a case, with equal weights and equal inputs."""
    torch.manual_seed(0)
    layer = EquivariantLinear(case.spec, case.in_channels, case.out_channels)
    nodes = [case.n] * case.order
    x = torch.randn(case.batch, *nodes, case.in_channels)
    upstream = torch.randn(case.batch, *nodes, case.out_channels)
    found = {OURS: Contestant(layer, _leaf(x), upstream)}
    if BARE in case.contestants:
        bare = BareProduct(case.order, case.in_channels, case.out_channels)
        found[BARE] = Contestant(bare, _leaf(x), torch.randn(*x.shape[:-1], bare.weight.shape[1]))
    if BY_HAND in case.contestants:
        found[BY_HAND] = Contestant(ByHand.like(layer), _leaf(x), upstream)
    if STACKED in case.contestants:
        # Channels first is the natural layout of stacking: its input already has it.
        found[STACKED] = Contestant(StackedFifteen.like(layer), _leaf(_first(x)), _first(upstream))
    if STACKED_LAST in case.contestants:
        found[STACKED_LAST] = Contestant(StackedLast.like(layer), _leaf(x), upstream)
    if PER_DIAGRAM in case.contestants:
        found[PER_DIAGRAM] = Contestant(EinsumPerDiagram.like(layer), _leaf(x), upstream)
    return found


def check_agreement(found: dict[str, Contestant]) -> None:
    """Raise ValueError unless all contestants but the bare product compute the same function."""
    with torch.no_grad():
        expected = found[OURS].module(found[OURS].x)
        for name, contestant in found.items():
            if name in (OURS, BARE):
                continue
            got = contestant.module(contestant.x)
            got = got.movedim(1, -1) if name == STACKED else got
            if not torch.allclose(got, expected, rtol=1e-3, atol=1e-3):
                raise ValueError(f"{name!r} does not compute the function of {OURS!r}, so times are not comparable")


def _first(tensor: Tensor) -> Tensor:
    return tensor.movedim(-1, 1).contiguous()


def _leaf(tensor: Tensor) -> Tensor:
    return tensor.detach().clone().requires_grad_()
