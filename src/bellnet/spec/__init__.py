"""What was asked for: a map from tensors over some node sets to tensors over some node sets."""

from bellnet.spec.parse import parse_shape, parse_spec
from bellnet.spec.spec import Spec

__all__ = ["Spec", "parse_shape", "parse_spec"]
