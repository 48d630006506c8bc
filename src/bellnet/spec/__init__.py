"""What was asked for: a map from tensors over some node sets to tensors over some node sets."""

from bellnet.spec.parse import parse_shape, parse_shapes, parse_source, parse_spec
from bellnet.spec.spec import Groups, Shape, Spec, text_of

__all__ = ["Groups", "Shape", "Spec", "parse_shape", "parse_shapes", "parse_source", "parse_spec", "text_of"]
