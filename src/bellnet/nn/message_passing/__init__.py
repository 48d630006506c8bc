"""Message passing as a special case: the paper's Appendix C, executable.

A message passing network is written as equivariant layers with weights in closed form and modules on channels. The one
thing these cannot do, to multiply by the adjacency, is done by a ReLU network with a proven error bound.
"""

from bellnet.nn.message_passing.approximation import CompactSet, ReluProduct
from bellnet.nn.message_passing.convert import from_message_passing
from bellnet.nn.message_passing.functions import MessageFunctions
from bellnet.nn.message_passing.layer import MessagePassingLayer
from bellnet.nn.message_passing.network import MessagePassingNet
from bellnet.nn.message_passing.state import Adjacency

__all__ = [
    "Adjacency",
    "CompactSet",
    "MessageFunctions",
    "MessagePassingLayer",
    "MessagePassingNet",
    "ReluProduct",
    "from_message_passing",
]
