"""`Encoding`: how graphs become channels of tensors."""

from bellnet.data.encoding.encode import Encoding
from bellnet.data.encoding.graph_checks import problems

__all__ = ["Encoding", "problems"]
