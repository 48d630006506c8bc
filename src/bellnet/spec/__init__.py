"""Specs: the node sets of the inputs and outputs of a map."""

from bellnet.spec.parser import Letters, parse_letters, parse_shape, parse_shapes, parse_source, parse_spec
from bellnet.spec.spec import Groups, Shape, Spec, text_of

__all__ = [
    "Groups",
    "Letters",
    "Shape",
    "Spec",
    "parse_letters",
    "parse_shape",
    "parse_shapes",
    "parse_source",
    "parse_spec",
    "text_of",
]
