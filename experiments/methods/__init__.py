"""The methods of Table 3: the paper's network, the library's classifier, kernels, and other networks."""

from functools import cache
from importlib import import_module

from experiments.methods.base import Method

MODULES = {
    "ign": "ign",
    "bellnet": "classifier",
    **dict.fromkeys(("wl", "graphlet", "random_walk", "propagation"), "kernels"),
    **dict.fromkeys(("gin", "dgcnn", "diffpool", "ecc", "ppgn"), "networks"),
}
"""The module of each method, in which it has the same name."""
NAMES = tuple(name.replace("_", "-") for name in MODULES)


@cache
def method(name: str) -> Method:
    """The method of a name; none of the packages that it needs is imported."""
    name = name.replace("-", "_")
    found: Method = getattr(import_module(f"experiments.methods.{MODULES[name]}"), name)
    return found
