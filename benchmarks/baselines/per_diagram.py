"""Any layer with one `torch.einsum` for each diagram: the basis without the plan.

The einsum contracts (diagonals and sums), mixes the channels at the rank of the diagram and permutes the axes for the
target. Its result is added, broadcast, to a total for its pattern of target slots; at the end each total is added to
its diagonal of the output. Thus autograd copies the output once per pattern rather than once per diagram.
"""

from dataclasses import dataclass
from typing import Self

import torch
from torch import Tensor, nn

from bellnet import Diagram, EquivariantLinear, Spec, plan

LETTERS = "abcdefghijklmnop"


@dataclass(frozen=True)
class Term:
    """The computation of one diagram.

    Attributes:
        equation: Contraction and mixing: batch z, channels x before and y after, nodes in between.
        n_summed: How many node axes are summed over.
        pattern: The target slots that are equal, for instance "aab".
        repeated: The axes of the pattern's total along which the result repeats.
    """

    equation: str
    n_summed: int
    pattern: str
    repeated: tuple[int, ...]

    @classmethod
    def of(cls, diagram: Diagram) -> Self:
        source, target = diagram.name.split("->")
        shared = [letter for letter in dict.fromkeys(target) if letter in source]
        blocks = list(dict.fromkeys(target))
        return cls(
            equation=f"z{source}x,xy->z{''.join(shared)}y",
            n_summed=len(set(source)) - len(shared),
            pattern="".join(LETTERS[blocks.index(letter)] for letter in target),
            repeated=tuple(axis for axis, letter in enumerate(blocks, 1) if letter not in shared),
        )


class EinsumPerDiagram(nn.Module):
    """The layer of a spec over one node set, with means, on (batch, *axes, in_channels).

    Attributes:
        weight: (n_maps, in_channels, out_channels), in canonical order.
        bias: (n_biases, out_channels), in canonical order.
    """

    def __init__(
        self, spec: str | Spec, in_channels: int, out_channels: int, *, dtype: torch.dtype | None = None
    ) -> None:
        super().__init__()
        the_plan = plan(spec)
        if len(the_plan.spec.node_sets) != 1 or not the_plan.spec.source:
            raise ValueError(f'EinsumPerDiagram takes a source over one node set, not "{the_plan.spec}".')
        self.terms = [Term.of(diagram) for diagram in the_plan.diagrams]
        self.patterns = ["".join(LETTERS[block] for block in pattern) for pattern in the_plan.biases]
        scale = (2 / in_channels / the_plan.n_maps) ** 0.5
        self.weight = nn.Parameter(torch.randn(the_plan.n_maps, in_channels, out_channels, dtype=dtype) * scale)
        self.bias = nn.Parameter(torch.zeros(the_plan.n_biases, out_channels, dtype=dtype))

    @classmethod
    def like(cls, layer: EquivariantLinear) -> Self:
        """The same function, with the weights of a layer with means."""
        copy = cls(layer.spec, layer.in_channels, layer.out_channels, dtype=layer.weight.dtype)
        with torch.no_grad():
            copy.weight.copy_(layer.weight)
            if layer.bias is not None:
                copy.bias.copy_(layer.bias)
        return copy

    def forward(self, x: Tensor) -> Tensor:
        batch, n = x.shape[:2]
        totals: dict[str, Tensor] = {
            pattern: bias.expand(batch, *[n] * len(set(pattern)), -1).clone()
            for pattern, bias in zip(self.patterns, self.bias, strict=True)
        }
        # Dividing the small weights rather than the large results turns sums into means at no cost.
        divisors = torch.tensor([max(n, 1) ** term.n_summed for term in self.terms], dtype=x.dtype, device=x.device)
        for term, weight in zip(self.terms, self.weight / divisors[:, None, None], strict=True):
            result = torch.einsum(term.equation, x, weight)
            for axis in term.repeated:
                result = result.unsqueeze(axis)
            totals[term.pattern].add_(result)
        # The last pattern in canonical order has distinct slots: its total is the whole output.
        *diagonals, whole = self.patterns
        output = totals[whole]
        for pattern in diagonals:
            _diagonal(output, pattern).add_(totals[pattern])
        return output


def _diagonal(tensor: Tensor, pattern: str) -> Tensor:
    """The view of the entries with equal slots as in the pattern: (batch, one axis for each letter, channels)."""
    for letter in dict.fromkeys(pattern):
        first = pattern.index(letter)
        while (other := pattern.find(letter, first + 1)) > 0:
            tensor = tensor.diagonal(0, first + 1, other + 1).movedim(-1, first + 1)
            pattern = pattern[:other] + pattern[other + 1 :]
    return tensor
