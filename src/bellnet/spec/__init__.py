"""What was asked for: a map from tensors over some node sets to tensors over some node sets."""

from bellnet.spec.letters import Letters, parse_letters
from bellnet.spec.parse import parse_shape, parse_shapes, parse_source, parse_spec
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
