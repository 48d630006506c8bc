"""Other ways to compute the same layers, written as well as they can be, for comparison only."""

from benchmarks.baselines.bare import BareProduct
from benchmarks.baselines.per_diagram import EinsumPerDiagram
from benchmarks.baselines.stacked import StackedFifteen, StackedLast

__all__ = ["BareProduct", "EinsumPerDiagram", "StackedFifteen", "StackedLast"]
