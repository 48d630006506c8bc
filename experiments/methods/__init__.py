"""Methods of Table 3 other than the paper's network: kernels, message passing networks, networks with
products, the library's own classifier.

A method is a subclass of `Method` and a name in `CLASSES`.
"""

from functools import cache
from importlib import import_module

from experiments.methods.base import Method

CLASSES = {
    "bellnet": ("classifier", "Classifier"),
    "wl": ("kernels", "WeisfeilerLehman"),
    "graphlet": ("kernels", "Graphlet"),
    "random-walk": ("kernels", "RandomWalk"),
    "propagation": ("kernels", "Propagation"),
    "gin": ("networks", "Isomorphism"),
    "dgcnn": ("networks", "SortPooling"),
    "diffpool": ("networks", "DifferentiablePooling"),
    "ecc": ("networks", "EdgeConditioned"),
    "ppgn": ("networks", "ProvablyPowerful"),
}
"""The module and the class of each method."""
NAMES = tuple(CLASSES)


@cache
def method(name: str) -> Method:
    """The method of a name; none of the packages that it needs is imported."""
    module, kind = CLASSES[name]
    found: Method = getattr(import_module(f"experiments.methods.{module}"), kind)()
    return found
