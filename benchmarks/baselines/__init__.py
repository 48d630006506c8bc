"""Other implementations of the same layers, each as fast as possible, for comparison only."""

from benchmarks.baselines.bare import BareProduct
from benchmarks.baselines.by_hand import ByHand
from benchmarks.baselines.matrices import Matrices
from benchmarks.baselines.per_diagram import EinsumPerDiagram
from benchmarks.baselines.stacked import StackedFifteen, StackedLast
from benchmarks.baselines.stacked_net import StackedNet

__all__ = ["BareProduct", "ByHand", "EinsumPerDiagram", "Matrices", "StackedFifteen", "StackedLast", "StackedNet"]
