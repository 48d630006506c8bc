"""Compiled kernels: what runs layers, products and pooling on a CPU, in float32 and float64.

They are plain C, compiled for each kind of processor when the package is installed (`build_kernels.py`). Without them
torch operations run, and a warning is issued.
"""

from bellnet.kernels.calling import DISABLE_VARIABLE, SOURCES, VARIANTS, are_disabled, disabled, kernels

__all__ = ["DISABLE_VARIABLE", "SOURCES", "VARIANTS", "are_disabled", "disabled", "kernels"]
