"""Methods of Table 3 other than the paper's network: kernels, message passing networks, networks with
products, the library's own classifier.

A method is a file here, with a class of which `METHOD` is the only object, and a name in `NAMES`.
"""

from importlib import import_module

from experiments.methods.base import Method

NAMES = ("best", "wl", "graphlet", "random-walk", "propagation", "gin", "dgcnn", "diffpool", "ecc", "ppgn")


def method(name: str) -> Method:
    """The method of a name; none of the packages that it needs is imported."""
    found = import_module(f"experiments.methods.{name.replace('-', '_')}").METHOD
    assert isinstance(found, Method)
    return found
